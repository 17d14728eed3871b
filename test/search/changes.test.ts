import { describe, expect, it } from 'vitest';
import type { ObjectDocument } from '../../src/ordering/document.ts';
import { movedMarks, type Position, type PurgeMarks } from '../../src/records/position.ts';
import { visitTombstones } from '../../src/repair/sweeps.ts';
import { listChanges } from '../../src/search/changes.ts';
import type { Readable } from '../../src/store/readable.rules.ts';
import { refs, updateRecord } from '../../src/store/stored.ts';
import { keysOf, live, tombstone } from '../contracts/world.ts';
import { isLong } from '../support/breadth.ts';
import { recordOf } from '../support/fakes/bucket-record.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { createFakeClock } from '../support/fakes/ports.ts';
import { createFollower } from '../support/follower.ts';
import { createRandom } from '../support/random/seeded.ts';

const BUCKET = 'photos';
const DAY_MS = 86_400_000;

async function setUp() {
  const { objects, maintenance, state } = createMemoryStore();
  await objects.createBucket(BUCKET);
  await updateRecord(state, refs.bucket(BUCKET), () => recordOf(BUCKET));
  const parts = { objects: { ...objects }, state };
  const purgeUpTo = (upTo: Position): Promise<unknown> =>
    updateRecord(state, refs.bucket(BUCKET), (current) => ({ ...current!, purge: { upTo, next: { position: upTo, atMs: 0 } } }));
  return {
    objects,
    maintenance,
    parts,
    purgeUpTo,
    write: (...documents: readonly ObjectDocument[]) => objects.write(documents.map((document) => ({ document, equalClock: 'accept' }))),
    position: () => objects.position(BUCKET),
    read: (more: Partial<Parameters<typeof listChanges>[1]> = {}, readable: Readable = 'everything') =>
      listChanges(parts, { bucket: BUCKET, limit: 10, ...more }, readable),
  };
}

