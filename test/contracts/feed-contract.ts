/** The contract of the feed that both stores must pass: nothing is skipped, whoever writes, pauses or dies meanwhile. */
import { beforeAll, describe, expect, it } from 'vitest';
import type { Position } from '../../src/records/position.ts';
import type { Changes, Store } from '../../src/store/store.ts';
import { isLong } from '../support/breadth.ts';
import { createFollower, type FeedPage } from '../support/follower.ts';
import { createRandom } from '../support/random/seeded.ts';
import { contractWorld, iso, keysOf, live, tombstone, type OpenStore } from './world.ts';

const NOON_MS = Date.UTC(2026, 10, 1, 12);

/** Declares the contract’s tests for one store. `shards`: of its indexes; of several, each has an order of its own. */
export function feedContract(name: string, open: () => Promise<OpenStore>, shards = 1): void {
  describe(`${name} keeps the contract of the feed`, () => {
    const world = contractWorld(open);
    const { newBucket } = world;
    // what several shards have no order for is not declared for them
    const ofOneShard: typeof it | (() => void) = shards === 1 ? it : () => undefined;
    let store: Store;
    beforeAll(() => {
      ({ store } = world);
    });

    async function write(...documents: readonly ReturnType<typeof live>[]): Promise<void> {
      // no test of the feed makes anything visible: that is its own promise
      const answers = await store.objects.write(documents.map((document) => ({ document, equalClock: 'accept' })));
      expect(new Set(answers.map(({ kind }) => kind))).toEqual(new Set(['written']));
    }

    async function read(bucket: string, after: Position, limit = 100, prefix = ''): Promise<Changes> {
      const found = await store.objects.changes(bucket, { after, prefix, limit });
      if (found === 'lost') throw new Error('the position is lost');
      return found;
    }

    ofOneShard('goes from old to new, shows each document as it is now, and ends where it was written last', async () => {
      const bucket = await newBucket();
      await write(live(bucket, 'b'), live(bucket, 'a'), live(bucket, 'c'));
      await write(live(bucket, 'b', { clock: 2_000, etag: 'new' }));
      const first = await read(bucket, {}, 2);
      expect([keysOf(first.documents), first.more]).toEqual([['a', 'c'], true]);
      const second = await read(bucket, first.position, 2);
      expect(second).toMatchObject({ documents: [live(bucket, 'b', { clock: 2_000, etag: 'new' })], more: false });
      expect(await read(bucket, second.position)).toEqual({ ...second, documents: [] });
      await write(live(bucket, 'd'));
      expect(keysOf((await read(bucket, second.position)).documents)).toEqual(['d']);
      expect(keysOf(await store.objects.latest(bucket, { prefix: '', limit: 2 }))).toEqual(['d', 'b']);
    });

    it('has the deletions of what the index held, and not those of what it never held, as exact events tell them', async () => {
      const bucket = await newBucket();
      await write(live(bucket, 'held'));
      expect(await store.objects.write([{ document: tombstone(bucket, 'never'), equalClock: 'refuse' }])).toEqual([{ kind: 'written' }]);
      await write(tombstone(bucket, 'held', { clock: 2_000 }));
      expect(await read(bucket, {})).toMatchObject({ documents: [tombstone(bucket, 'held', { clock: 2_000 })] });
      expect(keysOf(await store.objects.latest(bucket, { prefix: '', limit: 9 }))).toEqual(['held']);
      await write(live(bucket, 'never', { clock: 3_000 }));
      await write(tombstone(bucket, 'never', { clock: 4_000 }));
      expect(keysOf((await read(bucket, {})).documents).toSorted()).toEqual(['held', 'never']);
    });

    ofOneShard('passes what is under other prefixes, and comes to its end', async () => {
      const bucket = await newBucket();
      await write(live(bucket, 'a/1'), live(bucket, 'b/1'), live(bucket, 'a/2'), live(bucket, 'b/2'));
      const [first, whole] = [await read(bucket, {}, 1, 'b/'), await read(bucket, {})];
      expect(keysOf(first.documents)).toEqual(['b/1']);
      const second = await read(bucket, first.position, 9, 'b/');
      expect([keysOf(second.documents), second.more, second.position]).toEqual([['b/2'], false, whole.position]);
      const within = [
        { bucket, prefix: 'a/2' },
        { bucket, prefix: 'b/' },
      ];
      const some = await store.objects.changes(bucket, { after: {}, prefix: '', within, limit: 9 });
      expect(some === 'lost' ? some : keysOf(some.documents)).toEqual(['b/1', 'a/2', 'b/2']);
    });

    it('knows a position of an index that was removed, and of another bucket', async () => {
      const [bucket, other] = [await newBucket(), await newBucket()];
      expect(await store.objects.position(`${bucket}-nothing`)).toEqual({});
      await write(live(bucket, 'a'), live(other, 'a'));
      const { position } = await read(bucket, {});
      expect(position).toEqual(await store.objects.position(bucket));
      const page = { after: position, prefix: '', limit: 10 };
      expect(await store.objects.changes(other, page)).toBe('lost');
      await store.objects.removeBucket(bucket);
      expect(await store.objects.changes(bucket, page)).toBe('lost');
      expect(await read(bucket, {})).toEqual({ documents: [], position: {}, more: false });
      await store.objects.createBucket(bucket);
      expect(await store.objects.changes(bucket, page)).toBe('lost');
    });

    ofOneShard('keeps the tombstones that were written after the mark of the purge', async () => {
      const bucket = await newBucket();
      const gone = { clock: 2_000, deleted_at: iso(NOON_MS - 1) };
      await write(live(bucket, 'old'), live(bucket, 'new'));
      await write(tombstone(bucket, 'old', gone));
      const mark = await store.objects.position(bucket);
      await write(tombstone(bucket, 'new', gone));
      const purge = (upTo: Position) => store.maintenance.purge(bucket, { deletedBeforeMs: NOON_MS, upTo, limit: 10 });
      await world.refresh();
      expect(await purge({})).toBe(0);
      expect(await purge({ '0': { ...mark['0']!, history: 'another' } })).toBe(0);
      expect(await purge(mark)).toBe(1);
      expect(keysOf((await read(bucket, {})).documents)).toEqual(['new']);
    });

    it('brings any follower to what the index says, while many write, and whenever it dies', async () => {
      for (const seed of isLong ? [1, 2, 3, 4, 5] : [1]) {
        const random = createRandom(seed);
        const bucket = await newBucket();
        const follower = createFollower<Position>();
        let clock = 1_000;
        const over = new AbortController();
        const one = () => {
          const key = `k${random.integer(0, 40)}`;
          clock += random.integer(-3, 5);
          return random.integer(1, 5) < 3 ? tombstone(bucket, key, { clock }) : live(bucket, key, { clock });
        };
        const writer = async (): Promise<void> => {
          for (let count = 0; count < 15; count += 1) {
            const writes = Array.from({ length: random.integer(1, 8) }, one).map(
              (document) => ({ document, equalClock: 'accept' }) as const,
            );
            await store.objects.write(writes);
            if (random.integer(1, 5) === 1) await store.scan.refresh(bucket);
          }
        };
        const page = async (after: Position | undefined): Promise<FeedPage<Position>> => {
          const found = await read(bucket, after ?? {}, random.integer(1, 9));
          return { items: found.documents, cursor: found.position, more: found.more };
        };
        const writers = Promise.all(Array.from({ length: 6 }, writer)).finally(() => over.abort());
        while (!over.signal.aborted) await follower.read(page, random.integer(1, 3) === 1);
        await writers;
        while (await follower.read(page));
        await store.scan.refresh(bucket);
        const held = await store.objects.search({ bucket, limit: 1_000 });
        expect(follower.live(), `seed ${seed}`).toEqual(new Map(held.map(({ key, clock: at }) => [key, at])));
        expect(held.length).toBeGreaterThan(3);
      }
    });
  });
}
