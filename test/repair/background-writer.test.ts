import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { documentOf } from '../../src/ordering/document.ts';
import { FaultError } from '../../src/base/fault.ts';
import type { WriteRequest } from '../../src/observing/bulk-writer.ts';
import type { IndexWrite, IndexWriteAnswer, ObjectIndex } from '../../src/store/store.ts';
import { createBackgroundWriter } from '../../src/repair/background-writer.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { createTestCircuits } from '../support/fakes/circuits.ts';

const overloaded = new FaultError('index.overloaded', '429');
const LIMITS = { actionsMax: 10, bytesMax: 100_000, concurrency: 2 };

async function setUp(limits: Partial<typeof LIMITS> = {}) {
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const store = createMemoryStore();
  await store.objects.createBucket('b');
  const requests: { readonly keys: readonly string[]; readonly atMs: number }[] = [];
  const world = {
    isBusy: false,
    inFlight: 0,
    inFlightMax: 0,
    /** What happens to a request: the store's answers unless it says otherwise. */
    answer: (_writes: readonly IndexWrite[]): Promise<readonly IndexWriteAnswer[] | undefined> => Promise.resolve(undefined),
  };
  const objects: ObjectIndex = {
    ...store.objects,
    write: async (writes, signal) => {
      requests.push({ keys: writes.map(({ document }) => document.key), atMs: clock.monotonicMs() });
      world.inFlight += 1;
      world.inFlightMax = Math.max(world.inFlightMax, world.inFlight);
      try {
        return (await world.answer(writes)) ?? (await store.objects.write(writes, signal));
      } finally {
        world.inFlight -= 1;
      }
    },
  };
  const circuits = createTestCircuits({ clock, telemetry });
  const { writeAll } = createBackgroundWriter({
    objects,
    clock,
    telemetry,
    circuits,
    limits: { ...LIMITS, ...limits },
    liveIsBusy: () => world.isBusy,
  });

  function writesOf(keys: readonly string[], lifeMs = 30_000): readonly WriteRequest[] {
    return keys.map((key) => {
      const facts = { bucket: 'b', key, clock: 1_000, settled: true, source: 'listing', cause: {}, stateAtMs: 0, nowMs: 0 } as const;
      const document = documentOf({ ...facts, state: { present: true, etag: 'e' } });
      return { document, equalClock: 'accept', expiresAtMs: clock.monotonicMs() + lifeMs };
    });
  }

  return Object.assign(world, { clock, telemetry, store, writeAll, requests, writesOf });
}

const numbered = (count: number, name = 'k'): string[] => Array.from({ length: count }, (_, index) => `${name}${index}`);
const kinds = (answers: readonly { readonly kind: string }[]): string[] => answers.map(({ kind }) => kind);

describe('the background writer', () => {
  it('sends whole batches, and answers each write in order', async () => {
    const { writeAll, writesOf, requests } = await setUp({ concurrency: 1 });
    const answers = await Promise.all([
      writeAll(writesOf(numbered(10, 'a'))),
      writeAll(writesOf(numbered(4, 'b'))),
      writeAll(writesOf(numbered(4, 'c'))),
    ]);
    expect(answers.map((each) => each.length)).toEqual([10, 4, 4]);
    expect(new Set(kinds(answers.flat()))).toEqual(new Set(['written']));
    expect(requests.map(({ keys }) => keys.length)).toEqual([10, 4, 4]);
  });

  it('keeps to its bytes and to so many requests at once', async () => {
    const world = await setUp({ bytesMax: 3_000 });
    await world.writeAll(world.writesOf(numbered(20)));
    expect(Math.max(...world.requests.map(({ keys }) => keys.length))).toBe(4);
    expect(world.inFlightMax).toBe(2);
  });

  it.each([
    ['counts the enrichment of documents towards the bytes of a request', 3_000, 400],
    ['sends a document that alone is over its bytes', 10, 1],
  ])('%s', async (_, bytesMax, noteSize) => {
    const world = await setUp({ bytesMax });
    const enriched = world.writesOf(numbered(4)).map((write) => {
      return { ...write, document: { ...write.document, user_metadata: { note: 'x'.repeat(noteSize) } } };
    });
    expect(new Set(kinds(await world.writeAll(enriched)))).toEqual(new Set(['written']));
    expect(world.requests.map(({ keys }) => keys.length)).toEqual([1, 1, 1, 1]);
  });

  it('tells what was refused, faulted and tied apart, tells a fault of the whole request of each write, and never sends what has expired', async () => {
    const world = await setUp();
    const fault = { kind: 'fault', fault: { code: 'bucket.index-blocked', reason: 'x' } } as const;
    const answered = [{ kind: 'written' }, { kind: 'superseded' }, { kind: 'equal' }, fault] as const;
    world.answer = async () => answered;
    expect(await world.writeAll(world.writesOf(numbered(4)))).toEqual(answered);
    world.answer = () => Promise.reject(new FaultError('index.unreachable', 'gone'));
    expect(await world.writeAll(world.writesOf(['a']))).toEqual([{ kind: 'fault', fault: { code: 'index.unreachable', reason: 'gone' } }]);
    expect(kinds(await world.writeAll(world.writesOf(['late'], 0)))).toEqual(['expired']);
    expect(world.requests.flatMap(({ keys }) => keys)).not.toContain('late');
  });

  it('rejects with the signal’s reason, and sends nothing more of that caller', async () => {
    const world = await setUp({ actionsMax: 1, concurrency: 1 });
    const stop = new AbortController();
    world.answer = async () => {
      stop.abort(new Error('stopping'));
      return undefined;
    };
    await expect(world.writeAll(world.writesOf(['a', 'b', 'c']), stop.signal)).rejects.toThrow('stopping');
    world.answer = async () => undefined;
    expect(kinds(await world.writeAll(world.writesOf(['d'])))).toEqual(['written']);
    expect(world.requests.flatMap(({ keys }) => keys)).toEqual(['a', 'd']);
  });
});

