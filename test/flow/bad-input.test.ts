import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../support/servers/aws.ts';
import type { Daemon } from '../support/servers/daemon.ts';
import { runTally } from '../support/servers/daemon.ts';
import type { Flow } from '../support/worlds/flow.ts';
import { oneOf } from '../support/breadth.ts';
import { bucketDifference, indexKinds, openFlow } from '../support/worlds/flow.ts';
import type { StoredMessage } from '../support/worlds/queue.ts';

const MIB = 1_048_576;

/** A native record of a put that nothing is wrong with, until fields of it are changed. */
function recordOf(bucket: string, key: string): Record<string, unknown> {
  return {
    eventVersion: '2.1',
    eventSource: 'aws:s3',
    eventTime: new Date().toISOString(),
    eventName: 'ObjectCreated:Put',
    s3: { bucket: { name: bucket }, object: { key, size: 1, eTag: 'e' } },
  };
}

function bodyOf(...records: readonly unknown[]): string {
  return JSON.stringify({ Records: records });
}

/** Bodies that can never be handled, with the fault that each is dead-lettered with: test/events has each form of each fault. */
function badBodies(bucket: string): readonly (readonly [fault: string, body: string])[] {
  return [
    ['message.not-json', 'read\tfrom right to left:\r\n\u202e'],
    ['message.not-json', 'x'.repeat(MIB)],
    ['message.unknown-wrapper', '{"__proto__":{"Records":[]},"constructor":{"prototype":{"polluted":true}}}'],
    ['record.invalid', bodyOf(recordOf(bucket, `%1B[2J%0D%0A%E2%80%AE${'k'.repeat(1_024)}`))],
  ];
}

/** A body of 1 MiB leaves no room for attributes. */
function givenFault([fault, body]: readonly [string, string]): string | undefined {
  return body.length === MIB ? undefined : fault;
}

function attributeOf(letter: StoredMessage | undefined, name: string): string | undefined {
  return letter?.messageAttributes[name]?.StringValue;
}

interface Letter {
  readonly id: string;
  readonly fault?: string;
  readonly reason?: string;
  readonly size_bytes: number;
  readonly context?: { readonly records?: readonly number[] };
  readonly body?: string;
}

async function listLetters(daemon: Daemon): Promise<readonly Letter[]> {
  const { status, body } = await daemon.request('GET', '/v1/dead-letters?limit=1000');
  expect(status).toBe(200);
  return (body as { readonly items: readonly Letter[] }).items;
}

/** A message that a busy machine holds for longer would be received a second time, and become a second dead letter. */
const HOLDS = { TALLY_INGEST_VISIBILITY_S: '60' };

/** Tests of one daemon, in their order. */
describe.each(oneOf(indexKinds))('bad input, with index %s,', (kind) => {
  let flow: Flow;
  let daemon: Daemon;
  let bad: ReturnType<typeof badBodies>;
  beforeAll(async () => {
    flow = await openFlow(kind);
    bad = badBodies(flow.world.bucket);
    daemon = await flow.start(HOLDS);
  });
  afterAll(() => flow?.[Symbol.asyncDispose]());

  test('is dead-lettered untouched, with its fault, and its neighbours are indexed', async () => {
    const { world } = flow;
    bad.forEach(([, body], each) => world.send(world.put(`good/${each}`), body));
    await flow.converged(daemon);
    const letters = world.deadLetters();
    expect(letters).toHaveLength(bad.length);
    for (const [fault, body] of bad) {
      const letter = letters.find((each) => each.body === body);
      const start = body.slice(0, 100);
      expect({ start, isThere: letter !== undefined }).toEqual({ start, isThere: true });
      expect({ start, fault: attributeOf(letter, 'tally-fault') }).toEqual({ start, fault: givenFault([fault, body]) });
      expect(attributeOf(letter, 'tally-reason') ?? '').toMatch(/^[\x20-\x7e]*$/);
    }
    // the log escapes what it repeats of them
    for (const line of daemon.logged('message dead-lettered')) expect(String(line['reason'])).toMatch(/^[^\p{Cc}\u202e]*$/u);
    // a request that a busy machine answers too late is repeated, and is no request that failed for a body
    expect(daemon.logged('request failed').filter(({ code }) => code !== 'index.unreachable')).toEqual([]);
  });

  test('can be listed, shown, replayed and discarded', async () => {
    const { world } = flow;
    const letters = await listLetters(daemon);
    expect(letters.map(({ fault }) => String(fault)).toSorted()).toEqual(bad.map((each) => String(givenFault(each))).toSorted());
    const invalid = letters.find(({ fault }) => fault === 'record.invalid');
    const whole = letters.find(({ fault }) => fault === 'message.unknown-wrapper');
    expect([invalid?.context?.records, whole?.context?.records]).toEqual([[0], []]);
    const { body: shown } = await daemon.request('GET', `/v1/dead-letters/${invalid?.id}`);
    expect(bad.map(([, body]) => body)).toContain((shown as Letter).body);

    // an event that SQS gave up can be handled after all; until then its bucket has a gap
    const { neighbour } = world;
    world.bury(neighbour.put('buried'));
    let buried: Letter | undefined;
    // what another look of the daemon hides is in no list meanwhile
    await until('the letter is listed', async () => {
      buried = (await listLetters(daemon)).find(({ fault, size_bytes }) => fault === undefined && size_bytes < MIB);
      return buried !== undefined;
    });
    const gaps = async (): Promise<string> => JSON.stringify((await daemon.request('GET', `/v1/gaps?bucket=${neighbour.bucket}`)).body);
    await until('the gap is open', async () => (await gaps()).includes('dead letter: message.moved'));
    // the watch of the daemon hides them from another look meanwhile
    await until('the command lists every letter', async () => {
      const listed = await runTally(['dead-letters', 'list', '--json'], daemon.operator);
      return (JSON.parse(listed.stdout) as { readonly items: readonly Letter[] }).items.length === bad.length + 1;
    });
    // it may do so again before the next command
    await until('the letter is replayed', async () => {
      const { code, stderr } = await runTally(['dead-letters', 'replay', buried?.id ?? '', '--json'], daemon.operator);
      expect(code === 0 ? stderr : JSON.parse(stderr)).toEqual(
        code === 0 ? '' : expect.objectContaining({ code: 'dead-letter.not-found' }),
      );
      return code === 0;
    });
    await until('the buried object is indexed', async () => (await bucketDifference(daemon, neighbour)) === undefined);

    expect(await daemon.request('POST', '/v1/dead-letters/discard', { ids: [whole?.id] })).toEqual({
      status: 200,
      body: expect.objectContaining({ discarded: 1 }),
    });
    expect(await daemon.request('GET', `/v1/dead-letters/${whole?.id}`)).toMatchObject({ status: 404 });
    // a store that does not answer in time is a 503, and the caller repeats the request
    await until('all are discarded', async () => {
      const { status } = await daemon.request('POST', '/v1/dead-letters/discard', { all: true });
      expect([200, 503]).toContain(status);
      return world.deadLetters().length === 0;
    });
  });
});
