import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import { ANSWER_LIFE_MS } from '../../src/ordering/constants.ts';
import { addCounts, noCounts, shownCounts, type ReconcileCounts } from '../../src/records/comparison.ts';
import type { TurnControls } from '../../src/repair/reconcile-turn.ts';
import type { ObjectIndex } from '../../src/store/store.ts';
import { createReindexWorld } from '../support/worlds/reindex.ts';

const present = { present: true, etag: 'e', sizeBytes: 5 } as const;

/** A bucket and an index that differ in a key of each kind, and the documents that are wrong. */
async function createDiffering() {
  const world = await createReindexWorld();
  const same = world.put('same', { sizeBytes: 5 });
  world.put('missing');
  world.put('stale', { sizeBytes: 5 });
  await world.index('same', same);
  const wrong = [await world.index('stale', { ...same, etag: 'old' }), await world.index('phantom', same)];
  return { world, same, wrong };
}

describe('a turn that applies', () => {
  it('writes what is missing and stale, and makes tombstones of phantoms, so that the index ends equal', async () => {
    const { world } = await createDiffering();
    const result = await world.run();
    expect(result).toMatchObject({
      done: true,
      counts: { listed: 3, scanned: 3, equal: 1, missing: 1, stale: 1, phantom: 1, in_flight: 0, written: 2, tombstones: 1 },
      examples: { missing: [{ key: 'missing' }], stale: [{ key: 'stale', fields: ['etag'] }], phantom: [{ key: 'phantom' }] },
    });
    expect(result.counts).toMatchObject({ list_requests: 1, head_requests: 1, bytes_listed: 17 });
    expect(await world.found()).toEqual(world.bucketHolds());
    expect(world.s3.heads).toEqual(['phantom']);
  });

  it.each(['apply', 'report'] as const)('asks about each change whose time is known: %s', async (mode) => {
    const world = await createReindexWorld();
    const at = (lastModifiedMs: number, more = {}) => ({ lastModifiedMs, ...more });
    world.put('missing', at(1_000_000));
    const stale = world.put('stale', at(2_000_000));
    await world.index('stale', { ...stale, etag: 'old' });
    // moved by a lifecycle rule, uploaded in parts, and deleted
    const moved = world.put('moved', at(3_000_000, { storageClass: 'GLACIER' }));
    await world.index('moved', { ...moved, storageClass: 'STANDARD' });
    world.put('parts', at(4_000_000, { etag: `${'0'.repeat(32)}-2` }));
    await world.index('phantom', present);
    const running = world.run({ mode });
    await world.clock.advance(10_000);
    await running;
    expect(world.questioned.toSorted((a, b) => a - b)).toEqual([1_000_000, 2_000_000]);
  });

  it('keeps to its prefix and range', async () => {
    const world = await createReindexWorld();
    for (const key of ['p/a', 'p/b', 'p/c', 'q']) world.put(key);
    for (const key of ['o', 'p/aa', 'p/bb', 'p/d', 'r']) await world.index(key, present);
    const result = await world.run({ prefix: 'p/', after: 'p/a', upTo: 'p/bb' });
    expect(result).toMatchObject({ done: true, cursor: 'p/bb', counts: { listed: 1, scanned: 2, missing: 1, phantom: 2 } });
    expect((await world.found()).map((each) => each.split(' ')[0])).toEqual(['o', 'p/b', 'p/d', 'r']);
    expect(await world.run({ prefix: 'p/' })).toMatchObject({ done: true, counts: { listed: 3, scanned: 2, missing: 2, phantom: 1 } });
  });
});

describe('a report', () => {
  it('tells the same and writes nothing', async () => {
    const { world, same, wrong } = await createDiffering();
    const inexact = await world.index('z', { ...same, lastModifiedExact: false });
    world.put('z', { ...same, lastModifiedMs: (same.lastModifiedMs ?? 0) + 2_000 });
    const running = world.run({ mode: 'report', fill: true });
    await world.clock.advance(5_000);
    const result = await running;
    const counts = { listed: 4, equal: 2, missing: 1, stale: 1, phantom: 1, written: 0, tombstones: 0, head_requests: 1 };
    expect(result.counts).toMatchObject(counts);
    expect(await world.stored('missing')).toBeUndefined();
    for (const document of [...wrong, inexact]) expect(await world.stored(document.key)).toEqual(document);
  });

  it('counts no difference that the live path has not come to yet, asks no HEAD about it, and waits for nothing', async () => {
    const world = await createReindexWorld();
    world.put('changed');
    await world.index('changed', present, { ageMs: 1_000 });
    await world.index('created', present, { ageMs: 1_000 });
    world.put('deleted');
    await world.index('deleted', { present: false }, { ageMs: 1_000 });
    const { counts } = await world.run({ mode: 'report' });
    expect(counts).toMatchObject({ listed: 2, in_flight: 3, stale: 0, missing: 0, phantom: 0, head_requests: 0 });
    expect(world.clock.monotonicMs()).toBe(0);
  });
});

