/** The daemon as a process, with a collector of traces of the test's own. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SendMessageCommand } from '@aws-sdk/client-sqs';
import { describe, expect, test } from 'vitest';
import { until } from '../support/servers/aws.ts';
import { startWorld } from '../support/worlds/aws.ts';
import type { Daemon } from '../support/servers/daemon.ts';
import { openFlow } from '../support/worlds/flow.ts';
import { nativeRecord } from '../support/worlds/ingest.ts';
import { startOtlpReceiver, type OtlpReceiver } from '../support/servers/otlp-receiver.ts';
import { awsEndpoint } from '../support/servers/found.ts';

const onLocalStack = test.skipIf(awsEndpoint() === undefined).concurrent;
const STOPPED = { code: 0, signal: null };
const DAY_MS = 86_400_000;
const SECRET = 's3cret';

/** A collector, and the variables of a daemon that sends its traces there without waiting for more. */
async function startCollector() {
  const otlp = await startOtlpReceiver();
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: otlp.url,
    OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer%20${SECRET}`,
    OTEL_BSP_SCHEDULE_DELAY: '100',
  };
  return { otlp, env, [Symbol.asyncDispose]: () => otlp.close() };
}

/** The span of the message about this key, once it is there. */
async function messageSpan(otlp: OtlpReceiver, key: string) {
  const find = () => otlp.spans.find(({ kind, attributes }) => kind === 'consumer' && attributes['aws.s3.key'] === key);
  await until(`the span of the message about ${key}`, () => find() !== undefined);
  return find()!;
}

function tellsNoSecret(daemon: Daemon): void {
  expect(JSON.stringify(daemon.log) + daemon.text).not.toContain(SECRET);
}

/** Writes the address of each module that a process loads to a file. */
const NOTE_MODULES = `
  import { appendFileSync } from 'node:fs';
  import { registerHooks } from 'node:module';
  registerHooks({ load(url, context, next) { appendFileSync(process.env.LOADED_FILE, url + '\\n'); return next(url, context); } });`;

/** What makes a daemon note its modules, and whether the SDK of OpenTelemetry is among them. */
async function noteModules() {
  const folder = await mkdtemp(join(tmpdir(), 'tally-loaded-'));
  const file = join(folder, 'modules');
  return {
    env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(NOTE_MODULES)}`, LOADED_FILE: file },
    async haveSdk(): Promise<boolean> {
      const files = new Set((await readFile(file, 'utf8')).split('\n').filter((url) => url.startsWith('file:')));
      const texts = await Promise.all([...files].map((url) => readFile(new URL(url), 'utf8')));
      return texts.some((text) => text.includes('BatchSpanProcessor'));
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  };
}

