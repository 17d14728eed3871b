import { circuitsReported, createTestCircuits } from '../support/fakes/circuits.ts';
import { setImmediate } from 'node:timers/promises';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Clock } from '../../src/process/clock.ts';
import { documentOf, type ObjectState } from '../../src/ordering/document.ts';
import { FaultError } from '../../src/base/fault.ts';
import { createBulkWriter, type BulkLimits, type WriteRequest } from '../../src/observing/bulk-writer.ts';
import { createLiveLoad } from '../../src/observing/live-load.ts';
import type { IndexWrite, IndexWriteAnswer, WriteAnswer } from '../../src/store/store.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';
import { createBreakableStore, settled } from '../support/worlds/ingest.ts';

interface WriteChange {
  readonly bucket?: string;
  readonly clock?: number;
  readonly state?: ObjectState;
  readonly lifeMs?: number;
}

const LIMITS: BulkLimits = { actionsMax: 10, bytesMax: 100_000, lingerMs: 20, concurrency: 2 };
const overloaded = new FaultError('index.overloaded', '429');

type Write = (writes: readonly IndexWrite[]) => Promise<readonly IndexWriteAnswer[]>;

/** `through`: what is between the writer and the store. */
async function setUp(
  limits: Partial<BulkLimits> = {},
  through: (plain: Write, world: { readonly clock: Clock }) => Write = (plain) => plain,
) {
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const load = createLiveLoad({ clock, telemetry, heldMax: 100, bulkConcurrency: limits.concurrency ?? LIMITS.concurrency });
  const store = createBreakableStore();
  await store.objects.createBucket('b');
  const writeDocument = createBulkWriter({
    objects: { ...store.objects, write: through((writes) => store.objects.write(writes), { clock }) },
    clock,
    telemetry,
    circuits: createTestCircuits({ clock, telemetry }),
    limits: { ...LIMITS, ...limits },
    load,
  });
  const answers = new Map<string, WriteAnswer[]>();

  function write(key: string, change: WriteChange = {}) {
    const facts = {
      bucket: change.bucket ?? 'b',
      key,
      state: change.state ?? ({ present: true, etag: 'e' } as const),
      clock: change.clock ?? 1_000,
      settled: true,
    };
    const document = documentOf({ ...facts, source: 'native', cause: {}, stateAtMs: 0, nowMs: 0 });
    const request = { document, equalClock: 'refuse', expiresAtMs: clock.monotonicMs() + (change.lifeMs ?? 30_000) } as const;
    return writeDocument(request).then((answer) => {
      answers.set(key, [...(answers.get(key) ?? []), answer]);
      return answer;
    });
  }

  const keysOf = (writes: readonly IndexWrite[]) => writes.map(({ document }) => document.key);
  return { clock, telemetry, load, store, write, answers, requests: () => store.requests.map(keysOf) };
}

type World = Awaited<ReturnType<typeof setUp>>;

async function run({ clock }: World, forMs: number): Promise<void> {
  await clock.advance(forMs);
  await settled();
}

/** A write, and time enough for its request. */
async function sent(world: World, ...write: Parameters<World['write']>): Promise<void> {
  void world.write(...write);
  await run(world, LIMITS.lingerMs);
}

