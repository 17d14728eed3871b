import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import { addCounts, noCounts, shownCounts, type ReconcileCounts } from '../../src/records/comparison.ts';
import { ANSWER_LIFE_MS } from '../../src/ordering/constants.ts';
import type { TurnControls } from '../../src/repair/reconcile-turn.ts';
import type { Store } from '../../src/store/store.ts';
import { createReindexWorld } from '../support/worlds/reindex.ts';
import { createJobsWorld } from '../support/worlds/jobs.ts';

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

it('the counts of a job name every deletion and every write where a HEAD takes seconds', async () => {
  const world = await createJobsWorld({ cutKeysMin: 100 });
  for (let number = 0; number < 400; number += 1) {
    await world.has(`k/${String(number).padStart(5, '0')}a`, 'index');
    await world.has(`k/${String(number).padStart(5, '0')}b`, 'bucket');
  }
  world.s3.onHead = () => world.clock.sleep(3_000);
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
