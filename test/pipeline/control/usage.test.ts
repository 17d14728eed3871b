import { describe, expect, it } from 'vitest';
import { usageRows, type UsageRequest } from '../../../src/api/usage.ts';
import { encodeCursor } from '../../../src/domain/cursor.ts';
import { documentOf } from '../../../src/domain/documents/document.ts';
import { createSearch } from '../../../src/pipeline/control/search.ts';
import { createGetUsage } from '../../../src/pipeline/control/usage.ts';
import { refs, updateRecord } from '../../../src/pipeline/records/stored.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';
import { createFakeClock } from '../../support/fakes/ports.ts';
import { searchRequest } from '../../support/requests.ts';
import { bucketRecord } from '../../support/worlds/reindex.ts';

const DAY_MS = 86_400_000;

async function world() {
  const { objects, state, usage } = createMemoryStore();
  const clock = createFakeClock({ startMs: Date.UTC(2026, 8, 1) });
  await updateRecord(state, refs.bucket('photos'), () => ({ ...bucketRecord, bucket: 'photos' }));
  await objects.createBucket('photos');
  async function add(key: string, lastModifiedMs: number): Promise<void> {
    const facts = { clock: 1, settled: true, source: 'native', cause: {}, stateAtMs: 0, nowMs: 0 } as const;
    const document = documentOf({ bucket: 'photos', key, state: { present: true, sizeBytes: 2, lastModifiedMs }, ...facts });
    await objects.write([{ document, equalClock: 'accept' }]);
  }
  for (const key of ['a/1.jpg', 'a/2.jpg', 'b/3.png', 'top']) await add(key, clock.nowMs());
  const slow = { value: false };
  const getUsage = createGetUsage({
    usage: { usage: async (query) => (slow.value ? 'too-slow' : usage.usage(query)) },
    state,
    clock,
  });
  const search = createSearch({ objects, state, clock });
  return {
    add,
    clock,
    slow,
    usage: (request: Partial<UsageRequest>) =>
      getUsage(usageRows['GET /v1/usage'].query.parse({ bucket: 'photos', ...request }), 'everything'),
    search: (request: Parameters<typeof searchRequest>[0]) => search(searchRequest(request), 'everything'),
  };
}

describe('usage', () => {
  it('sums by folder, with the objects of the folder itself first', async () => {
    const { usage } = await world();
    expect(await usage({})).toEqual({
      items: [
        { objects: 1, bytes: 2 },
        { name: 'a/', objects: 2, bytes: 4 },
        { name: 'b/', objects: 1, bytes: 2 },
      ],
    });
    expect(await usage({ prefix: 'a/', times: 'true' })).toEqual({
      items: [{ objects: 2, bytes: 4, oldest: '2026-09-01T00:00:00.000Z', newest: '2026-09-01T00:00:00.000Z' }],
    });
  });

  it('takes the filters of a search', async () => {
    const { usage } = await world();
    expect(await usage({ by: 'extension', query: 'ext:jpg,png -prefix:b/' })).toEqual({ items: [{ name: 'jpg', objects: 2, bytes: 4 }] });
    expect(await usage({ by: 'extension', prefix: 'a/', query: '*.*' })).toEqual(await usage({ by: 'extension', query: 'prefix:a/ *.*' }));
  });

  it('takes any prefix: by folder, the end of one that ends within a name narrows what its folder holds', async () => {
    const { usage, add } = await world();
    await add('a/b1/x.jpg', 0);
    expect(await usage({ by: 'extension', prefix: 'a/1' })).toEqual({ items: [{ name: 'jpg', objects: 1, bytes: 2 }] });
    expect(await usage({ by: 'age', prefix: 'a/b' })).toEqual({ items: [{ name: 'older', objects: 1, bytes: 2 }] });
    expect(await usage({ prefix: 'a/b' })).toEqual({ items: [{ name: 'a/b1/', objects: 1, bytes: 2 }] });
    expect(await usage({ prefix: 'a/1' })).toEqual({ items: [{ objects: 1, bytes: 2 }] });
    expect(await usage({ prefix: 't' })).toEqual({ items: [{ objects: 1, bytes: 2 }] });
  });

  it('is paged', async () => {
    const { usage } = await world();
    const first = await usage({ limit: 2 });
    expect(first.items.map(({ name }) => name)).toEqual([undefined, 'a/']);
    expect(await usage({ limit: 2, cursor: first.next! })).toEqual({ items: [{ name: 'b/', objects: 1, bytes: 2 }] });
    expect(await usage({ by: 'age', limit: 1 })).not.toHaveProperty('next');
  });

  it.each([1, 3])('by age is paged by %i in the order of ages, which are counted from the first page on', async (limit) => {
    const { usage, clock, add } = await world();
    for (const days of [5, 20, 400]) await add(`old/${days}`, clock.nowMs() - days * DAY_MS);
    const { items: wanted } = await usage({ by: 'age' });
    expect(wanted.map(({ name }) => name)).toEqual(['1d', '7d', '30d', 'older']);
    const found = [];
    for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
      const page = await usage({ by: 'age', limit, ...(cursor !== undefined && { cursor }) });
      found.push(...page.items);
      cursor = page.next;
      await clock.advance(10 * DAY_MS);
    }
    expect(found).toEqual(wanted);
  });

  it.each([['a'], ['a', 'x'], ['a', '9999999999999999'], ['a', ''], ['a', '1', '2']])(
    'refuses the cursor %j unless a page made it',
    async (...parts) => {
      const { usage } = await world();
      const answer = usage({ cursor: encodeCursor(parts) });
      if (parts.length === 1) await answer;
      else await expect(answer).rejects.toMatchObject({ code: 'request.invalid' });
    },
  );

  it.each<[Partial<UsageRequest>, string]>([
    [{ prefix: 'a/b/c/d/e/f/g/h/' }, 'counted down to 8 levels'],
    [{ query: 'is:deleted' }, 'sums live objects only'],
  ])('refuses %j: %s', async (request, message) => {
    const { usage } = await world();
    await expect(usage(request)).rejects.toMatchObject({ code: 'request.invalid', message: expect.stringContaining(message) });
  });

  it('is never answered in part', async () => {
    const { usage, slow } = await world();
    slow.value = true;
    await expect(usage({})).rejects.toMatchObject({ code: 'search.too-wide', message: expect.stringContaining('narrow') });
  });
});