describe('a bulk request', () => {
  it('waits for more until it has lingered', async () => {
    const world = await setUp();
    void world.write('a');
    await run(world, 10);
    void world.write('b');
    expect(world.requests()).toEqual([]);
    await run(world, 10);
    expect(world.requests()).toEqual([['a', 'b']]);
    expect([...world.answers]).toEqual([
      ['a', [{ kind: 'written' }]],
      ['b', [{ kind: 'written' }]],
    ]);
  });

  it('lingers on while it fills fast, five times at most', async () => {
    const world = await setUp({ actionsMax: 1_000, bytesMax: 10_000_000 });
    const MANY = 2 * LIMITS.lingerMs;
    const writeMany = (from: string): void => {
      for (let count = 0; count < MANY; count += 1) void world.write(`${from}-${count}`);
    };
    writeMany('a');
    await run(world, 10);
    writeMany('b');
    await run(world, 10);
    expect(world.requests()).toEqual([]);
    // nothing more comes
    await run(world, 20);
    expect(world.requests().map((each) => each.length)).toEqual([2 * MANY]);
    for (let round = 0; round < 5; round += 1) {
      writeMany(`c-${round}`);
      await run(world, 20);
    }
    expect(world.requests().map((each) => each.length)).toEqual([2 * MANY, 5 * MANY]);
  });

  const tags = { tag: 'v'.repeat(1_024) };
  it.each<[string, Partial<BulkLimits>, number, WriteChange]>([
    ['actions', { actionsMax: 2 }, 1, {}],
    ['bytes', { bytesMax: 14_000 }, 1_024, {}],
    ['bytes, with what enrichment adds', { bytesMax: 10_000 }, 1, { state: { present: true, etag: 'e', tags } }],
  ])('is sent at once when it is full of %s, and never over them; one that ends sends what waits', async (_, limits, keyLength, change) => {
    const world = await setUp(limits);
    for (const letter of ['a', 'b', 'c']) void world.write(letter.repeat(keyLength), change);
    await settled();
    expect(world.requests().map((each) => each.length)).toEqual([2, 1]);
  });

  it('waits while as many are in flight as may be, and takes all that came meanwhile', async () => {
    const world = await setUp({ concurrency: 1, actionsMax: 100 });
    const answering = Promise.withResolvers<void>();
    world.store.broken.beforeWrite = () => answering.promise;
    await sent(world, 'a');
    for (const key of ['b', 'c', 'd']) void world.write(key);
    await run(world, 1_000);
    expect(world.requests()).toEqual([['a']]);
    answering.resolve();
    await settled();
    expect(world.requests()).toEqual([['a'], ['b', 'c', 'd']]);
    // the store took a second for the first
    expect(world.load.isBusy()).toBe(true);
    expect(world.telemetry.values('tally_bulk_queued_actions').at(-1)).toBe(0);
    expect(world.telemetry.values('tally_bulk_in_flight_requests').at(-1)).toBe(0);
  });
});

describe('a write', () => {
  it.each<[string, WriteChange, WriteAnswer['kind']]>([
    ['a higher clock is superseded', { clock: 999 }, 'superseded'],
    ['its very clock and the same content is superseded', {}, 'superseded'],
    ['its very clock and other content is a tie', { state: { present: true, etag: 'f' } }, 'equal'],
    ['its very clock and an object, being an absence, is a tie', { state: { present: false } }, 'equal'],
  ])('that meets %s', async (_what, change, kind) => {
    const world = await setUp();
    await sent(world, 'a');
    await sent(world, 'a', change);
    expect(world.answers.get('a')).toEqual([{ kind: 'written' }, { kind }]);
  });

  it('that the store refuses without telling the stored clock is superseded where something newer is stored', async () => {
    const world = await setUp(
      {},
      (write) => async (writes) => (await write(writes)).map((answer) => (answer.kind === 'superseded' ? { kind: 'equal' } : answer)),
    );
    await sent(world, 'a');
    await sent(world, 'a', { clock: 999, state: { present: true, etag: 'older' } });
    expect(world.answers.get('a')).toEqual([{ kind: 'written' }, { kind: 'superseded' }]);
  });

  it('that meets its very clock on a provisional document is a tie, the same content or not', async () => {
    const world = await setUp();
    const facts = { bucket: 'b', key: 'a', state: { present: true, etag: 'e' }, clock: 1_000, settled: false } as const;
    const document = documentOf({ ...facts, source: 'routed', cause: {}, stateAtMs: 0, nowMs: 0 });
    await world.store.plainObjects.write([{ document, equalClock: 'accept' }]);
    await sent(world, 'a');
    expect(world.answers.get('a')).toEqual([{ kind: 'equal' }]);
  });

  it.each([
    ['bucket.index-denied', ['index b']],
    ['index.unreachable', []],
  ] as const)(
    'that meets its very clock, where the document cannot be read then (%s), is no repeat and tells the fault',
    async (code, circuits) => {
      let answered = (): void => undefined;
      const world = await setUp({}, (write) => async (writes) => {
        const answers = await write(writes);
        answered();
        return answers;
      });
      await sent(world, 'a');
      answered = () => {
        world.store.broken.all = new FaultError(code, 'not read');
      };
      await sent(world, 'a');
      expect(world.answers.get('a')).toEqual([{ kind: 'written' }, { kind: 'fault', fault: { code, reason: 'not read' } }]);
      expect(circuitsReported(world.telemetry, 'opened')).toEqual(circuits);
    },
  );

  it('whose request fails tells that request’s fault, once, and is not sent again', async () => {
    const world = await setUp();
    world.store.broken.writes = new FaultError('index.unreachable', 'gone');
    void world.write('a');
    await run(world, 60_000);
    expect(world.requests()).toEqual([['a']]);
    expect(world.answers.get('a')).toEqual([{ kind: 'fault', fault: { code: 'index.unreachable', reason: 'gone' } }]);
    expect(world.telemetry.labels('tally_bulk_requests_total')).toEqual([{ result: 'index.unreachable' }]);
  });
});

