import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { facetRows } from '../../../src/api/facets.ts';
import { usageRows } from '../../../src/api/usage.ts';
import { nameOf, type ObjectDocument } from '../../../src/domain/documents/document.ts';
import { ageClauses, facetNames } from '../../../src/domain/search/facets.ts';
import { createGetFacets, createGetUsage } from '../../../src/pipeline/control/usage.ts';
import { createSearch } from '../../../src/pipeline/control/search.ts';
import { refs, updateRecord } from '../../../src/pipeline/records/stored.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';
import { createFakeClock } from '../../support/fakes/ports.ts';
import { searchRequest } from '../../support/requests.ts';
import { bucketRecord } from '../../support/worlds/reindex.ts';

const DAY_MS = 86_400_000;
const BUCKETS = ['photos', 'videos'] as const;
const request = (query: object) => facetRows['GET /v1/objects/facets'].query.parse(query);

interface Thing {
  readonly bucket: string;
  readonly key: string;
  readonly size: number | undefined;
  readonly ageMs: number | undefined;
  readonly storageClass: string | undefined;
}

const thing: fc.Arbitrary<Thing> = fc.record({
  bucket: fc.constantFrom(...BUCKETS),
  key: fc
    .tuple(fc.nat(30), fc.constantFrom('', '.txt', '.TAR.gz', '.a,b', '.with space', '.q"uote', '.back\\slash', '.wild*', '.é'))
    .map(([number, extension]) => `${number}${extension}`),
  size: fc.option(fc.oneof(fc.nat(2_048), fc.constantFrom(2 ** 20 - 1, 2 ** 20, 100 * 2 ** 20, 2 ** 30, 10 * 2 ** 30, 2 ** 41)), {
    nil: undefined,
  }),
  ageMs: fc.option(
    fc.tuple(fc.constantFrom(-1, 0, 1, 7, 30, 90, 365, 4_000), fc.constantFrom(-1, 0, 1)).map(([days, ms]) => days * DAY_MS + ms),
    { nil: undefined },
  ),
  storageClass: fc.constantFrom('STANDARD', 'GLACIER', undefined),
});

async function world(things: readonly Thing[]) {
  const { objects, state, usage } = createMemoryStore();
  const clock = createFakeClock();
  for (const bucket of BUCKETS) {
    await objects.createBucket(bucket);
    await updateRecord(state, refs.bucket(bucket), () => ({ ...bucketRecord, bucket }));
  }
  const documents = things.map(({ bucket, key, size, ageMs, storageClass }): ObjectDocument => ({
    bucket,
    key,
    deleted: false,
    clock: 1,
    settled: true,
    source: 'native',
    indexed_at: new Date(0).toISOString(),
    ...nameOf(key),
    ...(size !== undefined && { size }),
    ...(ageMs !== undefined && { last_modified: new Date(clock.nowMs() - ageMs).toISOString() }),
    ...(storageClass !== undefined && { storage_class: storageClass }),
  }));
  await objects.write(documents.map((document) => ({ document, equalClock: 'accept' })));
  const slow = { value: false };
  const facetsOf: typeof usage.facets = async (query) => (slow.value ? 'too-slow' : usage.facets(query));
  return {
    slow,
    clock,
    getFacets: createGetFacets({ usage: { facets: facetsOf }, state, clock }),
    getUsage: createGetUsage({ usage, state, clock }),
    search: createSearch({ objects, state, clock }),
  };
}

describe('facets', () => {
  it('are the sums of the same search, and each filter finds exactly its group', async () => {
    let filters = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(thing, { maxLength: 40, selector: ({ bucket, key }) => `${bucket}/${key}` }),
        fc.constantFrom('', 'bucket:photos', '-ext:txt size<1G'),
        fc.constantFrom(1, 2, 100),
        async (things, query, limit) => {
          const { getFacets, search } = await world(things);
          const narrowedBy = query === '' ? {} : { query };
          const found = await search(searchRequest({ ...narrowedBy, limit: 1_000 }), 'everything');
          const facets = await getFacets(request({ ...narrowedBy, limit }), 'everything');
          expect(facets.objects).toBe(found.items.length);
          expect(facets.bytes).toBe(found.items.reduce((sum, { size = 0 }) => sum + size, 0));
          for (const name of facetNames) {
            const { groups, others } = facets[name];
            const all = [...groups, ...(others === undefined ? [] : [others])];
            expect(all.reduce((sum, { objects }) => sum + objects, 0)).toBe(facets.objects);
            expect(all.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(facets.bytes);
            for (const group of groups) {
              if (group.filter === undefined) continue;
              filters += 1;
              const of = await search(searchRequest({ query: `${query} ${group.filter}`, limit: 1_000 }), 'everything');
              expect(of.items.length, group.filter).toBe(group.objects);
            }
          }
        },
      ),
      { numRuns: 200 },
    );
    expect(filters).toBeGreaterThan(500);
  });

  it('by the ages of a bucket are found by their clauses, at any minute of the hour', async () => {
    const minutes = fc.integer({ min: 0, max: 59 });
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(thing, { maxLength: 20, selector: ({ bucket, key }) => `${bucket}/${key}` }),
        minutes,
        async (things, minute) => {
          const { clock, getUsage, search } = await world(things);
          await clock.advance(minute * 60_000);
          const { items } = await getUsage(usageRows['GET /v1/usage'].query.parse({ bucket: 'photos', by: 'age' }), 'everything');
          for (const { name, objects } of items) {
            if (name === undefined) continue;
            const query = ageClauses(name, clock.nowMs()).join(' ');
            const found = await search(searchRequest({ bucket: 'photos', query, limit: 1_000 }), 'everything');
            expect(found.items.length, query).toBe(objects);
          }
        },
      ),
    );
  });

  it('name what has no clause by no filter', async () => {
    const file = { bucket: 'photos', size: undefined, ageMs: undefined, storageClass: undefined };
    const { getFacets } = await world([
      { ...file, key: 'a.b*' },
      { ...file, key: 'c' },
    ]);
    const facets = await getFacets(request({}), 'everything');
    expect(facets.extension.groups).toEqual([
      { objects: 1, bytes: 0 },
      { name: 'b*', objects: 1, bytes: 0, filter: 'ext:"b*"' },
    ]);
    expect(facets.age.groups).toEqual([{ objects: 2, bytes: 0 }]);
  });

  it('are refused when they take too long, and for deleted objects', async () => {
    const { slow, getFacets } = await world([]);
    await expect(getFacets(request({ query: 'is:deleted' }), 'everything')).rejects.toMatchObject({ code: 'request.invalid' });
    slow.value = true;
    await expect(getFacets(request({}), 'everything')).rejects.toMatchObject({ code: 'search.too-wide' });
  });
});
