import { describe, expect, it } from 'vitest';
import { createReindexWorld } from '../../support/reindex-world.ts';

describe('a turn that applies', () => {
  it('writes what is missing and stale, and makes tombstones of phantoms, so that the index ends equal', async () => {
    const world = await createReindexWorld();
    const same = world.put('same', { sizeBytes: 5 });
    world.put('missing');
    world.put('stale', { sizeBytes: 5 });
    await world.index('same', same);
    await world.index('stale', { ...same, etag: 'old' });
    await world.index('phantom', same);
    const result = await world.run();
    expect(result).toMatchObject({
      done: true,
      counts: {
        listed: 3,
        scanned: 3,
        equal: 1,
        missing: 1,
        stale: 1,
        phantom: 1,
        written: 2,
        tombstones: 1,
        listRequests: 1,
        headRequests: 1,
      },
      examples: { missing: [{ key: 'missing' }], stale: [{ key: 'stale', fields: ['etag'] }], phantom: [{ key: 'phantom' }] },
    });
    expect(await world.found()).toEqual(world.bucketHolds());
    expect(await world.stored('phantom')).toMatchObject({ deleted: true, settled: true });
    expect(world.s3.heads).toEqual(['phantom']);
  });
});

describe('a report', () => {
  it('tells the same and writes nothing', async () => {
    const world = await createReindexWorld();
    const same = world.put('same', { sizeBytes: 5 });
    world.put('missing');
    world.put('stale', { sizeBytes: 5 });
    await world.index('same', same);
    const stale = await world.index('stale', { ...same, etag: 'old' });
    const phantom = await world.index('phantom', same);
    const result = await world.run({ mode: 'report' });
    expect(result.counts).toMatchObject({
      listed: 3,
      equal: 1,
      missing: 1,
      stale: 1,
      phantom: 1,
      written: 0,
      tombstones: 0,
      headRequests: 1,
    });
    expect(await world.stored('missing')).toBeUndefined();
    expect(await world.stored('stale')).toEqual(stale);
    expect(await world.stored('phantom')).toEqual(phantom);
    expect(world.reserved).toEqual([]);
  });
});
