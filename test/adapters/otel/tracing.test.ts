/** The SDK and its exporter as they are, with a collector in this process. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createOtelTracing, type OtelOptions } from '../../../src/adapters/otel/tracing.ts';
import type { TracedMessage } from '../../../src/pipeline/ports/tracing.ts';
import { createFakeTelemetry } from '../../support/fakes/ports.ts';
import { until } from '../../support/servers/aws.ts';
import { startOtlpReceiver, type OtlpReceiver } from '../../support/servers/otlp-receiver.ts';

const QUEUE = 'https://sqs.eu-central-1.amazonaws.com/123456789012/bucket-events';
const XRAY = 'Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1';
const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00';
/** Longer than any test: only a full batch or the stop exports. */
const NEVER_MS = 600_000;
/** More than any answer takes; where one does not come, its own time-out is shorter. */
const STOP_MS = 60_000;
/** The SDK tries again within its time-out; such an answer is final at once. */
const UNAVAILABLE = { kind: 'answer', status: 503, headers: { 'retry-after': '3600' } } as const;

let otlp: OtlpReceiver;
beforeEach(async () => {
  otlp = await startOtlpReceiver();
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', otlp.url);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await otlp.close();
});

function createWorld(options: Partial<OtelOptions> = {}) {
  const telemetry = createFakeTelemetry();
  const world = createOtelTracing({
    sampler: 'parentbased_always_on',
    samplerRatio: 1,
    limits: { queueMax: 2_048, batchMax: 512, batchDelayMs: NEVER_MS, exportTimeoutMs: 30_000 },
    bulkActionsMax: 1_000,
    index: { 'db.system.name': 'opensearch' },
    version: '1.2.3',
    telemetry,
    ...options,
  });
  return {
    ...world,
    telemetry,
    troubles: () => telemetry.logged('the OpenTelemetry SDK reported a problem'),
    /** The spans that were dropped each time: why, how many, and the error. */
    dropped: () => {
      const lines = telemetry.logged('spans dropped: the trace collector is too slow, unreachable or refused them');
      const counts = telemetry.values('tally_spans_dropped_total');
      return lines.map(({ reason, error }, at) => [reason, counts[at], error]);
    },
  };
}

function message(change: Partial<TracedMessage> = {}): TracedMessage {
  return { queueUrl: QUEUE, messageId: 'm1', body: '{"ü":1}', receiveCount: 3, attributes: {}, ...change };
}

/** Messages that are settled at once. */
function settle({ tracing }: ReturnType<typeof createWorld>, count = 1, change: Partial<TracedMessage> = {}): void {
  for (let each = 0; each < count; each += 1) for (const trace of tracing.message(message(change))) trace.settled('delete');
}

const head = { operation: 'HeadObject', bucket: 'photos', key: 'a/ü.jpg', region: 'eu-central-1' };

