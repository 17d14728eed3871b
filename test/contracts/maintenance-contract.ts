/** The contract of ObjectMaintenance that both stores must pass. */
import * as fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import type { ObjectDocument } from '../../src/domain/documents/document.ts';
import type { Store } from '../../src/pipeline/ports/store.ts';
import type { AgedPage } from '../../src/pipeline/ports/object-index.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { contractWorld, DAY_MS, iso, keysOf, live, tombstone as tombstoneOf, unique, type OpenStore } from './world.ts';

const NOON_MS = Date.UTC(2026, 10, 1, 12);
const tombstone = (bucket: string, key: string, more: Partial<ObjectDocument> = {}): ObjectDocument =>
  tombstoneOf(bucket, key, { deleted_at: iso(NOON_MS), ...more });

/** Declares the contract’s tests for one store. */
export function maintenanceContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`${name} keeps the contract of maintenance`, () => {
    const world = contractWorld(open);
    const { newBucket, write } = world;
    let store: Store;
    beforeAll(() => {
      ({ store } = world);
    });

    describe('unsettled', () => {
      it('finds documents and tombstones that are not settled and whose clock is below, whole, in UTF-8 order', async () => {
        const bucket = await newBucket();
        const found = [
          live(bucket, '\uffff', { settled: false, size: 3, etag: 'e' }),
          live(bucket, '\u{1f600}', { settled: false }),
          tombstone(bucket, 'gone', { settled: false }),
        ];
        const others = [
          live(bucket, 'settled'),
          tombstone(bucket, 'gone and settled'),
          live(bucket, 'new', { settled: false, clock: 5_000 }),
        ];
        await write([...found, ...others]);
        const page = { clockBelow: 5_000, after: '', limit: 10 };
        expect(await store.maintenance.unsettled(bucket, page)).toEqual([found[2], found[0], found[1]]);
      });

      it('finds the buckets that have such documents, where one request shows them', async () => {
        const [has, hasNewer, hasNone] = [await newBucket(), await newBucket(), await newBucket()];
        await write([live(has, 'a', { settled: false }), live(hasNewer, 'a', { settled: false, clock: 5_000 }), live(hasNone, 'a')]);
        const found = await store.maintenance.unsettledBuckets(5_000);
        if (found === undefined) return expect(store.product).toBe('sqlite');
        expect([has, hasNewer, hasNone].map((bucket) => found.has(bucket))).toEqual([true, false, false]);
      });
    });

    describe('expiring', () => {
      it('finds live documents that should have expired before, and no tombstone', async () => {
        const bucket = await newBucket();
        const past = { expires_at: iso(NOON_MS - 1) };
        await write([
          live(bucket, 'b', past),
          live(bucket, 'a', past),
          live(bucket, 'at the very moment', { expires_at: iso(NOON_MS) }),
          live(bucket, 'later', { expires_at: iso(NOON_MS + DAY_MS) }),
          live(bucket, 'never'),
          tombstone(bucket, 'gone', past),
        ]);
        const page = { beforeMs: NOON_MS, after: '', limit: 10 };
        expect(keysOf(await store.maintenance.expiring(bucket, page))).toEqual(['a', 'b']);
        expect(keysOf(await store.maintenance.expiring(bucket, { ...page, after: 'a' }))).toEqual(['b']);
        expect(keysOf(await store.maintenance.expiring(bucket, { ...page, limit: 1 }))).toEqual(['a']);
      });
    });

    describe('aged', () => {
      const page: AgedPage = { prefix: '', modifiedUntilMs: NOON_MS, after: '', limit: 100 };

      it('finds live documents that are old enough and those of unknown age', async () => {
        const bucket = await newBucket();
        await write([
          live(bucket, 'at the very moment', { last_modified: iso(NOON_MS) }),
          live(bucket, 'younger', { last_modified: iso(NOON_MS + 1) }),
          live(bucket, 'of unknown age'),
          tombstone(bucket, 'gone'),
        ]);
        expect(await store.maintenance.aged(bucket, page)).toEqual({
          documents: [live(bucket, 'at the very moment', { last_modified: iso(NOON_MS) }), live(bucket, 'of unknown age')],
        });
      });

      it('keeps within the prefix, letter by letter, and between the sizes, which are not included, or unknown', async () => {
        const bucket = await newBucket();
        const sized = ['log/', 'log/1', 'log/\u{10ffff}', 'log', 'log0', 'Log/1', 'log*1'];
        await write([...sized.map((key, at) => live(bucket, key, { size: at + 9 })), live(bucket, 'log/unknown')]);
        const keys = async (more: Partial<AgedPage>) =>
          keysOf((await store.maintenance.aged(bucket, { ...page, prefix: 'log/', ...more })).documents);
        expect(await keys({})).toEqual(['log/', 'log/1', 'log/unknown', 'log/\u{10ffff}']);
        expect(await keys({ sizeAbove: 9, sizeBelow: 11 })).toEqual(['log/1', 'log/unknown']);
      });

      it('goes on where a page ended, past pages that hold nothing', async () => {
        const bucket = await newBucket();
        const keys = Array.from({ length: 25 }, (_, at) => String.fromCodePoint(97 + at));
        await write(keys.map((key) => live(bucket, key, { last_modified: iso(key === 'x' ? NOON_MS : NOON_MS + DAY_MS) })));
        const found: string[] = [];
        let after: string | undefined = '';
        for (let pages = 0; after !== undefined && pages < 50; pages += 1) {
          const { documents, next } = await store.maintenance.aged(bucket, { ...page, after, limit: 2 });
          found.push(...keysOf(documents));
          after = next;
        }
        expect(after).toBeUndefined();
        expect(found).toEqual(['x']);
      });
    });

    describe('purge', () => {
      const old = { deletedBeforeMs: NOON_MS, after: '', limit: 10 };

      it('removes for good the tombstones that were deleted before, and tells how many', async () => {
        const bucket = await newBucket();
        const long = 'é'.repeat(512);
        const kept = [tombstone(bucket, 'young'), live(bucket, 'live')];
        const gone = ['older', long].map((key) => tombstone(bucket, key, { deleted_at: iso(NOON_MS - DAY_MS), clock: 7 }));
        await write([...gone, tombstone(bucket, 'old', { deleted_at: iso(NOON_MS - 1) }), ...kept]);
        expect(await store.maintenance.purge(bucket, old)).toEqual({ purged: 3 });
        expect(await store.objects.getMany(bucket, ['old', 'older', long, 'young', 'live'])).toEqual([
          undefined,
          undefined,
          undefined,
          ...kept,
        ]);
      });

      it('removes no more than it may, and continues', async () => {
        const bucket = await newBucket();
        await write(['a', 'b', 'c'].map((key) => tombstone(bucket, key, { deleted_at: iso(NOON_MS - 1) })));
        const first = await store.maintenance.purge(bucket, { ...old, limit: 2 });
        expect(first).toEqual({ purged: 2, next: expect.any(String) as string });
        expect(await store.maintenance.purge(bucket, { ...old, limit: 2, after: first.next ?? '' })).toEqual({ purged: 1 });
        expect(await store.maintenance.purge(bucket, old)).toEqual({ purged: 0 });
      });

      it.each([
        ['a later write', { deleted: false, clock: 43 }],
        ['a write at the very same clock', { deleted: false, clock: 42 }],
        ['a later tombstone', { deleted: true, clock: 43 }],
      ])('leaves alone %s that no search finds yet', async (_, { deleted, clock }) => {
        const bucket = await newBucket();
        await write([tombstone(bucket, 'a', { clock: 42, deleted_at: iso(NOON_MS - 1) })]);
        const meanwhile = deleted ? tombstone(bucket, 'a', { clock }) : live(bucket, 'a', { clock });
        await store.objects.write([{ document: meanwhile, equalClock: 'accept' }]);
        expect(await store.maintenance.purge(bucket, old)).toEqual({ purged: 0 });
        expect(await store.objects.getMany(bucket, ['a'])).toEqual([meanwhile]);
      });

      it('leaves nothing that a search of words would find, and lets the key come back', async () => {
        const bucket = await newBucket();
        await write([live(bucket, 'report.pdf', { clock: 41 })]);
        await write([tombstone(bucket, 'report.pdf', { clock: 42, deleted_at: iso(NOON_MS - 1) })]);
        await store.maintenance.purge(bucket, old);
        await write([live(bucket, 'report.pdf', { clock: 50 })]);
        const found = await store.objects.search({ bucket, words: [[{ whole: [], prefix: 'report' }]], limit: 10 });
        expect(found).toEqual([live(bucket, 'report.pdf', { clock: 50 })]);
      });
    });

    it('has nothing to look after in a bucket without index, and makes none', async () => {
      const bucket = unique('nobody');
      const page = { after: '', limit: 10 };
      const { maintenance } = store;
      expect(await maintenance.unsettled(bucket, { ...page, clockBelow: 1 })).toEqual([]);
      expect(await maintenance.expiring(bucket, { ...page, beforeMs: 1 })).toEqual([]);
      expect(await maintenance.aged(bucket, { ...page, prefix: '', modifiedUntilMs: 1 })).toEqual({ documents: [] });
      expect(await maintenance.purge(bucket, { ...page, deletedBeforeMs: 1 })).toEqual({ purged: 0 });
      const [answer] = await store.objects.write([{ document: live(bucket, 'a'), equalClock: 'accept' }]);
      expect(answer).toMatchObject({ kind: 'fault', code: 'bucket.index-missing' });
    });

    it('says what the plainest store says, whatever the documents', async () => {
      const documents = fc.uniqueArray(
        fc.record({
          key: fc.string({ unit: fc.constantFrom('a', 'b', '/', '\uffff', '\u{1f600}'), minLength: 1, maxLength: 4 }),
          deleted: fc.boolean(),
          settled: fc.boolean(),
          clock: fc.integer({ min: 1, max: 4 }),
          atMs: fc.option(fc.integer({ min: NOON_MS - 2, max: NOON_MS + 2 })),
          size: fc.option(fc.integer({ min: 0, max: 3 })),
        }),
        { selector: ({ key }) => key, maxLength: 30 },
      );
      const pages = fc.record({
        prefix: fc.constantFrom('', 'a', '\u{1f600}', '/'),
        after: fc.constantFrom('', 'a', 'b/', '\uffff'),
        limit: fc.integer({ min: 1, max: 9 }),
        below: fc.integer({ min: 1, max: 5 }),
      });
      await fc.assert(
        fc.asyncProperty(documents, pages, async (facts, { prefix, after, limit, below }) => {
          const bucket = await newBucket();
          const memory = createMemoryStore();
          await memory.objects.createBucket(bucket);
          const filled = facts.map(({ atMs, size, ...document }) => documentOf(bucket, document, { atMs, size }));
          await write(filled);
          await memory.objects.write(filled.map((document) => ({ document, equalClock: 'accept' })));
          const asked = await Promise.all([store, memory].map((each) => askAll(each, bucket, { prefix, after, limit, below })));
          expect(asked[0]).toEqual(asked[1]);
        }),
        { numRuns: 15 },
      );
    });
  });
}

