/** Missing objects that are written without reading what is stored: the store's refusal takes the place of the read. */
import { MARGIN_MS } from '../../src/ordering/constants.ts';
import { beforeEach, describe, expect, it } from 'vitest';
import { clockOfMs } from '../../src/ordering/clock.ts';
import { bucketRecord, createReindexWorld, type ReindexWorld } from '../support/worlds/reindex.ts';

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

  it('is written without reading what is stored; what the scan shows beside it is read', async () => {
    world.put('missing');
    const stale = world.put('stale', { etag: 'new' });
    await world.index('stale', { ...stale, etag: 'old' });
    await world.index('phantom', stale);
    expect((await world.run()).counts).toMatchObject({ missing: 1, stale: 1, phantom: 1, written: 2, tombstones: 1 });
    expect(read).toEqual(['phantom', 'stale']);
    expect(await world.found()).toEqual(world.bucketHolds());
    expect(await world.stored('missing')).toMatchObject({ source: 'listing', settled: true, clock: listingClock() });
  });

  it('replaces a tombstone of before the listing', async () => {
    world.put('back');
    await world.index('back', { present: false });
    expect((await world.run()).counts).toMatchObject({ missing: 1, written: 1, headRequests: 0 });
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
    expect(counts).toMatchObject({ listed: 2, missing: 1, inFlight: 1, written: 1, headRequests: 1 });
    expect(read).toEqual(['a']);
    expect(await world.stored('a')).toEqual(newer);
    expect(await world.found()).toEqual(world.bucketHolds());
  });

  it('does not replace what has the clock of the listing, which says nothing about their order: a HEAD decides', async () => {
    world.put('a', { etag: 'listed' });
    world.s3.onPage = () => void world.s3.objects.delete('a');
    const tombstone = await world.index('a', { present: false }, { clock: listingClock() });
    expect((await world.run()).counts).toMatchObject({ missing: 0, inFlight: 1, written: 0, headRequests: 1 });
    expect(read).toEqual(['a']);
    expect(await world.stored('a')).toEqual(tombstone);
  });

  it('is equal if a live event wrote the same a moment ago', async () => {
    const state = world.put('a');
    await world.index('a', state, { ageMs: 1_000 });
    world.hooks.scanned = () => [];
    expect((await world.run()).counts).toMatchObject({ equal: 1, missing: 0, written: 0, headRequests: 0 });
  });

  it('is read in a report, and asked for by a HEAD in an enriched bucket', async () => {
    world.put('a');
    const report = world.run({ mode: 'report' });
    // a report may look again later
    await world.clock.advance(60_000);
    expect((await report).counts).toMatchObject({ missing: 1, written: 0 });
    expect(read).toContain('a');
    read = [];
    expect((await world.run({ bucket: { ...bucketRecord, enrich: 'head' } })).counts).toMatchObject({ missing: 1, headRequests: 1 });
    expect(read).toEqual(['a']);
  });
});
