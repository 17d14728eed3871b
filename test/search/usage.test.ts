import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { usageRows, type UsageRequest } from '../../src/registry/contract/usage.ts';
import { nameOf } from '../../src/ordering/document.ts';
import { usageBy } from '../../src/store/groups.rules.ts';
import { createSearch, getUsage } from '../../src/search/search.ts';
import { refs, updateRecord } from '../../src/store/stored.ts';
import { iso, live } from '../contracts/world.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { createFakeClock } from '../support/fakes/ports.ts';
import { searchRequest } from '../support/requests.ts';
import { bucketRecord } from '../support/worlds/reindex.ts';

const DAY_MS = 86_400_000;
const BUCKETS = ['photos', 'videos'] as const;

interface Thing {
  readonly bucket: string;
  readonly key: string;
  readonly size?: number | undefined;
  readonly ageMs?: number | undefined;
  readonly storageClass?: string | undefined;
}

const thing: fc.Arbitrary<Thing> = fc.record({
  bucket: fc.constantFrom(...BUCKETS),
  key: fc
    .tuple(
      fc.constantFrom('', 'a/', 'a/b c/', '"/'),
      fc.nat(30),
      fc.constantFrom('', '.txt', '.TAR.gz', '.a,b', '.with space', '.q"uote', '.back\\slash', '.wild*', '.é'),
    )
    .map(([folder, number, extension]) => `${folder}${number}${extension}`),
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
  const documents = things.map(({ bucket, key, size, ageMs, storageClass }) =>
    live(bucket, key, {
      ...nameOf(key),
      ...(size !== undefined && { size }),
      ...(ageMs !== undefined && { last_modified: iso(clock.nowMs() - ageMs) }),
      ...(storageClass !== undefined && { storage_class: storageClass }),
    }),
  );
  await objects.write(documents.map((document) => ({ document, equalClock: 'accept' })));
  const slow = { value: false };
  const parts = { usage: async (query: Parameters<typeof usage>[0]) => (slow.value ? 'too-slow' : usage(query)), state, clock } as const;
  const search = createSearch({ objects, state, clock, processes: { troubles: async () => [] }, compareIntervalMs: 0 });
  return {
    slow,
    usage: (request: Partial<UsageRequest>) => getUsage(parts, usageRows['GET /v1/usage'].query.parse(request), 'everything'),
    search: (request: Parameters<typeof searchRequest>[0]) => search(searchRequest(request), 'everything'),
  };
}

describe('usage', () => {
  it('sums what the same search finds, and each filter finds exactly its group', async () => {
    let filters = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(thing, { maxLength: 40, selector: ({ bucket, key }) => `${bucket}/${key}` }),
        fc.constantFrom('', 'bucket:photos', 'bucket:photos prefix:a/', '-ext:txt size<1G'),
        fc.constantFrom(1, 2, 100),
        async (things, query, limit) => {
          const { usage, search } = await world(things);
          const narrowedBy = query === '' ? {} : { query };
          const found = await search({ ...narrowedBy, limit: 1_000 });
          const by = usageBy.filter((each) => each !== 'folder' || query.startsWith('bucket:'));
          const sums = await usage({ ...narrowedBy, by, limit });
          expect(sums.objects).toBe(found.items.length);
          expect(sums.bytes).toBe(found.items.reduce((sum, { size = 0 }) => sum + size, 0));
          expect(sums.by.map((each) => each.by)).toEqual(by);
          for (const { groups, others } of sums.by) {
            const all = [...groups, ...(others === undefined ? [] : [others])];
            expect(all.reduce((sum, { objects }) => sum + objects, 0)).toBe(sums.objects);
            expect(all.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(sums.bytes);
            for (const group of groups) {
              if (group.filter === undefined) continue;
              filters += 1;
              const of = await search({
                query: `${query.replace(' prefix:a/', '')} ${group.filter}`,
                ...(query.includes('prefix') && { prefix: 'a/' }),
                limit: 1_000,
              });
              expect(of.items.length, group.filter).toBe(group.objects);
            }
          }
        },
      ),
      { numRuns: 200 },
    );
    expect(filters).toBeGreaterThan(500);
  });

  it('is one sum unless groups are asked for, once each', async () => {
    const { usage } = await world([
      { bucket: 'photos', key: 'a/1.jpg', size: 2 },
      { bucket: 'videos', key: 'b', size: 3 },
    ]);
    expect(await usage({})).toEqual({ objects: 2, bytes: 5, by: [] });
    expect((await usage({ by: ['class', 'class'] })).by).toEqual([{ by: 'class', groups: [{ objects: 2, bytes: 5 }] }]);
  });

  it('takes any prefix: by folder, the end of one that ends within a name narrows what its folder holds', async () => {
    const { usage } = await world(['a/1.jpg', 'a/2.jpg', 'a/b1/x.jpg', 'b/3', 'top'].map((key) => ({ bucket: 'photos', key })));
    const foldersBelow = async (prefix: string) =>
      (await usage({ bucket: 'photos', by: 'folder', prefix })).by[0]?.groups.map(({ name, objects }) => [name, objects]);
    expect(await foldersBelow('a/b')).toEqual([['a/b1/', 1]]);
    expect(await foldersBelow('a/1')).toEqual([[undefined, 1]]);
    expect(await foldersBelow('t')).toEqual([[undefined, 1]]);
    expect(await foldersBelow('')).toEqual([
      ['a/', 3],
      [undefined, 1],
      ['b/', 1],
    ]);
  });

  it('names no filter for objects that have none, and one for each other group', async () => {
    const { usage } = await world(['a.b*', 'c'].map((key) => ({ bucket: 'photos', key })));
    expect((await usage({ by: 'extension' })).by[0]?.groups).toEqual([
      { objects: 1, bytes: 0 },
      { name: 'b*', objects: 1, bytes: 0, filter: 'ext:"b*"' },
    ]);
  });

  it.each<[Partial<UsageRequest>, string]>([
    [{ by: 'folder', bucket: 'photos', prefix: 'a/b/c/d/e/f/g/h/' }, 'counted down to 8 levels'],
    [{ by: 'folder' }, 'folders need a bucket'],
    [{ query: 'is:deleted' }, 'counts only live objects'],
  ])('refuses %j: %s', async (request, message) => {
    const { usage } = await world([]);
    await expect(usage(request)).rejects.toMatchObject({ code: 'request.invalid', message: expect.stringContaining(message) });
  });

  it('is never answered in part', async () => {
    const { usage, slow } = await world([]);
    slow.value = true;
    await expect(usage({})).rejects.toMatchObject({ code: 'search.too-wide', message: expect.stringContaining('narrow') });
  });
});
