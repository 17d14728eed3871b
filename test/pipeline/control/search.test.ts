import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { documentOf } from '../../../src/domain/documents/document.ts';
import { createSearch, type Search, type SearchRequest } from '../../../src/pipeline/control/search.ts';
import { refs, updateRecord } from '../../../src/pipeline/records/stored.ts';
import { searchRequest } from '../../support/requests.ts';
import { bucketRecord } from '../../support/worlds/reindex.ts';
import { compareUtf8, createMemoryStore } from '../../support/fakes/memory-store.ts';

async function searchOver(
  keys: readonly { readonly bucket: string; readonly key: string; readonly deleted?: boolean }[],
): Promise<(request: Partial<SearchRequest>) => ReturnType<Search>> {
  const { objects, state: records } = createMemoryStore();
  for (const bucket of ['one', 'two', 'two-b', 'three'])
    await updateRecord(records, refs.bucket(bucket), () => ({ ...bucketRecord, bucket }));
  for (const { bucket, key, deleted = false } of keys) {
    await objects.createBucket(bucket);
    const state = deleted ? ({ present: false } as const) : ({ present: true, sizeBytes: 1 } as const);
    const document = documentOf({ bucket, key, state, clock: 1, settled: true, source: 'native', cause: {}, stateAtMs: 0, nowMs: 0 });
    await objects.write([{ document, equalClock: 'accept' }]);
  }
  const search = createSearch({ objects, state: records });
  return (request) => search(searchRequest(request));
}

async function allPages(
  search: Awaited<ReturnType<typeof searchOver>>,
  request: Partial<SearchRequest>,
): Promise<{ readonly found: string[]; readonly pages: number }> {
  const found: string[] = [];
  let cursor: string | undefined;
  let pages = 0;
  do {
    const page = await search({ ...request, ...(cursor !== undefined && { cursor }) });
    found.push(...page.items.map(({ bucket, key }) => `${bucket}/${key}`));
    cursor = page.next;
    pages += 1;
  } while (cursor !== undefined);
  return { found, pages };
}

const keys = [
  { bucket: 'one', key: 'reports/2024/Final Report.PDF' },
  { bucket: 'one', key: 'reports/2025/draft.txt' },
  { bucket: 'one', key: 'gone.pdf', deleted: true },
  { bucket: 'two', key: 'photos/CaféTerrace.jpg' },
];

describe('search', () => {
  it.each<[Partial<SearchRequest>, string[]]>([
    [{}, ['reports/2024/Final Report.PDF', 'reports/2025/draft.txt', 'photos/CaféTerrace.jpg']],
    [{ bucket: 'two' }, ['photos/CaféTerrace.jpg']],
    [{ bucket: 'three' }, []],
    [{ key: 'reports/2025/draft.txt' }, ['reports/2025/draft.txt']],
    [{ prefix: 'reports/2024/' }, ['reports/2024/Final Report.PDF']],
    [{ prefix: '', bucket: 'two' }, ['photos/CaféTerrace.jpg']],
    [{ extension: '.PDF' }, ['reports/2024/Final Report.PDF']],
    [{ extension: 'txt' }, ['reports/2025/draft.txt']],
    [{ q: 'cafe terr' }, ['photos/CaféTerrace.jpg']],
    [{ q: 'report fin' }, ['reports/2024/Final Report.PDF']],
    [{ q: 'gone' }, []],
    [{ q: ' /–/ ' }, []],
    [{ q: '' }, []],
  ])('%j finds %j', async (request, expected) => {
    const search = await searchOver(keys);
    expect((await search(request)).items.map(({ key }) => key)).toEqual(expected);
  });

  it('names a next page only if there is one', async () => {
    const search = await searchOver(keys);
    expect(await search({ limit: 3 })).not.toHaveProperty('next');
    expect(await search({ limit: 2 })).toHaveProperty('next');
    expect(await allPages(search, { limit: 1 })).toMatchObject({ pages: 3 });
  });

  it.each([999, 1_000, 1_001])('knows at the largest limit whether there is more than %i', async (count) => {
    const search = await searchOver(Array.from({ length: count }, (_, index) => ({ bucket: 'one', key: `key-${index}` })));
    const { found, pages } = await allPages(search, { limit: 1_000 });
    expect(found).toHaveLength(count);
    expect(pages).toBe(count > 1_000 ? 2 : 1);
  });

  it('shows each object exactly once over its pages, in UTF-8 order of bucket and key', async () => {
    const object = fc.record({
      bucket: fc.constantFrom('one', 'two', 'two-b'),
      key: fc.string({ unit: 'binary', minLength: 1, maxLength: 6 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(object, { maxLength: 30 }), fc.integer({ min: 1, max: 7 }), async (objects, limit) => {
        const unique = [...new Map(objects.map((each) => [JSON.stringify(each), each])).values()];
        const search = await searchOver(unique);
        const sorted = unique.toSorted((a, b) => compareUtf8(a.bucket, b.bucket) || compareUtf8(a.key, b.key));
        expect((await allPages(search, { limit })).found).toEqual(sorted.map(({ bucket, key }) => `${bucket}/${key}`));
      }),
      { numRuns: 60 },
    );
  });

  it.each([{ cursor: 'nonsense' }, { cursor: 'nonsense', q: '' }])('refuses a cursor that no page answered: %j', async (request) => {
    const search = await searchOver([]);
    await expect(search(request)).rejects.toMatchObject({ code: 'request.invalid', message: expect.stringContaining('cursor: ') });
  });

  it('says that a bucket is not connected, rather than that it holds nothing', async () => {
    const search = await searchOver([]);
    await expect(search({ bucket: 'typo' })).rejects.toMatchObject({ code: 'bucket.not-connected' });
  });
});
