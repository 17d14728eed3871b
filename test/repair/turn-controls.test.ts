import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { compareKeys } from '../../src/base/key-order.ts';
import { addCounts, noCounts, type ReconcileCounts } from '../../src/records/counts.ts';
import type { TurnEnd } from '../../src/repair/parts.rules.ts';
import type { TurnControls, TurnRequest } from '../../src/repair/reconcile-turn.ts';
import { allowance, createReindexWorld, type ReindexWorld } from '../support/worlds/reindex.ts';

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
    expect(counts.headRequests).toBeLessThan(400);
    expect(await world.found()).toHaveLength(950);
  });
});

describe('a turn ends', () => {
  it('when it is told to', async () => {
    const world = await createReindexWorld();
    world.s3.pageSize = 10;
    for (const key of numbered(50)) world.put(key);
    const result = await world.run({}, { shouldEnd: () => world.s3.pages.length >= 3 });
    expect(result.done).toBe(false);
    expect(result.counts.listed).toBeLessThan(50);
    expect(result.counts.written).toBe(result.counts.listed);
    const { counts } = await runAll(world, { after: result.cursor });
    expect(counts.listed + result.counts.listed).toBe(50);
  });

  it('at the key that it named when it asked whether to end', async () => {
    const world = await createReindexWorld();
    world.s3.pageSize = 10;
    for (const key of numbered(50)) world.put(key);
    const asked: string[] = [];
    const shouldEnd = (through: string): boolean => asked.push(through) >= 4;
    const result = await world.run({}, { shouldEnd });
    expect(asked).toEqual(['', 'k00009', 'k00019', 'k00029']);
    expect(result).toMatchObject({ done: false, cursor: 'k00029' });
  });

  it('when its time is over', async () => {
    const world = await createReindexWorld();
    world.s3.pageSize = 10;
    for (const key of numbered(50)) world.put(key);
    world.s3.onPage = () => world.clock.advance(1_000);
    const result = await world.run({}, { durationMaxMs: 3_000 });
    expect(result).toMatchObject({ done: false, counts: { listed: 30 } });
    const { counts } = await runAll(world, { after: result.cursor }, { durationMaxMs: 3_000 });
    expect(counts.listed).toBe(20);
  });

  it('where its range ends, also when that came nearer meanwhile', async () => {
    const world = await createReindexWorld();
    world.s3.pageSize = 10;
    for (const key of numbered(50)) world.put(key);
    await world.index('k00010x', present);
    await world.index('k00030x', present);
    let end: string | undefined = 'k00045';
    world.s3.onPage = (_page, { after }) => {
      if (after !== '') end = 'k00024';
    };
    const result = await world.run({ upTo: 'k00045' }, { upTo: () => end });
    expect(result).toMatchObject({ done: true, cursor: 'k00024', counts: { listed: 25, phantom: 1 } });
    expect((await world.found()).at(-1)).toBe('k00030x e');
  });

  it('asks for no page after the last that it is going to use', async () => {
    const world = await createReindexWorld();
    world.s3.pageSize = 10;
    for (const key of numbered(50)) world.put(key);
    await world.run({ upTo: 'k00005' });
    expect(world.s3.pages).toHaveLength(1);
  });
});

describe('the slices in flight', () => {
  it('are many while one turn runs, and one of each while eight run', async () => {
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
});
