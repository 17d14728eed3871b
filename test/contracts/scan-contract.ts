/** The contract of ObjectScan that every store must pass. */
import * as fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import type { ObjectDocument } from '../../src/ordering/document.ts';
import { compareKeys } from '../../src/base/key-order.ts';
import type { Store } from '../../src/store/store.ts';
import { awkwardKeys, contractWorld, keysOf, live, tombstone, unique, type Breadth, type OpenStore } from './world.ts';

/** Declares the scan's tests for one store. */
export function scanContract(name: string, open: () => Promise<OpenStore>, { runs }: Pick<Breadth, 'runs'>): void {
  describe(`${name} is scanned as the contract says`, () => {
    const world = contractWorld(open);
    const { newBucket, write } = world;
    let store: Store;
    beforeAll(() => {
      ({ store } = world);
    });

    async function filled(documents: (bucket: string) => readonly ObjectDocument[]): Promise<string> {
      const bucket = await newBucket();
      await write(documents(bucket));
      await store.scan.refresh(bucket);
      return bucket;
    }

    const whole = { prefix: '', after: '', limit: 10_000 };

    it('tells of each live document what a reconcile compares, and no more', async () => {
      const told = {
        key: 'k',
        size: 0,
        etag: 'e',
        last_modified: '2026-01-02T03:04:05.678Z',
        last_modified_exact: false,
        storage_class: 'GLACIER',
        clock: 1_790_000_000_123_457,
        settled: false,
        user_metadata: {},
        tags: { a: 'b' },
      };
      const bucket = await filled((b) => [live(b, 'k', { ...told, version_id: 'v', content_type: 'text/plain' }), live(b, 'plain')]);
      expect(await store.scan.scan(bucket, whole)).toEqual([told, { key: 'plain', clock: 1_000, settled: true }]);
    });

    it('leaves tombstones and other buckets out', async () => {
      const bucket = await filled((b) => [live(b, 'a'), tombstone(b, 'b'), live(b, 'c')]);
      await filled((b) => [live(b, 'other')]);
      expect(keysOf(await store.scan.scan(bucket, whole))).toEqual(['a', 'c']);
      expect(await store.scan.countLive(bucket, '')).toBe(2);
    });

    it('agrees with a plain list for every range', async () => {
      const bucket = await filled((b) => awkwardKeys.map((key) => live(b, key)));
      const anyKey = fc.oneof(fc.constantFrom('', ...awkwardKeys), fc.string({ unit: 'binary', maxLength: 3 }));
      const prefixes = fc.oneof(fc.constant(''), fc.constantFrom(...awkwardKeys), fc.constantFrom('a', 'e', '\u{1f600}'));
      const range = fc.record({
        prefix: prefixes,
        after: anyKey,
        upTo: fc.option(anyKey, { nil: undefined }),
        limit: fc.integer({ min: 1, max: 40 }),
      });
      await fc.assert(
        fc.asyncProperty(range, async ({ prefix, after, upTo, limit }) => {
          const expected = awkwardKeys
            .filter((key) => key.startsWith(prefix) && compareKeys(key, after) > 0 && (upTo === undefined || compareKeys(key, upTo) <= 0))
            .toSorted(compareKeys)
            .slice(0, limit);
          const found = await store.scan.scan(bucket, { prefix, after, limit, ...(upTo !== undefined && { upTo }) });
          expect(keysOf(found)).toEqual(expected);
          expect(await store.scan.countLive(bucket, prefix)).toBe(awkwardKeys.filter((key) => key.startsWith(prefix)).length);
        }),
        { numRuns: runs },
      );
    });

    it('reads more documents than a page of the store’s own', async () => {
      const count = 2_345;
      const bucket = await filled((b) => Array.from({ length: count }, (_, index) => live(b, `k${String(index).padStart(6, '0')}`)));
      const keys = keysOf(await store.scan.scan(bucket, whole));
      expect(keys).toHaveLength(count);
      expect(keys).toEqual(keys.toSorted(compareKeys));
      expect(await store.scan.countLive(bucket, 'k001')).toBe(1_000);
    });

    it('finds nothing in a bucket that was never created', async () => {
      const bucket = unique('never');
      expect(await store.scan.scan(bucket, whole)).toEqual([]);
      expect(await store.scan.countLive(bucket, '')).toBe(0);
      await store.scan.refresh(bucket);
    });

    it('sees after a refresh every write that was answered before', async () => {
      const bucket = await filled((b) => [live(b, 'a')]);
      await store.objects.write([
        { document: tombstone(bucket, 'a'), equalClock: 'accept' },
        { document: live(bucket, 'b'), equalClock: 'accept' },
      ]);
      await store.scan.refresh(bucket);
      expect(keysOf(await store.scan.scan(bucket, whole))).toEqual(['b']);
    });

    it('rejects with the reason of a signal that was aborted before', async () => {
      const reason = new Error('stopping');
      const signal = AbortSignal.abort(reason);
      const bucket = await filled(() => []);
      await expect(store.scan.scan(bucket, whole, signal)).rejects.toBe(reason);
      await expect(store.scan.countLive(bucket, '', signal)).rejects.toBe(reason);
      await expect(store.scan.refresh(bucket, signal)).rejects.toBe(reason);
    });
  });
}
