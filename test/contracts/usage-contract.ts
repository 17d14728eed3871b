/** The contract of sums that both stores must pass, compared with the plainest model. */
import { beforeAll, describe, expect, it } from 'vitest';
import { nameOf, type ObjectDocument } from '../../src/ordering/document.ts';
import { queryWordsOf } from '../../src/base/words.ts';
import { holds } from '../../src/store/conditions.rules.ts';
import { usageBy } from '../../src/store/groups.rules.ts';
import type { UsageQuery, Store } from '../../src/store/store.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { contractWorld, DAY_MS, iso, live as liveOf, tombstone, unique, type OpenStore } from './world.ts';

const BUCKET = unique('usage');
const OTHER = `${BUCKET}-other`;
const CHANGED = `${BUCKET}-changed`;
const NOW_MS = Date.UTC(2026, 8, 1, 12);

const live = (key: string, more: Partial<ObjectDocument> = {}): ObjectDocument =>
  liveOf(BUCKET, key, { ...nameOf(key), indexed_at: iso(NOW_MS), ...more });

const documents: readonly ObjectDocument[] = [
  live('top.txt', { size: 1, last_modified: iso(NOW_MS) }),
  live('a/one.txt', { size: 10, last_modified: iso(NOW_MS - DAY_MS), storage_class: 'STANDARD' }),
  live('a/two.gz', { size: 20, last_modified: iso(NOW_MS - DAY_MS - 1), storage_class: 'GLACIER' }),
  live('a/b/three.gz', { size: 2 ** 40, last_modified: iso(NOW_MS - 400 * DAY_MS), storage_class: 'GLACIER' }),
  live('a/b/c/d/e/f/g/h/i/deep.txt', { size: 5 }),
  live('a-b/four', { size: 7 }),
  live('a', { size: 3 }),
  live('/lead.txt', { size: 4 }),
  live('a//empty.txt', { size: 6 }),
  live('a/', { size: 0 }),
  live('\u{1f600}/smile', { size: 8 }),
  live('\uffff/last', { size: 9 }),
  live('\u00fcber/x/y', {}),
  live('\u00fcber/x/z', {}),
  live('nul\0a/x', { size: 11 }),
  live('nul\0a/b\0/y', { size: 12 }),
  live('nul\0b/x', { size: 13 }),
  tombstone(BUCKET, 'gone/x'),
];

/** Declares the contract's tests for one store. */
export function usageContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`${name} keeps the contract of usage`, () => {
    const world = contractWorld(open);
    let store: Store;
    const model = createMemoryStore();

    beforeAll(async () => {
      ({ store } = world);
      for (const each of [store, model]) for (const bucket of [BUCKET, OTHER]) await each.objects.createBucket(bucket);
      await world.write(
        [BUCKET, OTHER].flatMap((bucket) => documents.map((document) => ({ ...document, bucket }))),
        model,
      );
    });

    const base: UsageQuery = { bucket: BUCKET, prefix: '', by: usageBy, nowMs: NOW_MS, limit: 1_000, timeLimitMs: 60_000 };
    const withoutFolders = usageBy.filter((by) => by !== 'folder');

    it.each(['', 'a/', 'a/b/', 'a//', '/', 'a/b/c/d/e/f/g/', '\u00fcber/', 'nul\0a/', 'none/'])('sums below %j', async (prefix) => {
      const query = { ...base, prefix };
      const wanted = await model.usage(query);
      expect(await store.usage(query)).toEqual(wanted);
      for (const by of usageBy) expect(await store.usage({ ...query, by: [by] }), by).toEqual(await model.usage({ ...query, by: [by] }));
      expect(await store.usage({ ...query, by: [] })).toEqual({ ...(wanted as object), groups: [] });
    });

    it.each(['a', 'a/o', 'a/b/th', '\u00fc'])('sums keys that begin with %j', async (prefix) => {
      const query = { ...base, prefix, by: withoutFolders };
      expect(await store.usage(query)).toEqual(await model.usage(query));
    });

    it('sums what is left when objects change, and nothing of a bucket that was removed', async () => {
      const changes = [
        live('a/one.txt', { size: 11, storage_class: 'GLACIER', clock: 2_000 }),
        tombstone(CHANGED, 'a/two.gz', { clock: 2_000 }),
        live('gone/x', { size: 2 ** 41, clock: 2_000 }),
        live('a/b/three.gz', { size: 1, clock: 1 }),
        live('a/new.txt', { clock: 2_000 }),
        live('a/new.txt', { size: 12, clock: 2_001 }),
      ].map((document) => ({ ...document, bucket: CHANGED }));
      for (const each of [store, model]) {
        await each.objects.createBucket(CHANGED);
        for (const document of [...documents, ...changes])
          await each.objects.write([{ document: { ...document, bucket: CHANGED }, equalClock: 'accept' }]);
      }
      await world.refresh();
      const query = { ...base, bucket: CHANGED };
      expect(await store.usage(query)).toEqual(await model.usage(query));
      await store.objects.removeBucket(CHANGED);
      await store.objects.createBucket(CHANGED);
      await world.write([tombstone(CHANGED, 'a/two.gz')]);
      expect(await store.usage(query)).toEqual({ objects: 0, bytes: 0, groups: usageBy.map(() => []) });
    });

    it.each<[string, Partial<UsageQuery>]>([
      ['a size', { where: [holds({ kind: 'size', min: 6 })] }],
      ['a text', { where: [holds({ kind: 'contains', text: 'e.txt' })] }],
      ['a prefix of names', { where: [holds({ kind: 'prefix', value: 'a/t' })] }],
      ['a key', { key: 'a/one.txt' }],
      ['an extension', { where: [holds({ kind: 'extension', value: 'gz' })] }],
      ['words', { words: queryWordsOf('thr')! }],
      ['words that nothing has', { words: queryWordsOf('nothing')! }],
      ['the largest groups', { limit: 1 }],
      ['the two largest groups', { limit: 2 }],
      [
        'several buckets',
        { bucket: undefined, by: withoutFolders, within: [BUCKET, OTHER].map((bucket) => ({ bucket, prefix: 'a' })) } as object,
      ],
      ['no part', { within: [] }],
      ['a part', { within: [{ bucket: BUCKET, prefix: 'a/b/' }] }],
      ['words of a part', { words: queryWordsOf('thr')!, within: [{ bucket: BUCKET, prefix: 'a/b/' }] }],
      ['a bucket without an index', { bucket: `${BUCKET}-never` }],
    ])('sums what a filter leaves: %s', async (_, filter) => {
      for (const prefix of ['', 'a/']) {
        const query = { ...base, prefix, ...filter };
        expect(await store.usage(query)).toEqual(await model.usage(query));
      }
    });
  });
}