function tombstone(key: string): IndexWrite['document'] {
  const facts = { bucket: 'b', key, state: { present: false }, clock: 1, settled: true, source: 'native', cause: {} } as const;
  return documentOf({ ...facts, stateAtMs: 0, nowMs: 0 });
}

it('a request that the server refuses as a whole is halved down to the write that it refuses, and each half has its own end', async () => {
  const alone = { kind: 'fault', fault: { code: 'index.rejected', reason: '413' } } as const;
  const world = await setUp({}, (write) => async (writes) => {
    if (writes.some(({ document }) => document.key === 'large')) {
      if (writes.length > 1) throw new FaultError('index.rejected', '413');
      return [alone];
    }
    if (writes.some(({ document }) => document.key === 'late')) throw new FaultError('index.unreachable', 'gone');
    return write(writes);
  });
  for (const key of ['a', 'large', 'b', 'c', 'late']) void world.write(key);
  await run(world, 20);
  expect(world.requests()).toEqual([['a'], ['b']]);
  const ends = [...world.answers].map(([key, [answer]]) => [key, answer?.kind === 'fault' ? answer.fault.code : answer?.kind]);
  expect(Object.fromEntries(ends)).toEqual({
    a: 'written',
    large: 'index.rejected',
    b: 'written',
    c: 'index.unreachable',
    late: 'index.unreachable',
  });
  expect(circuitsReported(world.telemetry, 'opened')).toEqual([]);
});

describe('a push-back', () => {
  const pushedBack = { kind: 'fault', fault: { code: 'bucket.index-overloaded', reason: '429' } } as const;

  it('of some items has only those sent again, and others answered at once', async () => {
    let attempts = 0;
    const world = await setUp({}, (write) => async (writes) => {
      attempts += 1;
      const answers = await write(writes);
      const isBusy = (index: number): boolean => attempts === 1 && writes[index]?.document.key.startsWith('busy') === true;
      return answers.map((answer, index) => (isBusy(index) ? pushedBack : answer));
    });
    for (const key of ['a', 'busy-1', 'b', 'busy-2']) void world.write(key, { state: { present: false } });
    await run(world, 20);
    expect([...world.answers.keys()]).toEqual(['a', 'b']);
    await run(world, 1_000);
    // they were written at once in this store
    expect([...world.answers].map(([key, [answer]]) => `${key} ${answer?.kind}`)).toEqual([
      'a written',
      'b written',
      'busy-1 superseded',
      'busy-2 superseded',
    ]);
    expect(world.requests().slice(1)).toEqual([['busy-1', 'busy-2']]);
  });

  it('of a part of each request is the back-pressure of a busy index, and never opens its circuit', async () => {
    let items = 0;
    const world = await setUp({}, (write, { clock }) => async (writes) => {
      await clock.sleep(10);
      const answers = await write(writes);
      return answers.map((answer) => ((items += 1) % 3 === 0 ? pushedBack : answer));
    });
    for (let count = 0; count < 300; count += 1) void world.write(`k-${count}`);
    await run(world, 10_000);
    expect([...world.answers.values()].flat().filter(({ kind }) => kind === 'fault')).toEqual([]);
    expect(world.answers.size).toBe(300);
    expect(circuitsReported(world.telemetry, 'opened')).toEqual([]);
  });

  it('of a whole request has it sent again in halves, later and later', async () => {
    const world = await setUp({ concurrency: 1 });
    world.store.broken.beforeWrite = async () => {
      if (world.requests().length <= 2) throw overloaded;
    };
    for (const key of ['a', 'b', 'c', 'd']) void world.write(key);
    await run(world, 1_000);
    expect(world.requests().map((each) => each.length)).toEqual([4, 2, 1, 1, 2]);
    expect([...world.answers.values()].flat()).toEqual(Array.from({ length: 4 }, () => ({ kind: 'written' })));
  });
});

