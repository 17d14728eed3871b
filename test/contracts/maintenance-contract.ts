/** The contract of ObjectMaintenance that both stores must pass. */
import * as fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import type { ObjectDocument } from '../../src/ordering/document.ts';
import type { Store } from '../../src/store/store.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { contractWorld, DAY_MS, iso, live, tombstone as tombstoneOf, unique, type Breadth, type OpenStore } from './world.ts';

const NOON_MS = Date.UTC(2026, 10, 1, 12);
const tombstone = (bucket: string, key: string, more: Partial<ObjectDocument> = {}): ObjectDocument =>
  tombstoneOf(bucket, key, { deleted_at: iso(NOON_MS), ...more });

/** Declares the contract’s tests for one store. */
export function maintenanceContract(name: string, open: () => Promise<OpenStore>, { runs }: Pick<Breadth, 'runs'>): void {
  describe(`${name} keeps the contract of maintenance`, () => {
    const world = contractWorld(open);
    const { newBucket, write } = world;
    let store: Store;
    beforeAll(() => {
      ({ store } = world);
    });

    it('finds the buckets that have unsettled documents by one request', async () => {
      const [has, hasNewer, hasNone] = [await newBucket(), await newBucket(), await newBucket()];
      await write([live(has, 'a', { settled: false }), live(hasNewer, 'a', { settled: false, clock: 5_000 }), live(hasNone, 'a')]);
      const found = await store.maintenance.unsettledBuckets(5_000);
      expect([has, hasNewer, hasNone].map((bucket) => found?.has(bucket))).toEqual([true, false, false]);
    });

    describe('purge', () => {
      /** Of all that was written by now. */
      const purge = async (bucket: string, limit = 10): Promise<number> =>
        store.maintenance.purge(bucket, { deletedBeforeMs: NOON_MS, limit, upTo: await store.objects.position(bucket) });

      it('removes for good the tombstones that were deleted before, and tells how many', async () => {
        const bucket = await newBucket();
        const long = 'é'.repeat(512);
        const kept = [tombstone(bucket, 'young'), live(bucket, 'live')];
        const gone = ['older', long].map((key) => tombstone(bucket, key, { deleted_at: iso(NOON_MS - DAY_MS), clock: 7 }));
        await write([...gone, tombstone(bucket, 'old', { deleted_at: iso(NOON_MS - 1) }), ...kept]);
        expect(await purge(bucket)).toBe(3);
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
        expect(await purge(bucket, 2)).toBe(2);
        expect(await purge(bucket, 2)).toBe(1);
        expect(await purge(bucket)).toBe(0);
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
        expect(await purge(bucket)).toBe(0);
        expect(await store.objects.getMany(bucket, ['a'])).toEqual([meanwhile]);
      });

      it('leaves nothing that a search of words would find, and lets the key come back', async () => {
        const bucket = await newBucket();
        await write([live(bucket, 'report.pdf', { clock: 41 })]);
        await write([tombstone(bucket, 'report.pdf', { clock: 42, deleted_at: iso(NOON_MS - 1) })]);
        await purge(bucket);
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
      expect(await maintenance.purge(bucket, { deletedBeforeMs: 1, upTo: {}, limit: 10 })).toBe(0);
      const [answer] = await store.objects.write([{ document: live(bucket, 'a'), equalClock: 'accept' }]);
      expect(answer).toMatchObject({ kind: 'fault', fault: { code: 'bucket.index-missing' } });
    });

    it('says what the plainest store says, whatever the documents', async () => {
      const documents = fc.uniqueArray(
        fc.record({
          key: fc.string({ unit: fc.constantFrom('a', 'b', '/', '\uffff', '\u{1f600}'), minLength: 1, maxLength: 4 }),
          deleted: fc.boolean(),
          settled: fc.boolean(),
          clock: fc.integer({ min: 1, max: 4 }),
          atMs: fc.option(fc.integer({ min: NOON_MS - 2, max: NOON_MS + 2 })),
        }),
        { selector: ({ key }) => key, maxLength: 30 },
      );
      const pages = fc.record({
        after: fc.constantFrom('', 'a', 'b/', '\uffff'),
        limit: fc.integer({ min: 1, max: 9 }),
        below: fc.integer({ min: 1, max: 5 }),
      });
      const bucket = await newBucket();
      const memory = createMemoryStore();
      await memory.objects.createBucket(bucket);
      let first = 9_999;
      await fc.assert(
        fc.asyncProperty(documents, pages, async (facts, { after, ...page }) => {
          // before the keys of all runs by now: an index for each run would take OpenSearch most of the test's time
          const prefix = String((first -= 1)).padStart(4, '0');
          const filled = facts.map(({ atMs, key, ...document }) => documentOf(bucket, { key: `${prefix}${key}`, ...document }, atMs));
          await write(filled);
          await memory.objects.write(filled.map((document) => ({ document, equalClock: 'accept' })));
          const asked = await Promise.all([store, memory].map((each) => askAll(each, bucket, { after: `${prefix}${after}`, ...page })));
          expect(asked[0]).toEqual(asked[1]);
        }),
        { numRuns: runs },
      );
    });
  });
}

function documentOf(
  bucket: string,
  { key, deleted, ...facts }: Pick<ObjectDocument, 'key' | 'deleted' | 'settled' | 'clock'>,
  atMs: number | null,
): ObjectDocument {
  const more = { ...facts, ...(atMs !== null && { expires_at: iso(atMs) }) };
  return deleted ? tombstone(bucket, key, { ...more, deleted_at: iso(atMs ?? NOON_MS) }) : live(bucket, key, more);
}

/** All that a store says of a bucket. */
async function askAll(
  { maintenance, objects }: Store,
  bucket: string,
  { after, limit, below }: { readonly after: string; readonly limit: number; readonly below: number },
) {
  const atMs = NOON_MS - 3 + below;
  return {
    unsettled: await maintenance.unsettled(bucket, { clockBelow: below, after, limit }),
    expiring: await maintenance.expiring(bucket, { beforeMs: atMs, after, limit }),
    // in parts of some: which of them goes first is the store's own
    purged: await maintenance.purge(bucket, { deletedBeforeMs: atMs, upTo: await objects.position(bucket), limit: 1_000 }),
  };
}
