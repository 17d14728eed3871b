import { describe, expect, it } from 'vitest';
import { encodeCursor } from '../../src/base/cursor.ts';
import { documentOf } from '../../src/ordering/document.ts';
import { createAsOf, createSearch, type Search, type SearchRequest } from '../../src/search/search.ts';
import { createProcesses } from '../../src/observing/processes.ts';
import { refs, updateRecord } from '../../src/store/stored.ts';
import { searchRequest } from '../support/requests.ts';
import { bucketRecord } from '../support/worlds/reindex.ts';
import { createFakeClock } from '../support/fakes/ports.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';

const noTroubles = { processes: { troubles: async () => [] }, compareIntervalMs: 0 };

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
  const search = createSearch({ objects, state: records, clock: createFakeClock(), ...noTroubles });
  return (request) => search(searchRequest(request), 'everything');
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
    [{ q: 'cafe terr' }, ['photos/CaféTerrace.jpg']],
    [{ q: 'gone' }, []],
    [{ query: 's3://one/reports/', match: '*.t*' }, ['reports/2025/draft.txt']],
    [{ query: 'is:deleted', key: 'gone.pdf' }, ['gone.pdf']],
    [{ q: '' }, ['reports/2024/Final Report.PDF', 'reports/2025/draft.txt', 'photos/CaféTerrace.jpg']],
    [{ query: 'bucket:one,two ext:pdf,jpg size<1k' }, ['reports/2024/Final Report.PDF', 'photos/CaféTerrace.jpg']],
    [{ deleted: 'true', bucket: 'one', contains: 'GONE' }, ['gone.pdf']],
    [{ sort: 'key', order: 'desc', bucket: 'one' }, ['reports/2025/draft.txt', 'reports/2024/Final Report.PDF']],
  ])('%j finds %j', async (request, expected) => {
    const search = await searchOver(keys);
    expect((await search(request)).items.map(({ key }) => key)).toEqual(expected);
  });

  it('refuses more words, texts and patterns than OpenSearch takes', async () => {
    const search = await searchOver(keys);
    const pieces = (from: number, count: number): string =>
      Array.from({ length: count }, (_, at) => `a${(from + at) % 10}b${((from + at) / 10) | 0}c3d4`).join('-');
    const text = (letter: string): string => `"${letter.repeat(250)}"`;
    const tooLong = { code: 'request.invalid', message: expect.stringContaining('too long together') };
    for (const request of [
      { query: `${pieces(0, 60)} ${pieces(60, 60)} ${pieces(120, 60)}` },
      { query: `${text('a')},${text('b')} ${text('c')} -${text('d')} abc*` },
      { q: pieces(0, 60), contains: 'a'.repeat(256), match: 'b'.repeat(250) },
      { match: `*${'\ufdfa'.repeat(84)}` },
    ]) {
      await expect(search(request)).rejects.toMatchObject(tooLong);
    }
    await search({ query: `${text('a')} ${text('b')} ${text('c')}` });
    await search({ query: pieces(0, 60) });
  });

  it('refuses cursors of another order, and with moments that no page answered', async () => {
    const search = await searchOver(keys);
    for (const sort of ['key', 'size', 'last_modified'] as const) {
      const { next } = await search({ sort, order: 'desc', limit: 1 });
      const refused = { code: 'request.invalid', message: expect.stringContaining('another order') as unknown };
      await expect(search({ sort, order: 'asc', cursor: next! })).rejects.toMatchObject(refused);
    }
    const cursors: readonly (readonly [Partial<SearchRequest>, readonly string[]])[] = [
      [{ sort: 'last_modified' }, ['last_modified', 'asc', '9000000000000000', 'one', 'a', '']],
      [{ sort: 'size' }, ['size', 'asc', '1', 'one', 'a', '9000000000000000']],
      [{ sort: 'size' }, ['size', 'asc', '1e3', 'one', 'a', '']],
    ];
    for (const [request, parts] of cursors)
      await expect(search({ ...request, cursor: encodeCursor(parts) })).rejects.toMatchObject({ code: 'request.invalid' });
    expect(await search({ sort: 'size', cursor: encodeCursor(['size', 'asc', '9007199254740991', 'one', 'a', '']) })).toEqual({
      items: [],
    });
    // an age that is counted from a moment of a cursor
    const far = encodeCursor(['key', 'asc', '', 'one', 'a', '8640000000000000']);
    expect(await search({ query: 'modified<999999y', cursor: far })).toMatchObject({ items: [] });
  });

  it.each([1_000, 1_001])(
    'knows at the largest limit whether there is more than %i, and shows each object once, in order',
    async (count) => {
      const places = Array.from({ length: count }, (_, index) => ({ bucket: index < 600 ? 'one' : 'two', key: `ü/${1_000 + index}` }));
      const { found, pages } = await allPages(await searchOver(places.toReversed()), { limit: 1_000 });
      expect(found).toEqual(places.map(({ bucket, key }) => `${bucket}/${key}`));
      expect(pages).toBe(count > 1_000 ? 2 : 1);
    },
  );

  it.each<[Partial<SearchRequest>, string]>([
    [{ query: 'a', q: 'b' }, 'query: cannot be combined with q'],
    [{ query: 'cat extn:pdf' }, 'query: at character 5: there is no field extn; the fields are bucket, '],
    [{ query: 'a', tz: 'Mars' }, 'tz: must be a time zone'],
    [{ contains: 'ab' }, 'contains: a text needs at least 3 characters'],
    [{ tag: ['a=b', 'owner=*'] }, 'tag: this does not accept a pattern: write tag:NAME for any value'],
    [{ modified_after: '2026-02-30' }, 'modified_after: '],
    [{ deleted: 'true', q: 'a' }, 'deleted objects have no words'],
    [{ deleted: 'true', extension: 'pdf' }, 'extension: deleted objects can be searched only by'],
    [{ deleted: 'true', query: 'ext:pdf' }, 'query: at character 1: deleted objects can be searched only by'],
    [{ q: ' /–/ ' }, 'q: has no letters or digits'],
    [{ q: 'cat OR dog' }, 'q: takes only words'],
    [{ q: 'report -draft' }, 'q: takes only words'],
    [{ q: '"al rep"' }, 'q: takes only words'],
    [{ deleted: 'false', query: 'is:deleted' }, 'deleted: the query asks for deleted objects'],
    [{ sort: 'deleted_at' }, 'sort: deleted_at needs deleted=true'],
    [{ deleted: 'true', sort: 'size' }, 'sort: deleted objects have no size'],
  ])('refuses %j: %s', async (request, message) => {
    const search = await searchOver(keys);
    await expect(search(request)).rejects.toMatchObject({ code: 'request.invalid', message: expect.stringContaining(message) });
  });

  it('counts what matches, and names what it understood, with absolute values', async () => {
    const search = await searchOver(keys);
    expect(await search({ total: 'true', limit: 1 })).toMatchObject({ total: { value: 3, exact: true } });
    expect((await search({ query: 'report size>1k' })).understood).toEqual([
      { field: 'words', negated: false, values: ['report'], text: 'report', position: 0 },
      { field: 'size', negated: false, operator: '>', values: ['1024'], text: 'size>1k', position: 7 },
    ]);
  });

  it('refuses what a bucket is not enriched with, rather than that no object has it', async () => {
    const { objects, state } = createMemoryStore();
    const enriched = { none: 'none', head: 'head', tags: 'tags' } as const;
    for (const [bucket, enrich] of Object.entries(enriched))
      await updateRecord(state, refs.bucket(bucket), () => ({ ...bucketRecord, bucket, enrich }));
    const search = createSearch({ objects, state, clock: createFakeClock(), ...noTroubles });
    const answerOf = (query: string, ...readable: readonly string[]): Promise<string> =>
      search(searchRequest({ query }), readable.length === 0 ? 'everything' : readable.map((bucket) => ({ bucket, prefix: '' }))).then(
        () => 'found',
        (error: Error) => error.message.slice(0, 50),
      );
    expect(await answerOf('-tag:owner')).toBe('head is not enriched with tags, so the index canno');
    expect(await answerOf('tag:owner bucket:tags,head')).toContain('head is not');
    expect(await answerOf('tag:owner bucket:tags')).toBe('found');
    expect(await answerOf('type:image/* -bucket:none')).toBe('found');
    expect(await answerOf('meta:a')).toContain('none is not enriched with metadata');
    expect(await answerOf('meta:a', 'head', 'tags')).toBe('found');
    expect(await answerOf('meta:a', 'none')).toContain('none is not');
    expect(await answerOf('class:GLACIER')).toBe('found');
  });
});

it('says how far a bucket is behind by its slowest queue, while events come from it', async () => {
  const { state } = createMemoryStore();
  const clock = createFakeClock();
  const bucket = 'media';
  const eventQueues = [
    { queueUrl: 'http://q/one', atMs: clock.nowMs(), waitedMs: 20_000 },
    { queueUrl: 'http://q/two', atMs: clock.nowMs() - 100_000, waitedMs: 180_000.5 },
    { queueUrl: 'http://q/three', atMs: clock.nowMs() },
  ];
  await updateRecord(state, refs.bucket(bucket), () => ({ ...bucketRecord, bucket, eventQueues }));
  const asOf = createAsOf({ state, clock, processes: createProcesses({ state, clock }), compareIntervalMs: 0 });
  expect(await asOf([bucket], 'everything')).toMatchObject([{ bucket, behind_ms: 180_001, gaps: 0 }]);
  await clock.advance(100_000);
  expect(await asOf([bucket], 'everything')).toMatchObject([{ behind_ms: 20_000 }]);
  await clock.advance(100_000);
  expect((await asOf([bucket], 'everything'))[0]).not.toHaveProperty('behind_ms');
});