describe('whatever arrives, whenever the store answers whatever', () => {
  const arrival = fc.record({
    afterMs: fc.constantFrom(0, 0, 0, 1, 5, 30, 400),
    keyLength: fc.constantFrom(1, 10, 1_024),
    lifeMs: fc.constantFrom(50, 2_000, 30_000),
  });
  const answer = fc.record({
    tookMs: fc.constantFrom(0, 1, 50, 3_000),
    result: fc.constantFrom('ok', 'ok', 'ok', 'some-busy', 'busy', 'gone'),
  });
  const limits = fc.record({
    actionsMax: fc.integer({ min: 1, max: 6 }),
    bytesMax: fc.constantFrom(5_000, 10_000, 20_000),
    lingerMs: fc.constantFrom(0, 20),
    concurrency: fc.integer({ min: 1, max: 3 }),
  });

  it('every write is answered exactly once, and no request is over its limits, too many or too late', async () => {
    await fc.assert(
      fc.asyncProperty(
        limits,
        fc.array(arrival, { minLength: 1, maxLength: 40 }),
        fc.array(answer, { minLength: 1 }),
        async (bounds, arrivals, script) => {
          const clock = createFakeClock();
          let inFlight = 0;
          let asked = 0;
          const write = async (writes: readonly IndexWrite[]): Promise<readonly IndexWriteAnswer[]> => {
            const { tookMs, result } = script[asked % script.length]!;
            asked += 1;
            inFlight += 1;
            expect(inFlight).toBeLessThanOrEqual(bounds.concurrency);
            expect(writes.length).toBeLessThanOrEqual(bounds.actionsMax);
            const sizeBytes = writes.reduce((sum, each) => sum + 700 + 4 * each.document.key.length, 0);
            expect(sizeBytes).toBeLessThanOrEqual(bounds.bytesMax);
            for (const each of writes) expect(clock.monotonicMs()).toBeLessThan((each as WriteRequest).expiresAtMs);
            await clock.sleep(tookMs);
            inFlight -= 1;
            if (result === 'gone') throw new FaultError('index.unreachable', 'gone');
            // a store that only ever pushes back ends by expiry
            if (result === 'busy') throw overloaded;
            return writes.map((_, index) =>
              result === 'some-busy' && index % 2 === 0
                ? { kind: 'fault', fault: { code: 'bucket.index-overloaded', reason: '429' } }
                : { kind: 'written' },
            );
          };
          const { objects } = createBreakableStore();
          const writeDocument = createBulkWriter({
            objects: { ...objects, write },
            clock,
            telemetry: createFakeTelemetry(),
            circuits: createTestCircuits({ clock, telemetry: createFakeTelemetry() }),
            limits: bounds,
          });
          const failures: unknown[] = [];
          const answers: WriteAnswer[] = [];
          for (const { afterMs, keyLength, lifeMs } of arrivals) {
            if (afterMs > 0) await clock.advance(afterMs);
            const document = tombstone('k'.repeat(keyLength));
            void writeDocument({ document, equalClock: 'accept', expiresAtMs: clock.monotonicMs() + lifeMs }).then(
              (each) => answers.push(each),
              (error: unknown) => failures.push(error),
            );
          }
          for (let turns = 0; answers.length + failures.length < arrivals.length && turns < 200; turns += 1) {
            await clock.advance(1_000);
            await setImmediate();
          }
          expect(failures).toEqual([]);
          expect(answers).toHaveLength(arrivals.length);
          // a breach of a limit would have been answered as a fault of its own
          expect(answers.filter((each) => each.kind === 'fault' && each.fault.code === 'internal.unexpected')).toEqual([]);
        },
      ),
      { numRuns: 150 },
    );
  });
});