describe('the feed', () => {
  it('begins with all that the index holds, and goes on from its cursor', async () => {
    const { read, write } = await setUp();
    await write(live(BUCKET, 'a'), live(BUCKET, 'b'), live(BUCKET, 'c'));
    const first = await read({ limit: 2 });
    expect([keysOf(first.items), first.more, first.reset]).toEqual([['a', 'b'], true, undefined]);
    const second = await read({ limit: 2, after: first.cursor });
    expect([keysOf(second.items), second.more]).toEqual([['c'], false]);
    await write(tombstone(BUCKET, 'a', { clock: 2_000 }));
    expect(await read({ after: second.cursor })).toMatchObject({ items: [{ key: 'a', deleted: true }], more: false });
  });

  it('shows the newest first, and follows what comes after them', async () => {
    const { read, write } = await setUp();
    await write(live(BUCKET, 'a'), live(BUCKET, 'b'));
    const newest = await read({ newest: 'true', limit: 1 });
    expect([keysOf(newest.items), newest.more]).toEqual([['b'], false]);
    await write(live(BUCKET, 'c'));
    expect(keysOf((await read({ after: newest.cursor })).items)).toEqual(['c']);
    await expect(read({ newest: 'true', after: newest.cursor })).rejects.toMatchObject({ code: 'request.invalid' });
  });

  it('is reset for who was away while tombstones were purged, and for nobody else', async () => {
    const { read, write, position, purgeUpTo } = await setUp();
    await write(live(BUCKET, 'stays'), live(BUCKET, 'a'));
    const away = await read();
    await write(tombstone(BUCKET, 'a', { clock: 2_000 }));
    const present = await read();
    await purgeUpTo(await position());
    const reset = await read({ after: away.cursor });
    expect(reset).toMatchObject({ items: [], more: true, reset: true });
    expect(await read({ after: present.cursor })).toMatchObject({ items: [], more: false });
    // who begins now has no need of what was purged before, however slowly it reads
    await write(live(BUCKET, 'b'), live(BUCKET, 'c'), live(BUCKET, 'd'));
    for (let after = reset.cursor, count = 0; count < 5; count += 1) {
      const page = await read({ after, limit: 1 });
      expect(page).not.toHaveProperty('reset');
      after = page.cursor;
    }
    const slow = await read({ limit: 1 });
    await purgeUpTo(await position());
    expect(await read({ after: slow.cursor })).toHaveProperty('reset', true);
  });

  it('brings any follower to what the index says, however long it is away, whenever it is killed, and by whatever clock is purged', async () => {
    for (let seed = 1; seed <= (isLong ? 2_000 : 60); seed += 1) {
      const random = createRandom(seed);
      const { objects, maintenance, parts, read, write } = await setUp();
      const followers = Array.from({ length: 3 }, () => createFollower<string>());
      const pageOf = (after: string | undefined) => read({ limit: random.integer(1, 5), ...(after !== undefined && { after }) });
      const sweep = (nowMs: number) => {
        const clock = createFakeClock({ startMs: nowMs });
        return visitTombstones({ ...parts, maintenance, clock, purgeClock: clock }, { bucket: BUCKET }, new AbortController().signal);
      };
      let nowMs = Date.UTC(2026, 0, 1);
      for (let clock = 1; clock <= 150; clock += 1) {
        const key = `k${random.integer(1, 12)}`;
        const choice = random.integer(0, 7);
        if (choice < 2) await write(live(BUCKET, key, { clock }));
        else if (choice < 4) await write(tombstone(BUCKET, key, { clock, deleted_at: new Date(nowMs).toISOString() }));
        else if (choice === 4) {
          nowMs += random.integer(0, 6) * DAY_MS;
          await sweep(nowMs + random.pick([0, 0, 0, -30, 30, 8]) * DAY_MS);
        } else await random.pick(followers).read(pageOf, random.integer(0, 3) === 0);
      }
      const held = await objects.search({ bucket: BUCKET, limit: 100 });
      for (const follower of followers) {
        let pages = 0;
        for (let isMore = true; isMore && pages < 50; pages += 1) isMore = await follower.read(pageOf);
        expect(follower.live(), `seed ${seed}`).toEqual(new Map(held.map(({ key, clock }) => [key, clock])));
      }
    }
  });

  it('is reset if the purge passes while a page is read', async () => {
    const { objects, parts, read, write, position, purgeUpTo } = await setUp();
    await write(live(BUCKET, 'a'));
    const { cursor } = await read();
    await write(tombstone(BUCKET, 'a', { clock: 2_000 }));
    parts.objects.changes = async (...asked) => {
      await purgeUpTo(await position());
      return objects.changes(...asked);
    };
    expect(await read({ after: cursor })).toHaveProperty('reset', true);
  });

  it('is reset if the index was made again', async () => {
    const { parts, read, write } = await setUp();
    await write(live(BUCKET, 'a'));
    const { cursor } = await read();
    await parts.objects.removeBucket(BUCKET);
    expect(await read({ after: cursor })).toHaveProperty('reset', true);
    await parts.objects.createBucket(BUCKET);
    const reset = await read({ after: cursor });
    await write(live(BUCKET, 'b'));
    expect(keysOf((await read({ after: reset.cursor })).items)).toEqual(['b']);
  });

  it('shows what its reader may read, is reset when that changes, and ends with the last grant', async () => {
    const { read, write } = await setUp();
    await write(live(BUCKET, 'a/1'), live(BUCKET, 'b/1'));
    const partsOf = (...prefixes: readonly string[]) => prefixes.map((prefix) => ({ bucket: BUCKET, prefix }));
    const page = await read({}, partsOf('a/'));
    expect(keysOf(page.items)).toEqual(['a/1']);
    await write(live(BUCKET, 'a/2'), live(BUCKET, 'b/2'));
    expect(keysOf((await read({ after: page.cursor }, partsOf('a/'))).items)).toEqual(['a/2']);
    for (const readable of [partsOf('a/', 'b/'), partsOf('b/'), 'everything'] as const)
      expect(await read({ after: page.cursor }, readable)).toMatchObject({ items: [], reset: true });
    await expect(read({ after: page.cursor }, [{ bucket: 'other', prefix: '' }])).rejects.toMatchObject({ code: 'bucket.not-connected' });
  });

  it('takes its own cursor back with the most shards and the longest prefix', async () => {
    const { parts, read } = await setUp();
    const history = 'BsZ57t0CSWmhOOU8ec9hNw';
    const position = Object.fromEntries(Array.from({ length: 64 }, (_, shard) => [shard, { history, at: 10 ** 10 }]));
    parts.objects.changes = async () => ({ documents: [], position, more: false });
    await updateRecord(parts.state, refs.bucket(BUCKET), (current) => ({
      ...current!,
      purge: { upTo: position, next: { position, atMs: 0 } },
    }));
    const prefix = '\n'.repeat(1_024);
    const { cursor } = await read({ prefix });
    expect(await read({ prefix, after: cursor })).toEqual({ items: [], cursor, more: false });
    await expect(read({ after: cursor })).rejects.toMatchObject({ code: 'request.invalid' });
  });

  it('refuses cursors of other feeds and of nothing', async () => {
    const { read } = await setUp();
    const { cursor } = await read();
    const invalid = { code: 'request.invalid', message: expect.stringMatching(/^after: /) as unknown };
    await expect(read({ after: cursor, prefix: 'a' })).rejects.toMatchObject(invalid);
    const own = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as string[];
    const numbers = ['0.5', '1e300', '-1e300', '1e999', 'null'].map((at) => `{"0":{"history":"h","at":${at}}}`);
    const forged = [...[...numbers, '{"0":{"at":1}}', '{'].map((position) => own.with(3, position)), ['photos']];
    for (const parts of forged)
      await expect(read({ after: Buffer.from(JSON.stringify(parts)).toString('base64url') })).rejects.toMatchObject(invalid);
  });
});

describe('the marks of the purge', () => {
  const at = (number: number): Position => ({ '0': { history: 'h', at: number } });

  it('let a tombstone go when the mark after it is as old as a tombstone must be', () => {
    const looks: readonly (readonly [atMs: number, at: number])[] = [
      [0, 10],
      [99, 20],
      [100, 30],
      [150, 40],
      [200, 50],
    ];
    let marks: PurgeMarks | undefined;
    const upTo = looks.map(([atMs, number]) => {
      marks = movedMarks(marks, { position: at(number), atMs, lifeMs: 100 });
      return marks.upTo?.['0']?.at;
    });
    expect(upTo).toEqual([undefined, undefined, 10, 10, 30]);
  });

  it('keep a shard that a look misses, because its primary is lost: what was purged before stays purged', () => {
    const both: Position = { '0': { history: 'h', at: 5 }, '1': { history: 'h', at: 7 } };
    const looks = [both, at(6), at(8), at(9)];
    const marks = looks.reduce<PurgeMarks | undefined>(
      (known, position, day) => movedMarks(known, { position, atMs: day * 100, lifeMs: 100 }),
      undefined,
    );
    expect(marks?.upTo).toEqual({ ...both, '0': { history: 'h', at: 8 } });
  });

  it('go on after a clock that was set back', () => {
    const ahead = movedMarks(undefined, { position: at(1), atMs: 10_000, lifeMs: 100 });
    const back = movedMarks(ahead, { position: at(2), atMs: 0, lifeMs: 100 });
    expect(movedMarks(back, { position: at(3), atMs: 100, lifeMs: 100 }).upTo).toEqual(at(1));
  });
});