describe('a document as new as the listing', () => {
  it('is not written over by it, but observed, and written provisionally for the sweep to settle', async () => {
    const world = await createReindexWorld();
    world.put('a', { etag: 'new' });
    const before = await world.index('a', present, { ageMs: 1_000 });
    const { counts } = await world.run();
    expect(counts).toMatchObject({ in_flight: 1, stale: 0, written: 1, head_requests: 1 });
    expect(await world.stored('a')).toMatchObject({ etag: 'new', clock: before.clock, settled: false, source: 'check' });
  });

  it('that is newer at each write is left to the events that make it so', async () => {
    const world = await createReindexWorld();
    world.put('a', { etag: 'new' });
    world.put('beside');
    let writes = 0;
    world.hooks.beforeWrite = async (requests) => {
      if (!requests.some(({ document }) => document.key === 'a')) return;
      writes += 1;
      await world.index('a', { ...present, etag: `of-event-${writes}` }, { ageMs: 1_000 - writes });
    };
    const { done, counts } = await world.run();
    expect({ done, writes }).toEqual({ done: true, writes: 5 });
    expect(counts).toMatchObject({ in_flight: 1, missing: 1, written: 1 });
    expect(await world.stored('a')).toMatchObject({ etag: 'of-event-5' });
  });

  it('that was written between read and write is read again', async () => {
    const world = await createReindexWorld();
    world.put('a', { etag: 'listed' });
    await world.index('a', present);
    let isFirst = true;
    world.hooks.beforeWrite = async () => {
      if (!isFirst) return;
      isFirst = false;
      const newer = world.put('a', { etag: 'newer' });
      await world.index('a', newer, { ageMs: 0 });
    };
    expect((await world.run()).counts).toMatchObject({ stale: 0, in_flight: 1, written: 0, head_requests: 1 });
    expect(await world.found()).toEqual(['a newer']);
  });
});

describe('a phantom', () => {
  it('that is there after all is not deleted, and with other content is written as the HEAD says', async () => {
    const world = await createReindexWorld();
    for (const key of ['a', 'b']) await world.index(key, present);
    world.s3.onHead = (key) => void world.put(key, { etag: key === 'a' ? 'e' : 'new', sizeBytes: 5 });
    expect((await world.run()).counts).toMatchObject({ phantom: 0, written: 1, tombstones: 0, head_requests: 2 });
    expect(await world.found()).toEqual(['a e', 'b new']);
  });

  it('whose HEAD fails holds back only what comes after it', async () => {
    const world = await createReindexWorld();
    for (let index = 0; index < 250; index += 1) await world.index(`k${String(index).padStart(3, '0')}`, present);
    world.s3.onHead = (key) => {
      if (key === 'k150') throw new FaultError('s3.throttled', 'SlowDown');
    };
    expect(await world.run({ upTo: 'z' })).toMatchObject({
      done: false,
      cursor: 'k099',
      fault: { code: 's3.throttled' },
      counts: { phantom: 100 },
    });
    expect((await world.found())[0]).toBe('k100 e');
  });
});

it('a listing that fails deletes nothing from there on, and keeps what was compared before', async () => {
  const world = await createReindexWorld();
  world.s3.pageSize = 2;
  for (const key of ['a', 'b', 'c', 'd']) world.put(key, { etag: 'e' });
  for (const key of ['aa', 'bb', 'z']) await world.index(key, present);
  world.s3.onPage = (_page, { after }) => {
    if (after !== '') throw new FaultError('listing.disorder', 'as scripted');
  };
  const result = await world.run();
  expect(result).toMatchObject({
    done: false,
    cursor: 'b',
    fault: { code: 'listing.disorder' },
    counts: { listed: 2, missing: 2, phantom: 1, tombstones: 1 },
  });
  expect(await world.found()).toEqual(['a e', 'b e', 'bb e', 'z e']);
});

it('a page that became too old to be written ends its turn with a fault, and the next turn lists it again', async () => {
  const world = await createReindexWorld();
  world.put('a');
  let isSlow = true;
  world.s3.onPage = async () => {
    if (isSlow) await world.clock.advance(ANSWER_LIFE_MS);
  };
  expect(await world.run()).toMatchObject({ done: false, cursor: '', fault: { code: 'index.overloaded' } });
  isSlow = false;
  expect(await world.run()).toMatchObject({ done: true, counts: { missing: 1, written: 1 } });
});

it('a document that only lacks something is completed where that is asked for, unless it is newer than the listing', async () => {
  const world = await createReindexWorld();
  const { storageClass: _, ...rest } = world.put('a', { storageClass: 'GLACIER' });
  await world.index('a', rest, { version_id: 'v1' });
  const newer = await world.index('b', { ...world.put('b'), lastModifiedExact: false }, { ageMs: 1_000 });
  expect((await world.run({ fill: true })).counts).toMatchObject({ incomplete: 1, equal: 1, in_flight: 0, written: 1 });
  expect(await world.stored('a')).toMatchObject({ storage_class: 'GLACIER', version_id: 'v1', source: 'listing' });
  expect(await world.stored('b')).toEqual(newer);
});

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
    (store.objects as { write: ObjectIndex['write'] }).write = async (writes, signal) => {
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
