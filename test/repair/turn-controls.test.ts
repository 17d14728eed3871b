import { setImmediate } from 'node:timers/promises';
import { describe, expect, it, beforeEach } from 'vitest';
import { compareKeys } from '../../src/base/key-order.ts';
import { addCounts, noCounts, type ReconcileCounts } from '../../src/records/comparison.ts';
import type { TurnEnd } from '../../src/repair/job.rules.ts';
import type { TurnControls, TurnRequest } from '../../src/repair/reconcile-turn.ts';
import { allowance, createReindexWorld, type ReindexWorld, bucketRecord } from '../support/worlds/reindex.ts';
import { MARGIN_MS } from '../../src/ordering/constants.ts';
import { clockOfMs, type ObjectDocument } from '../../src/ordering/document.ts';
import type { FaultCode } from '../../src/base/fault.ts';
import type { Store } from '../../src/store/store.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';

const present = { present: true, etag: 'e', sizeBytes: 5 } as const;
const numbered = (count: number): string[] => Array.from({ length: count }, (_, index) => `k${String(index).padStart(5, '0')}`);

/** Turns until the range is done, or one says why it is not. */
async function runAll(world: ReindexWorld, request: Partial<TurnRequest> = {}, controls: Partial<TurnControls> = {}) {
  const turns: TurnEnd[] = [];
  let counts: ReconcileCounts = noCounts;
  for (let after = request.after ?? ''; turns.at(-1)?.done !== true; after = turns.at(-1)!.cursor) {
    const turn = await world.run({ ...request, after }, controls);
    expect(compareKeys(turn.cursor, after)).toBeGreaterThanOrEqual(0);
    counts = addCounts(counts, turn.counts);
    turns.push(turn);
    if (turn.fault !== undefined || turn.cursor === after) break;
  }
  return { turns, counts };
}

describe('the deletion limit', () => {
  it('of a job that does not compare now ends the turn before the slice, of which nothing is written', async () => {
    const world = await createReindexWorld();
    world.s3.pageSize = 2;
    for (const key of ['a', 'c', 'e']) world.put(key, { etag: 'e' });
    for (const key of ['d', 'f']) await world.index(key, present);
    const reserve = () => Promise.reject(new Error('the job does not compare now'));
    const result = await world.run({}, { tombstones: { ...allowance(), reserve } });
    expect(result).toMatchObject({ done: false, cursor: 'c', counts: { listed: 2, scanned: 0, missing: 2, tombstones: 0, written: 2 } });
    expect((await world.found()).map((each) => each.split(' ')[0])).toEqual(['a', 'c', 'd', 'f']);
    const rest = await world.run({ after: result.cursor });
    expect(rest).toMatchObject({ done: true, counts: { listed: 1, scanned: 2, missing: 1, phantom: 2, tombstones: 2 } });
    expect(await world.found()).toEqual(world.bucketHolds());
  });

  it('is asked for no more than there are phantoms, and gets back what was not used', async () => {
    const world = await createReindexWorld();
    for (const key of ['a', 'b']) await world.index(key, present);
    let isFirst = true;
    world.hooks.beforeWrite = async () => {
      if (isFirst) await world.index('a', present, { ageMs: 0 });
      isFirst = false;
    };
    // refused once, read again, and written with the same grant
    expect((await world.run({}, { tombstones: allowance(2) })).counts).toMatchObject({ phantom: 2, tombstones: 2, held: 0 });
  });

  it('holds back what it does not allow, and HEADs no more than a few of them', async () => {
    const world = await createReindexWorld();
    for (const key of numbered(1_000)) await world.index(key, present);
    const { turns, counts } = await runAll(world, {}, { tombstones: allowance(50) });
    expect(turns.at(-1)).toMatchObject({ done: true });
    expect(counts).toMatchObject({ scanned: 1_000, phantom: 1_000, tombstones: 50, held: 950 });
    expect(counts.head_requests).toBeLessThan(400);
    expect(await world.found()).toHaveLength(950);
  });
});