describe('traces', () => {
  onLocalStack(
    'of a message, its HEAD and its bulk request arrive, linked to the traces that it came with',
    async () => {
      await using collector = await startCollector();
      const { otlp, env } = collector;
      const world = await startWorld({ env: { ...env, TALLY_INGEST_WAIT_S: '1' } });
      await using _world = { [Symbol.asyncDispose]: () => world.dispose() };
      const { aws, daemon, queue } = world;
      const bucket = await aws.createBucket();
      await world.connect({ bucket });
      await aws.put(bucket, 'old/event.txt', 'hello');
      // too old to be believed: Tally asks S3, and writes the answer at the event's place in the order
      const Records = [
        nativeRecord('old/event.txt', { bucket, eventTimeMs: Date.now() - 2 * DAY_MS, object: { etag: 'x', sizeBytes: 5 } }),
      ];
      await aws.sqs.send(
        new SendMessageCommand({
          QueueUrl: queue.url,
          MessageBody: JSON.stringify({ Records }),
          MessageSystemAttributes: {
            AWSTraceHeader: {
              DataType: 'String',
              StringValue: 'Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1',
            },
          },
          MessageAttributes: {
            traceparent: { DataType: 'String', StringValue: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00' },
          },
        }),
      );

      const message = await messageSpan(otlp, 'old/event.txt');
      const [head, ...heads] = otlp.named('S3.HeadObject');
      const [bulk, ...bulks] = otlp.named('bulk');
      expect([heads, bulks]).toEqual([[], []]);
      expect(message).toMatchObject({
        name: `process ${queue.url.split('/').at(-1)}`,
        parentSpanId: undefined,
        isError: false,
        attributes: { 'aws.s3.bucket': bucket, 'tally.outcomes': ['written'], 'tally.settlement': 'delete' },
        resource: { 'service.name': 'tally' },
      });
      expect(message.links).toEqual([
        { traceId: '5759e988bd862e3fe1be46a994272793', spanId: '53995c3f42cd8ad8', isSampled: true, isRemote: true },
        { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', isSampled: false, isRemote: true },
        { traceId: bulk?.traceId, spanId: bulk?.spanId, isSampled: true, isRemote: false },
      ]);
      expect(head).toMatchObject({
        traceId: message.traceId,
        parentSpanId: message.spanId,
        attributes: { 'aws.s3.bucket': bucket, 'aws.s3.key': 'old/event.txt', 'http.response.status_code': 200 },
      });
      expect(bulk).toMatchObject({ parentSpanId: undefined, attributes: { 'db.system.name': 'sqlite' } });
      expect(bulk?.links).toEqual([{ traceId: message.traceId, spanId: message.spanId, isSampled: true, isRemote: false }]);
      expect(bulk?.traceId).not.toBe(message.traceId);
      // in the order they happened
      const moments = [message.startNs, head?.startNs, head?.endNs, bulk?.startNs, bulk?.endNs, message.endNs].map(Number);
      // each is rounded to the millisecond at its beginning
      for (const [index, moment] of moments.entries()) expect(moment).toBeGreaterThanOrEqual((moments[index - 1] ?? 0) - 1e6);
      expect(otlp.exports[0]?.['authorization']).toBe(`Bearer ${SECRET}`);
      tellsNoSecret(daemon);
    },
    600_000,
  );

  test.concurrent('of an absent object tell the check of its bucket, and what ended at the stop is sent, by the SDK that is loaded for it', async () => {
    await using collector = await startCollector();
    const { otlp, env } = collector;
    await using flow = await openFlow('sqlite');
    await using modules = await noteModules();
    const { world } = flow;
    const daemon = await flow.start({
      ...env,
      ...modules.env,
      OTEL_BSP_SCHEDULE_DELAY: '600000',
      OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
    });
    world.send(world.put('k'));
    await flow.converged(daemon);
    world.send(world.remove('k'));
    await flow.converged(daemon);
    expect(otlp.exports).toEqual([]);
    expect(await daemon.stop()).toEqual(STOPPED);
    const message = otlp.spans.find(({ attributes }) => attributes['tally.event_name'] === 'ObjectRemoved:Delete');
    const children = otlp.spans.filter(({ parentSpanId }) => parentSpanId === message?.spanId);
    expect(children.map(({ name, isError, attributes }) => [name, isError, attributes['http.response.status_code']])).toEqual([
      ['S3.HeadObject', false, 404],
      ['S3.HeadBucket', false, 200],
      // only what was sent after the bucket had answered counts
      ['S3.HeadObject', false, 404],
    ]);
    expect(otlp.named('bulk').map(({ attributes }) => attributes['db.system.name'])).toEqual(['sqlite', 'sqlite']);
    expect(await modules.haveSdk()).toBe(true);
  }, 600_000);

  test.concurrent('without an endpoint load no module of the SDK', async () => {
    await using flow = await openFlow('sqlite');
    await using modules = await noteModules();
    const daemon = await flow.start({ ...modules.env, OTEL_SERVICE_NAME: 'x', OTEL_TRACES_SAMPLER: 'nonsense' });
    flow.world.send(flow.world.put('k'));
    await flow.converged(daemon);
    expect(await modules.haveSdk()).toBe(false);
  }, 600_000);
});

// the exporter's own tests have each way to fail
test.concurrent('a collector that does not answer holds up no stop', async () => {
  await using collector = await startCollector();
  const { otlp, env } = collector;
  otlp.behave({ kind: 'hang' });
  await using flow = await openFlow('sqlite');
  const { world } = flow;
  // an export alone may take longer than the whole stop
  const daemon = await flow.start({ ...env, OTEL_EXPORTER_OTLP_TIMEOUT: '600000' });
  world.send(world.put('k'));
  await flow.converged(daemon);
  await until('an export hangs', () => otlp.exports.length > 0);
  expect(await daemon.stop()).toEqual(STOPPED);
  expect(daemon.logged('spans were lost at the stop: the collector did not accept them in time')).toHaveLength(1);
  expect(world.messages()).toEqual({ visible: [], inFlight: [] });
}, 600_000);
