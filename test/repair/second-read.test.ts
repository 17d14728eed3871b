import { describe, expect, it } from 'vitest';
import { createReindexWorld, type ReindexWorld } from '../support/worlds/reindex.ts';

const present = { present: true, etag: 'e', sizeBytes: 5 } as const;

/** A report during which the event of a change arrives after a second, as events do. */
async function reportWith(world: ReindexWorld, arrives: () => Promise<unknown>) {
  const running = world.run({ mode: 'report' });
  await world.clock.advance(1_000);
  await arrives();
  await world.clock.advance(4_000);
  return running;
}

describe('a report on changes whose events are on their way', () => {
  it('finds no phantom of an object that was deleted a moment ago, and asks S3 nothing about it', async () => {
    const world = await createReindexWorld();
    await world.index('a', present);
    const { counts } = await reportWith(world, () => world.index('a', { present: false }, { ageMs: 0 }));
    expect(counts).toMatchObject({ phantom: 0, headRequests: 0 });
  });

  it.each([
    ['multipart upload that was completed a moment ago, whose LastModified is that of its beginning', 'abc-12'],
    ['version that is present again', 'abc'],
  ])('finds nothing missing or stale after a %s', async (_, etag) => {
    const world = await createReindexWorld();
    const created = world.put('created', { etag });
    const replaced = world.put('replaced', { etag });
    await world.index('replaced', present);
    const { counts } = await reportWith(world, async () => {
      await world.index('created', created, { ageMs: 0 });
      await world.index('replaced', replaced, { ageMs: 0 });
    });
    expect(counts).toMatchObject({ listed: 2, equal: 2, missing: 0, stale: 0 });
  });

  it('finds no phantom of an object that comes back meanwhile', async () => {
    const world = await createReindexWorld();
    await world.index('a', present);
    const { counts } = await reportWith(world, async () => world.put('a', { etag: 'e', sizeBytes: 5 }));
    expect(counts).toMatchObject({ phantom: 0 });
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
