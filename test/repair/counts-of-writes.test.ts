import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import { addCounts, noCounts, shownCounts, type ReconcileCounts } from '../../src/records/counts.ts';
import { ANSWER_LIFE_MS } from '../../src/ordering/constants.ts';
import type { TurnControls } from '../../src/repair/reconcile-turn.ts';
import type { Store } from '../../src/store/store.ts';
import { fill } from '../support/worlds/jobs-fill.ts';
import { createReindexWorld } from '../support/worlds/reindex.ts';
import { createJobsWorld } from '../support/worlds/jobs.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';

const present = { present: true, etag: 'e', sizeBytes: 5 } as const;
type Write = Store['objects']['write'];

/** The sum that holds of every job: each listed key is counted once. */
function expectWhole(counts: ReconcileCounts): void {
  const { listed, equal, incomplete, missing, stale, in_flight } = shownCounts(counts);
  expect(equal + incomplete + missing + stale + in_flight).toBe(listed);
}

describe('what was written is counted whatever becomes of the slice', () => {
  it('that is compared again, because its page became too old: each key once, by what it was first', async () => {
    const world = await createReindexWorld();
    world.put('missing');
    await world.index('changed', world.put('changed'), { etag: 'old' });
    await world.index('same', world.put('same'));
    await world.index('phantom', present);
    let isFirst = true;
    world.hooks.beforeWrite = async () => {
      // an event comes in between, so that only this key is left, and a HEAD must decide it
      if (isFirst) await world.index('changed', present, { ageMs: 0 });
      isFirst = false;
    };
    world.s3.onHead = async (key) => {
      // so slow that each answer is too old, until the page is listed again
      if (key === 'changed' && world.s3.pages.length === 1) await world.clock.advance(ANSWER_LIFE_MS);
    };
    const first = await world.run();
    expect(first).toMatchObject({ done: false, readsFirst: true, fault: { code: 'index.overloaded' } });
    const counts = addCounts(first.counts, (await world.run({ readsFirst: true })).counts);
    expect(shownCounts(counts)).toMatchObject({ listed: 3, equal: 1, missing: 1, stale: 1, phantom: 1, written: 2, tombstones: 1 });
    expect(first.examples).toEqual({ missing: [{ key: 'missing' }], phantom: [{ key: 'phantom' }] });
    expectWhole(counts);
    expect(await world.found()).toEqual(world.bucketHolds());
  });

  it('that ends with a fault, and the next turn completes the sum', async () => {
    const world = await createReindexWorld();
    for (const key of ['a', 'c']) world.put(key);
    await world.index('b', world.put('b'));
    await world.index('d', present);
    const { store } = world;
    const objects = { ...store.objects };
    // one item of the bulk request is refused, the others are written
    (store.objects as { write: Write }).write = async (writes, signal) => {
      const answers = await objects.write(
        writes.filter(({ document }) => document.key !== 'c'),
        signal,
      );
      const given = [...answers];
      return writes.map(({ document }) =>
        document.key === 'c' ? { kind: 'fault', fault: { code: 'bucket.index-unavailable', reason: 'no shard' } } : given.shift()!,
      );
    };
    const first = await world.run();
    expect(first).toMatchObject({ done: false, cursor: '', fault: { code: 'bucket.index-unavailable' } });
    expect(first.counts).toMatchObject({ listed: 0, missing: 1, phantom: 1, written: 1, tombstones: 1 });
    expect(first.examples).toMatchObject({ missing: [{ key: 'a' }], phantom: [{ key: 'd' }] });
    Object.assign(store.objects, objects);
    const second = await world.run();
    const both = shownCounts(addCounts(first.counts, second.counts));
    expect(both).toMatchObject({ listed: 3, equal: 1, missing: 2, phantom: 1, written: 2, tombstones: 1 });
    expectWhole(both);
  });

  it('and of a turn that is abandoned its caller hears in time', async () => {
    const world = await createReindexWorld();
    world.s3.pageSize = 1;
    for (const key of ['a', 'b', 'c']) world.put(key);
    const stop = new AbortController();
    world.hooks.beforeWrite = (writes) => {
      if (!writes.some(({ document }) => document.key === 'c')) return;
      stop.abort(new Error('stopped'));
      throw new FaultError('index.unreachable', 'it is written no more');
    };
    let heard: ReconcileCounts = noCounts;
    const progressed: TurnControls['progressed'] = ({ counts }) => {
      heard = counts;
    };
    await expect(world.run({}, { progressed }, stop.signal)).rejects.toThrow('stopped');
    const stored = (await world.found()).length;
    expect(stored).toBeGreaterThan(0);
    expect(heard).toMatchObject({ missing: stored, written: stored, differed: stored });
  });
});