describe('the span of a message', () => {
  it('is what the semantic conventions for SQS say', async () => {
    const { tracing, stop } = createWorld();
    const [trace] = tracing.message(message());
    trace?.settled('delete');
    expect(await stop(STOP_MS)).toBe(0);
    expect(otlp.spans).toEqual([
      expect.objectContaining({
        name: 'process bucket-events',
        kind: 'consumer',
        parentSpanId: undefined,
        links: [],
        isError: false,
        attributes: {
          'messaging.system.name': 'aws.sqs',
          'messaging.operation.name': 'process',
          'messaging.operation.type': 'process',
          'messaging.destination.name': 'bucket-events',
          'messaging.message.id': 'm1',
          'messaging.message.body.size': 8,
          'aws.sqs.queue.url': QUEUE,
          'server.address': 'sqs.eu-central-1.amazonaws.com',
          'tally.receive_count': 3,
          'tally.settlement': 'delete',
        },
        resource: expect.objectContaining({ 'service.name': 'tally', 'service.version': '1.2.3' }) as unknown,
      }),
    ]);
    expect(otlp.spans[0]?.endNs).toBeGreaterThanOrEqual(otlp.spans[0]?.startNs ?? 0n);
  });

  it('is linked to the traces that the message came with, each once, as sampled as they are', async () => {
    const world = createWorld();
    const attributes = { traceparent: { stringValue: TRACEPARENT } };
    // the span that the other header names
    const same = { traceparent: { stringValue: '00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01' } };
    settle(world, 1, { traceHeader: XRAY, attributes });
    settle(world, 1, { traceHeader: XRAY, attributes: same });
    settle(world, 1, { traceHeader: 'nonsense' });
    await world.stop(STOP_MS);
    const ofXray = { traceId: '5759e988bd862e3fe1be46a994272793', spanId: '53995c3f42cd8ad8', isSampled: true, isRemote: true };
    expect(otlp.spans.map(({ links }) => links)).toEqual([
      [ofXray, { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', isSampled: false, isRemote: true }],
      [ofXray],
      [],
    ]);
  });

  it('tells the fault, once it has ended nothing more', async () => {
    const { tracing, stop, troubles } = createWorld();
    const [trace] = tracing.message(message());
    trace?.settled('defer', 'object.denied');
    trace?.settled('delete');
    trace?.servedBy({ traceId: '1'.repeat(32), spanId: '2'.repeat(16), isSampled: true });
    await stop(STOP_MS);
    expect(otlp.spans).toEqual([
      expect.objectContaining({
        isError: true,
        links: [],
        attributes: expect.objectContaining({ 'error.type': 'object.denied', 'tally.settlement': 'defer' }) as unknown,
      }),
    ]);
    expect(troubles()).toEqual([]);
  });
});

describe('the span of a request', () => {
  it('to S3 is a child of its first message, linked with the others, each once', async () => {
    const { tracing, stop } = createWorld();
    const [first, second] = [...tracing.message(message()), ...tracing.message(message())];
    const traces = [first!, second!, second!, first!];
    tracing.s3Request({ ...head, traces }).ended(undefined, { status: 404, headers: { 'x-amz-request-id': 'R1' } });
    for (const each of [first!, second!]) each.settled('delete');
    await stop(STOP_MS);
    const [sent] = otlp.named('S3.HeadObject');
    expect(sent).toMatchObject({
      kind: 'client',
      traceId: first!.context.traceId,
      parentSpanId: first!.context.spanId,
      links: [{ traceId: second!.context.traceId, spanId: second!.context.spanId, isRemote: false }],
      isError: false,
      attributes: {
        'rpc.system': 'aws-api',
        'rpc.service': 'S3',
        'rpc.method': 'HeadObject',
        'cloud.region': 'eu-central-1',
        'aws.s3.bucket': 'photos',
        'aws.s3.key': 'a/ü.jpg',
        'http.response.status_code': 404,
        'aws.request_id': 'R1',
      },
    });
    const other = otlp.spans.find(({ spanId }) => spanId === second!.context.spanId);
    expect(other?.links).toEqual([{ traceId: sent?.traceId, spanId: sent?.spanId, isSampled: true, isRemote: false }]);
  });

  it('that failed says with what', async () => {
    const { tracing, stop } = createWorld();
    const traces = tracing.message(message());
    tracing.s3Request({ ...head, traces }).ended('503', { status: 503, headers: {} });
    tracing.bulk([{ traces }]).ended('index.unreachable');
    await stop(STOP_MS);
    expect(otlp.spans.map(({ name, isError, attributes }) => [name, isError, attributes['error.type']])).toEqual([
      ['S3.HeadObject', true, '503'],
      ['bulk', true, 'index.unreachable'],
    ]);
  });

  it('in bulk is one for all its messages, linked both ways, however many they are', async () => {
    const { tracing, stop } = createWorld();
    const all = Array.from({ length: 300 }, () => tracing.message(message()));
    tracing.bulk([...all.map((traces) => ({ traces })), {}, { traces: all[0]! }]).ended(undefined);
    for (const trace of all.flat()) trace.settled('delete');
    await stop(STOP_MS);
    const [bulk, ...more] = otlp.named('bulk');
    expect(more).toEqual([]);
    expect(bulk).toMatchObject({
      kind: 'client',
      parentSpanId: undefined,
      attributes: { 'db.system.name': 'opensearch', 'db.operation.name': 'bulk', 'db.operation.batch.size': 302 },
    });
    expect(bulk?.links.map(({ spanId }) => spanId)).toEqual(all.flat().map(({ context }) => context.spanId));
    const served = otlp.named('process bucket-events');
    expect(served).toHaveLength(300);
    for (const { links } of served) expect(links).toEqual([expect.objectContaining({ traceId: bulk?.traceId, spanId: bulk?.spanId })]);
  });

  it('is none where no message of it is recorded', async () => {
    const { tracing, stop } = createWorld();
    tracing.s3Request(head).ended('503');
    tracing.bulk([{}, { traces: [] }]).ended(undefined);
    expect(await stop(STOP_MS)).toBe(0);
    expect(otlp.exports).toEqual([]);
  });
});

describe('sampling', () => {
  it.each(['always_off', 'parentbased_always_off'] as const)('%s records nothing', async (sampler) => {
    const { tracing, stop } = createWorld({ sampler });
    expect(tracing.message(message({ traceHeader: XRAY }))).toEqual([]);
    await stop(STOP_MS);
    expect(otlp.exports).toEqual([]);
  });

  it.each(['traceidratio', 'parentbased_traceidratio'] as const)(
    '%s records its share of messages, each with all of its requests',
    async (sampler) => {
      const { tracing, stop } = createWorld({ sampler, samplerRatio: 0.25 });
      const all = Array.from({ length: 1_000 }, () => tracing.message(message()));
      for (const traces of all) {
        tracing.s3Request({ ...head, traces }).ended(undefined);
        tracing.bulk([{ traces }]).ended(undefined);
        for (const trace of traces) trace.settled('delete');
      }
      await stop(STOP_MS);
      const recorded = all.flat().length;
      // 250, and 13.7 of standard deviation: this far off once in a million million runs
      expect(Math.abs(recorded - 250)).toBeLessThan(100);
      const counts = ['process bucket-events', 'S3.HeadObject', 'bulk'].map((name) => otlp.named(name).length);
      expect(counts).toEqual([recorded, recorded, recorded]);
    },
  );
});

it("the resource is named by the environment's own variables, which count", async () => {
  vi.stubEnv('OTEL_SERVICE_NAME', 'indexer');
  vi.stubEnv('OTEL_RESOURCE_ATTRIBUTES', 'deployment.environment.name=prod,service.name=not-this,team=a%2Cb');
  const world = createWorld();
  settle(world);
  await world.stop(STOP_MS);
  expect(otlp.spans[0]?.resource).toMatchObject({
    'service.name': 'indexer',
    'service.version': '1.2.3',
    'deployment.environment.name': 'prod',
    team: 'a,b',
    'service.instance.id': expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown,
  });
});

describe('a collector that fails', () => {
  it('gets no more than the queue holds; what does not fit is dropped, and told', async () => {
    otlp.behave({ kind: 'hang' });
    const world = createWorld({ limits: { queueMax: 10, batchMax: 5, batchDelayMs: NEVER_MS, exportTimeoutMs: 30_000 } });
    settle(world, 5);
    await until('an export hangs', () => otlp.exports.length === 1);
    settle(world, 14);
    expect(world.dropped()).toEqual(Array.from({ length: 4 }, () => ['queue-full', 1, undefined]));
    // a stop is held up no longer than it may
    expect(await world.stop(0)).toBe(15);
  });

  it.each([
    ['refuses for good', { kind: 'answer', status: 401, body: 'authorization: Bearer s3cret' }, '60000', 'HTTP 401'],
    ['is overloaded', UNAVAILABLE, '60000', 'Export failed with retryable status'],
    // what was sent must have arrived by then
    ['does not answer', { kind: 'hang' }, '5000', 'Request timed out'],
  ] as const)('and %s costs the export, which is told without what was sent', async (_, behaviour, exportTimeoutMs, error) => {
    vi.stubEnv('OTEL_EXPORTER_OTLP_HEADERS', 'authorization=Bearer%20s3cret');
    vi.stubEnv('OTEL_EXPORTER_OTLP_TIMEOUT', exportTimeoutMs);
    otlp.behave(behaviour);
    const world = createWorld();
    settle(world, 7);
    expect(await world.stop(STOP_MS)).toBe(0);
    expect(otlp.exports[0]?.['authorization']).toBe('Bearer s3cret');
    expect(world.dropped()).toEqual([['export-failed', 7, error]]);
    expect(JSON.stringify(world.telemetry.facts)).not.toContain('s3cret');
  });

  it('and is not there costs the export', async () => {
    // less than the SDK waits before it tries again
    vi.stubEnv('OTEL_EXPORTER_OTLP_TIMEOUT', '750');
    vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', 'http://127.0.0.1:1');
    const world = createWorld();
    settle(world);
    expect(await world.stop(STOP_MS)).toBe(0);
    expect(world.dropped()).toEqual([['export-failed', 1, 'ECONNREFUSED']]);
  });

  it('and recovers gets what ends from then on', async () => {
    vi.stubEnv('OTEL_EXPORTER_OTLP_TIMEOUT', '60000');
    otlp.behave(UNAVAILABLE);
    const world = createWorld({ limits: { queueMax: 10, batchMax: 1, batchDelayMs: NEVER_MS, exportTimeoutMs: 30_000 } });
    settle(world);
    await until('the first export failed', () => world.dropped().length === 1);
    otlp.behave({ kind: 'take' });
    settle(world, 1, { messageId: 'm2' });
    await until('the second arrived', () => otlp.spans.length === 1);
    expect(otlp.spans[0]?.attributes['messaging.message.id']).toBe('m2');
    await world.stop(STOP_MS);
  });
});