it('a turn asks for no page after the last that it is going to use, and ends when its time is over', async () => {
  const world = await createReindexWorld();
  world.s3.pageSize = 10;
  for (const key of numbered(50)) world.put(key);
  await world.run({ upTo: 'k00005' });
  expect(world.s3.pages).toHaveLength(1);
  world.s3.onPage = () => world.clock.advance(1_000);
  const result = await world.run({}, { isOver: () => world.clock.monotonicMs() >= 3_000 });
  expect(result).toMatchObject({ done: false, counts: { listed: 30 } });
  const { counts } = await runAll(world, { after: result.cursor });
  expect(counts.listed).toBe(20);
});

it('the slices in flight are many while one turn runs, and one of each while eight run', async () => {
  const world = await createReindexWorld();
  world.s3.pageSize = 1;
  for (const key of numbered(100)) world.put(key);
  const gate = Promise.withResolvers<void>();
  world.hooks.beforeWrite = () => gate.promise;
  const listed = async (): Promise<number> => {
    for (let tick = 0; tick < 100; tick += 1) await setImmediate();
    return world.s3.pages.length;
  };
  const turns: Promise<TurnEnd>[] = [world.run({ upTo: 'k00010' })];
  // one page more is requested while the others are settled
  expect(await listed()).toBe(6 + 1);
  for (let turn = 1; turn < 8; turn += 1) turns.push(world.run({ after: `k000${turn}0`, upTo: `k000${turn + 1}0` }));
  expect(await listed()).toBe(6 + 1 + 7 * (1 + 1));
  gate.resolve();
  await Promise.all(turns);
  expect((await world.found()).slice(0, 81)).toEqual(world.bucketHolds().slice(0, 81));
});

// Missing objects that are written without reading what is stored: the store's refusal takes the place of the read.

describe('an object for which the scan shows no document', () => {
  let world: ReindexWorld;
  let read: string[];
  beforeEach(async () => {
    world = await createReindexWorld();
    read = [];
    world.hooks.beforeRead = (keys) => void read.push(...keys);
  });

  /** D − M of what is listed at this moment. */
  const listingClock = (): number => clockOfMs(world.clock.nowMs() - MARGIN_MS);

  it('replaces a tombstone of before the listing', async () => {
    world.put('back');
    await world.index('back', { present: false });
    expect((await world.run()).counts).toMatchObject({ missing: 1, written: 1, head_requests: 0 });
    expect(read).toEqual([]);
    expect(await world.found()).toEqual(world.bucketHolds());
  });

  it.each([
    ['a document', { present: true, etag: 'event' }],
    ['a tombstone', { present: false }],
  ] as const)('does not replace %s that is newer than the listing: a HEAD decides', async (_, state) => {
    world.put('a', { etag: 'listed' });
    world.put('healthy');
    const newer = await world.index('a', state, { ageMs: 5_000 });
    world.hooks.scanned = () => [];
    // right after it was listed
    world.s3.onPage = () => void (state.present ? world.s3.objects.set('a', state) : world.s3.objects.delete('a'));
    const { counts } = await world.run();
    expect(counts).toMatchObject({ listed: 2, missing: 1, in_flight: 1, written: 1, head_requests: 1 });
    expect(read).toEqual(['a']);
    expect(await world.stored('a')).toEqual(newer);
    expect(await world.found()).toEqual(world.bucketHolds());
  });

  it('does not replace what has the clock of the listing, which says nothing about their order: a HEAD decides', async () => {
    world.put('a', { etag: 'listed' });
    world.s3.onPage = () => void world.s3.objects.delete('a');
    const tombstone = await world.index('a', { present: false }, { clock: listingClock() });
    expect((await world.run()).counts).toMatchObject({ missing: 0, in_flight: 1, written: 0, head_requests: 1 });
    expect(read).toEqual(['a']);
    expect(await world.stored('a')).toEqual(tombstone);
  });
});