describe('the background writer that is pushed back (429)', () => {
  it('sends the same writes again after a pause, first, and with fewer requests at once', async () => {
    const world = await setUp({ actionsMax: 1, concurrency: 4 });
    let pushBacks = 4;
    world.answer = async () => {
      pushBacks -= 1;
      if (pushBacks >= 0) throw overloaded;
      return undefined;
    };
    const written = world.writeAll(world.writesOf(numbered(8)));
    await world.clock.advance(0);
    expect(world.requests).toHaveLength(4);
    world.inFlightMax = 0;
    await world.clock.advance(20_000);
    expect(kinds(await written)).toEqual(Array.from({ length: 8 }, () => 'written'));
    expect(world.inFlightMax).toBeLessThan(4);
    const [first] = world.requests.slice(4);
    expect(first?.atMs).toBeGreaterThanOrEqual(250);
    expect(new Set(world.requests.slice(0, 4).flatMap(({ keys }) => keys))).toContain(first?.keys[0]);
  });

  it('gives up when they expire, and says why', async () => {
    const world = await setUp();
    world.answer = () => Promise.reject(overloaded);
    const written = world.writeAll(world.writesOf(['a']));
    await world.clock.advance(60_000);
    expect(await written).toEqual([{ kind: 'fault', fault: { code: 'index.overloaded', reason: '429' } }]);
    // at most as often as its pauses allow, and never after they expired
    expect(world.requests.length).toBeLessThan(10);
    expect(Math.max(...world.requests.map(({ atMs }) => atMs))).toBeLessThan(30_000);
  });

  it('comes back to all its requests at once when that is over', async () => {
    const world = await setUp({ actionsMax: 1, concurrency: 4 });
    let isPushingBack = true;
    world.answer = async () => {
      if (isPushingBack) throw overloaded;
      return undefined;
    };
    const first = world.writeAll(world.writesOf(numbered(4)));
    await world.clock.advance(0);
    isPushingBack = false;
    await world.clock.advance(20_000);
    await first;
    await world.writeAll(world.writesOf(numbered(40)));
    world.inFlightMax = 0;
    await world.writeAll(world.writesOf(numbered(8)));
    expect(world.inFlightMax).toBe(4);
  });
});

it('the background writer beside a busy live path sends one request at a time, and pauses as long as it took', async () => {
  const world = await setUp({ actionsMax: 1, concurrency: 4 });
  world.isBusy = true;
  world.answer = async () => {
    await world.clock.sleep(100);
    return undefined;
  };
  const written = world.writeAll(world.writesOf(numbered(4)));
  await world.clock.advance(2_000);
  expect(kinds(await written)).toEqual(Array.from({ length: 4 }, () => 'written'));
  expect(world.inFlightMax).toBe(1);
  expect(world.requests.map(({ atMs }) => atMs)).toEqual([0, 200, 400, 600]);
});

it('whatever the store answers every write is answered exactly once, and what is answered as written is stored', async () => {
  const fate = fc.constantFrom('ok', 'ok', 'pushed back', 'unreachable', 'item pushed back');
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 25 }), { minLength: 1, maxLength: 5 }),
      fc.array(fate, { maxLength: 12 }),
      async (sizes, fates) => {
        const world = await setUp();
        let turn = 0;
        world.answer = async (writes) => {
          const now = fates[turn];
          turn += 1;
          if (now === 'pushed back') throw overloaded;
          if (now === 'unreachable') throw new FaultError('index.unreachable', 'gone');
          if (now !== 'item pushed back') return undefined;
          const [first, ...rest] = writes;
          const answers = await world.store.objects.write(rest);
          return first === undefined ? [] : [{ kind: 'fault', fault: { code: 'bucket.index-overloaded', reason: '429' } }, ...answers];
        };
        const keys = sizes.map((size, index) => numbered(size, `${index}-`));
        const all = Promise.all(keys.map((each) => world.writeAll(world.writesOf(each))));
        await world.clock.advance(120_000);
        const answers = await all;
        expect(answers.map((each) => each.length)).toEqual(sizes);
        const stored = await world.store.objects.getMany('b', keys.flat());
        answers.flat().forEach((answer, index) => {
          if (answer.kind === 'written') expect(stored[index]).toBeDefined();
          else expect(['fault', 'expired']).toContain(answer.kind);
        });
      },
    ),
    { numRuns: 100 },
  );
});