describe('the counts of a job', () => {
  it.each([100, 3_000])('name every deletion and every write where a HEAD takes %i ms', async (headMs) => {
    const world = await createJobsWorld({ cutKeysMin: 100 });
    for (let number = 0; number < 400; number += 1) {
      await world.has(`k/${String(number).padStart(5, '0')}a`, 'index');
      await world.has(`k/${String(number).padStart(5, '0')}b`, 'bucket');
    }
    world.s3.onHead = () => world.clock.sleep(headMs);
    world.startWorker();
    const { id } = await world.request({ now: true });
    const { state, counts } = await world.ended(id);
    expect({ state, counts }).toMatchObject({
      state: 'done',
      counts: { listed: 400, missing: 400, written: 400, phantom: 400, tombstones: 400 },
    });
    expectWhole(counts!);
    expect(await world.found()).toEqual(world.inBucket());
  });

  it.each(['that ends with a fault', 'whose worker is stopped', 'whose worker dies'] as const)(
    'contain each write once after a turn %s, although the index is slow to show it',
    async (end) => {
      const store = createMemoryStore();
      const world = await createJobsWorld({ store });
      const shownAtMs = new Map<string, number>();
      const before = { objects: { ...store.objects }, scan: { ...store.scan } };
      let isLastRefused = true;
      Object.assign(store.objects, {
        write: async (writes: Parameters<Write>[0], signal?: AbortSignal) => {
          // the last write is refused, or takes so long that its worker ends first
          const isLate = isLastRefused && end !== 'that ends with a fault' && writes.some(({ document }) => document.key === 'c');
          if (isLate) await world.clock.sleep(10_000, signal);
          const isRefused = isLastRefused && end === 'that ends with a fault';
          const taken = isRefused ? writes.slice(0, -1) : writes;
          const answers = [...(await before.objects.write(taken, signal))];
          // longer than the turn waits after its fault
          for (const { document } of taken) if (!shownAtMs.has(document.key)) shownAtMs.set(document.key, world.clock.nowMs() + 120_000);
          return writes.map(() => answers.shift() ?? { kind: 'fault', fault: { code: 'bucket.index-unavailable', reason: 'no shard' } });
        },
      });
      Object.assign(store.scan, {
        scan: async (...asked: Parameters<Store['scan']['scan']>) =>
          (await before.scan.scan(...asked)).filter(({ key }) => (shownAtMs.get(key) ?? 0) <= world.clock.nowMs()),
      });
      for (const key of ['a', 'b', 'c']) await world.has(key, 'bucket');
      // each key has a slice, so that the first one is counted before its turn ends
      if (end !== 'that ends with a fault') world.s3.pageSize = 1;
      const worker = world.startWorker();
      const { id } = await world.request({ now: true });
      await world.run(5_000);
      expect(shownAtMs.size).toBeGreaterThan(0);
      isLastRefused = false;
      if (end === 'whose worker is stopped') await worker.stop(AbortSignal.abort(new Error('now')));
      if (end === 'whose worker dies') worker.kill();
      world.startWorker({ name: 'next' });
      const { state, counts } = await world.ended(id);
      expect(state).toBe('done');
      expect(counts).toMatchObject({ listed: 3, equal: 0, missing: 3, written: 3 });
      expectWhole(counts!);
    },
  );

  it.each([1, 3, 5])('lack at most what a worker wrote in the five seconds before it died (death %i)', async (death) => {
    const store = createMemoryStore();
    // one turn that nothing splits: its progress alone is stored
    const world = await createJobsWorld({ store, cutKeysMin: 10_000 });
    const takenAtMs = { document: [] as number[], tombstone: [] as number[] };
    const before = { ...store.objects };
    Object.assign(store.objects, {
      write: async (...asked: Parameters<Write>) => {
        const answers = await before.write(...asked);
        for (const [at, { document }] of asked[0].entries())
          if (answers[at]?.kind === 'written') takenAtMs[document.deleted ? 'tombstone' : 'document'].push(world.clock.nowMs());
        return answers;
      },
    });
    await fill(world, { bucket: 400, index: 1_300 });
    // both of its slices take some ten seconds
    world.s3.pageSize = 20;
    world.s3.onPage = ({ objects }) => (objects.length > 1 ? world.clock.sleep(500) : undefined);
    world.s3.onHead = () => world.clock.sleep(150);
    for (const taken of Object.values(takenAtMs)) taken.length = 0;
    const worker = world.startWorker({ listings: 1 });
    const { id } = await world.request({ now: true });
    await world.run(1_300 + death * 2_700);
    worker.kill();
    const diedMs = world.clock.nowMs();
    world.startWorker({ name: 'next' });
    const { state, counts, deletions } = await world.ended(id);
    // the limit is 1,000, and what the dead worker had reserved is spent
    expect({ state, limit: deletions?.limit }).toEqual({ state: 'done', limit: 1_000 });
    expect(takenAtMs.tombstone.length).toBeLessThanOrEqual(1_000);
    expect(takenAtMs.tombstone.length).toBeLessThanOrEqual(deletions?.reserved ?? 0);
    const view = counts!;
    expectWhole(view);
    expect(view).toMatchObject({ listed: 400 });
    const lateOf = (taken: readonly number[]): number => taken.filter((atMs) => atMs > diedMs - 5_500 && atMs <= diedMs).length;
    for (const [counted, taken] of [
      [view.written, takenAtMs.document],
      [view.tombstones, takenAtMs.tombstone],
    ] as const) {
      expect(counted).toBeLessThanOrEqual(taken.length);
      expect(counted).toBeGreaterThanOrEqual(taken.length - lateOf(taken));
    }
    expect(view.missing).toBe(view.written);
    expect(view.phantom).toBe(view.tombstones + view.held);
  });
});