describe('a report on changes whose events are on their way', () => {
  it('finds nothing of an object that was deleted a moment ago, about which it asks S3 nothing, nor of a multipart upload that was completed then, whose LastModified is that of its beginning', async () => {
    const world = await createReindexWorld();
    await world.index('deleted', present);
    const created = world.put('created', { etag: 'abc-12' });
    const replaced = world.put('replaced', { etag: 'abc-12' });
    await world.index('replaced', present);
    const running = world.run({ mode: 'report' });
    // as events do
    await world.clock.advance(1_000);
    await world.index('deleted', { present: false }, { ageMs: 0 });
    await world.index('created', created, { ageMs: 0 });
    await world.index('replaced', replaced, { ageMs: 0 });
    await world.clock.advance(4_000);
    expect((await running).counts).toMatchObject({ listed: 2, equal: 2, missing: 0, stale: 0, phantom: 0, head_requests: 0 });
  });

  it('waits for many pages at the same time', async () => {
    const world = await createReindexWorld();
    world.s3.pageSize = 10;
    for (let number = 0; number < 160; number += 1) world.put(`key-${String(number).padStart(3, '0')}`);
    const running = world.run({ mode: 'report' });
    await world.clock.advance(5_000);
    expect((await running).counts).toMatchObject({ missing: 160 });
  });
});

/** A store that refuses some documents, and takes all others of the same request. */
function refusing(isRefused: (document: ObjectDocument) => boolean, code: FaultCode = 'index.rejected'): Store {
  const store = createMemoryStore();
  const write: Store['objects']['write'] = async (writes, signal) => {
    const answers = [
      ...(await store.objects.write(
        writes.filter(({ document }) => !isRefused(document)),
        signal,
      )),
    ];
    return writes.map(({ document }) =>
      isRefused(document)
        ? { kind: 'fault', fault: { code, reason: `mapper_parsing_exception: ${document.key}` } }
        : (answers.shift() ?? { kind: 'superseded' }),
    );
  };
  return { ...store, objects: { ...store.objects, write } };
}

const enriched = { ...bucketRecord, enrich: 'tags' as const };
const content = { contentType: 'text/plain', userMetadata: { owner: 'me' }, tags: { colour: 'red' } };

describe('a document that the index refuses', () => {
  it.each(['index.rejected', 'bucket.index-misconfigured'] as const)(
    'as %s is written without its enrichment, and its neighbours with theirs',
    async (code) => {
      const store = refusing(({ key, user_metadata: metadata }) => key === 'b' && metadata !== undefined, code);
      const world = await createReindexWorld({ store });
      for (const key of ['a', 'b', 'c']) world.put(key, content);
      expect(await world.run({ bucket: enriched })).toMatchObject({ done: true, counts: { missing: 3, written: 3, refused: 0 } });
      const plain = await world.stored('b');
      expect(plain).toMatchObject({ etag: 'etag-1', deleted: false });
      for (const field of ['content_type', 'user_metadata', 'tags']) expect(plain).not.toHaveProperty(field);
      for (const key of ['a', 'c'])
        expect(await world.stored(key)).toMatchObject({ user_metadata: { owner: 'me' }, tags: { colour: 'red' } });
      const refusals = world.telemetry.labels('tally_enrich_total');
      expect(refusals.filter(({ result }) => result === code)).toMatchObject([{ enrich: 'head' }, { enrich: 'tags' }]);
    },
  );

  it('in any form is counted and named, and the others are written', async () => {
    const store = refusing(({ key }) => key === 'b');
    const world = await createReindexWorld({ store });
    for (const key of ['a', 'b', 'c']) world.put(key, content);
    const result = await world.run({ bucket: enriched });
    expect(result).toMatchObject({
      done: true,
      counts: { listed: 3, missing: 3, written: 2, refused: 1 },
      examples: { refused: [{ key: 'b', reason: 'mapper_parsing_exception: b' }] },
    });
    expect(await world.found()).toEqual(['a etag-0', 'c etag-2']);
  });
});