function documentOf(
  bucket: string,
  { key, deleted, ...facts }: Pick<ObjectDocument, 'key' | 'deleted' | 'settled' | 'clock'>,
  { atMs, size }: { readonly atMs: number | null; readonly size: number | null },
): ObjectDocument {
  if (deleted) return tombstone(bucket, key, { ...facts, deleted_at: iso(atMs ?? NOON_MS) });
  const times = atMs === null ? {} : { last_modified: iso(atMs), expires_at: iso(atMs) };
  return live(bucket, key, { ...facts, ...times, ...(size !== null && { size }) });
}

/** All that a store says of a bucket; of `aged` all pages, since their borders are each store's own. */
async function askAll(
  { maintenance }: Store,
  bucket: string,
  { prefix, after, limit, below }: { readonly prefix: string; readonly after: string; readonly limit: number; readonly below: number },
) {
  const atMs = NOON_MS - 3 + below;
  const aged: ObjectDocument[] = [];
  for (let next: string | undefined = after; next !== undefined;) {
    const page = await maintenance.aged(bucket, { prefix, modifiedUntilMs: atMs, sizeAbove: 0, sizeBelow: 3, after: next, limit });
    aged.push(...page.documents);
    next = page.next;
  }
  return {
    unsettled: await maintenance.unsettled(bucket, { clockBelow: below, after, limit }),
    expiring: await maintenance.expiring(bucket, { beforeMs: atMs, after, limit }),
    aged,
    // in parts of some: which of them goes first is the store's own
    purged: (await maintenance.purge(bucket, { deletedBeforeMs: atMs, after: '', limit: 1_000 })).purged,
  };
}
