/** The contract of sums that both stores must pass, compared with the plainest model. */
import { beforeAll, describe, expect, it } from 'vitest';
import { usageBy as usageGroups } from '../../src/api/usage.ts';
import { nameOf, type ObjectDocument } from '../../src/domain/documents/document.ts';
import { queryWordsOf } from '../../src/domain/documents/words.ts';
import { holds } from '../../src/domain/search/conditions.ts';
import type { FacetsQuery, UsageQuery, UsageRow } from '../../src/pipeline/ports/object-usage.ts';
import type { Store } from '../../src/pipeline/ports/store.ts';
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

function withoutTimes(rows: readonly UsageRow[] | 'too-slow'): readonly UsageRow[] {
  if (rows === 'too-slow') throw new Error(rows);
  return rows.map(({ name, objects, bytes }) => ({ name, objects, bytes }));
}

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

    const base: UsageQuery = { bucket: BUCKET, prefix: '', by: 'folder', nowMs: NOW_MS, limit: 1_001, timeLimitMs: 60_000 };
    const prefixes = ['', 'a/', 'a/b/', 'a//', '/', 'a/b/c/d/e/f/g/', '\u00fcber/', 'nul\0a/', 'none/'];
    const withinNames = ['a', 'a/o', 'a/b/th', '\u00fc'].flatMap((prefix) =>
      usageGroups.filter((by) => by !== 'folder').map((by) => ({ prefix, by })),
    );

    it.each([...prefixes.flatMap((prefix) => usageGroups.map((by) => ({ prefix, by }))), ...withinNames])(
      'sums below $prefix by $by',
      async ({ prefix, by }) => {
        const query = { ...base, prefix, by };
        const wanted = await model.usage.usage(query);
        expect(await store.usage.usage(query)).toEqual(wanted);
        // a store may sum groups in another way that it knows from the first time
        for (const time of ['first', 'second'])
          expect(await store.usage.usage({ ...query, withoutTimes: true }), time).toMatchObject(withoutTimes(wanted));
      },
    );

    it('sums what is left when objects change', async () => {
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
        for (const document of documents) await each.objects.write([{ document: { ...document, bucket: CHANGED }, equalClock: 'accept' }]);
      }
      await world.refresh();
      for (const by of usageGroups) await store.usage.usage({ ...base, bucket: CHANGED, by, withoutTimes: true });
      for (const each of [store, model]) for (const document of changes) await each.objects.write([{ document, equalClock: 'accept' }]);
      await world.refresh();
      for (const by of usageGroups) {
        const query = { ...base, bucket: CHANGED, by, withoutTimes: true };
        const wanted = await model.usage.usage({ ...base, bucket: CHANGED, by });
        expect(await store.usage.usage(query)).toMatchObject(withoutTimes(wanted));
      }
      const facets = { bucket: CHANGED, nowMs: NOW_MS, groupsMax: 100, timeLimitMs: 60_000 };
      expect(await store.usage.facets(facets)).toEqual(await model.usage.facets(facets));
      await store.objects.removeBucket(CHANGED);
      await store.objects.createBucket(CHANGED);
      await world.write([tombstone(CHANGED, 'a/two.gz')]);
      for (const by of usageGroups) expect(await store.usage.usage({ ...base, bucket: CHANGED, by, withoutTimes: true })).toEqual([]);
      expect(await store.usage.facets(facets)).toMatchObject({ objects: 0, bytes: 0, facets: { bucket: [], size: [], age: [] } });
    });

    it('sums what a filter leaves', async () => {
      const filters: readonly Partial<UsageQuery>[] = [
        { where: [holds({ kind: 'size', min: 6 })] },
        { where: [holds({ kind: 'contains', text: 'e.txt' })] },
        { where: [holds({ kind: 'prefix', value: 'a/t' })] },
        { extension: 'gz' },
        { words: queryWordsOf('thr')! },
        { words: queryWordsOf('nothing')! },
      ];
      for (const by of usageGroups) {
        for (const filter of filters) {
          const query = { ...base, prefix: 'a/', by, ...filter };
          expect(await store.usage.usage(query), JSON.stringify(query)).toEqual(await model.usage.usage(query));
        }
      }
    });

    it.each(['folder', 'class', 'extension'] as const)('pages groups by %s', async (by) => {
      const wanted = await model.usage.usage({ ...base, by });
      for (const limit of [1, 2]) {
        const found: UsageRow[] = [];
        for (let after: string | undefined; ;) {
          const page = await store.usage.usage({ ...base, by, limit, withoutTimes: true, ...(after !== undefined && { after }) });
          if (page === 'too-slow') throw new Error(page);
          found.push(...page);
          after = page.at(-1)?.name;
          if (page.length < limit) break;
        }
        expect(found).toMatchObject(withoutTimes(wanted));
        expect(found).toHaveLength(wanted.length);
      }
    });

    it.each<[string, Partial<FacetsQuery>]>([
      ['all of a bucket', {}],
      ['the largest groups', { groupsMax: 1 }],
      ['a prefix', { prefix: 'a/' }],
      ['a size', { where: [holds({ kind: 'size', min: 6 })] }],
      ['a text', { where: [holds({ kind: 'contains', text: 'e.txt' })] }],
      ['an extension', { extension: 'gz' }],
      ['words', { words: queryWordsOf('thr')! }],
      ['words that nothing has', { words: queryWordsOf('nothing')! }],
      ['parts of several buckets', { bucket: undefined, within: [BUCKET, OTHER].map((bucket) => ({ bucket, prefix: 'a' })) } as object],
      ['a part and a prefix', { prefix: 'a', within: [{ bucket: BUCKET, prefix: 'a/b/' }] }],
      ['a bucket without an index', { bucket: `${BUCKET}-never` }],
    ])('sums the facets of %s', async (_, filter) => {
      const query = { bucket: BUCKET, nowMs: NOW_MS, groupsMax: 100, timeLimitMs: 60_000, ...filter };
      expect(await store.usage.facets(query)).toEqual(await model.usage.facets(query));
    });

    it('has nothing to sum in a bucket without an index', async () => {
      expect(await store.usage.usage({ ...base, bucket: `${BUCKET}-never` })).toEqual([]);
    });
  });
}
