/** What searches and sums make of indices that are not whole, and of indices that Tally did not create. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { UsageQuery } from '../../../src/store/store.ts';
import { live, tombstone } from '../../contracts/world.ts';
import { opensearchUrl } from '../../support/servers/found.ts';
import { openTestStore, raw, type TestStore } from '../../support/servers/opensearch.ts';

describe.skipIf(opensearchUrl() === undefined)('searches on OpenSearch', () => {
  let opened: TestStore;

  beforeAll(async () => {
    opened = openTestStore({ shards: 2 });
    await opened.store.setup.prepare();
  });
  afterAll(async () => {
    await opened?.dispose();
  });

  it('answer nothing in part where a shard has no node', async () => {
    const { store, prefix } = opened;
    const bucket = 'red';
    await store.objects.createBucket(bucket);
    const index = `${prefix}-objects-${bucket}`;
    const { mappings, aliases } = ((await raw('GET', `/${index}`)).body as Record<string, Record<string, unknown>>)[index]!;
    await raw('DELETE', `/${index}`);
    const settings = { number_of_shards: 2, number_of_replicas: 0, 'index.routing.allocation.total_shards_per_node': 1 };
    await raw('PUT', `/${index}?wait_for_active_shards=0`, { settings, mappings, aliases });
    await vi.waitFor(
      async () => expect((await raw('POST', `/${index}/_search`)).body).toMatchObject({ _shards: { total: 2, successful: 1, failed: 0 } }),
      { timeout: 60_000, interval: 200 },
    );
    const query: UsageQuery = { bucket, by: ['folder'], nowMs: 0, limit: 10, timeLimitMs: 10_000 };
    const fault = { code: 'bucket.index-unavailable' };
    await expect(store.usage(query)).rejects.toMatchObject(fault);
    await expect(store.objects.search({ bucket, limit: 10 })).rejects.toMatchObject(fault);
    await expect(store.objects.count({ bucket }, 10)).rejects.toMatchObject(fault);
    await raw('DELETE', `/${index}`);
  });

  it('within parts, answer whatever is the matter with the index of another bucket, and nothing in part', async () => {
    const { store, prefix } = opened;
    const buckets = ['parts-1', 'parts-2', 'parts-broken'] as const;
    for (const bucket of buckets) {
      await store.objects.createBucket(bucket);
      await store.objects.write([live(bucket, 'a/1'), tombstone(bucket, 'a/2')].map((document) => ({ document, equalClock: 'accept' })));
    }
    await opened.refresh();
    await raw('POST', `/${prefix}-objects-parts-broken/_close`);
    const part = (bucket: string) => ({ bucket, prefix: 'a/' });
    const places = async (names: readonly string[], deleted: boolean) =>
      (await store.objects.search({ deleted, within: names.map(part), limit: 10 })).map(({ bucket }) => bucket);
    const [one, two, broken] = buckets;
    const never = 'parts-never';
    expect(await places([], false)).toEqual([]);
    expect(await store.objects.count({ within: [] }, 10)).toBe(0);
    for (const deleted of [false, true]) {
      expect(await places([one], deleted)).toEqual([one]);
      expect(await places([one, two], deleted)).toEqual([one, two]);
      expect(await places([one, never, two], deleted)).toEqual([one, two]);
      expect(await places([never], deleted)).toEqual([]);
      expect(await store.objects.count({ deleted, within: [one, never, two].map(part) }, 10)).toBe(2);
      for (const names of [[broken], [one, broken], [one, broken, never], [broken, never]]) {
        const fault = { code: 'bucket.index-blocked' };
        await expect(places(names, deleted), names.join()).rejects.toMatchObject(fault);
        await expect(store.objects.count({ deleted, within: names.map(part) }, 10), names.join()).rejects.toMatchObject(fault);
      }
    }
    expect((await store.objects.latest(one, { prefix: '', within: [part(one)], limit: 10 })).map(({ key }) => key)).toEqual(['a/2', 'a/1']);
    const sums: UsageQuery = { bucket: one, by: ['folder'], within: [part(one)], nowMs: 0, limit: 10, timeLimitMs: 10_000 };
    expect(await store.usage(sums)).toMatchObject({ groups: [[{ name: 'a/', objects: 1 }]] });
    for (const bucket of buckets) await raw('DELETE', `/${prefix}-objects-${bucket}`);
  });

  it('leave out a group that is not counted exactly, and say how much the others are', async () => {
    const { store, prefix } = opened;
    const bucket = 'many-groups';
    await store.objects.createBucket(bucket);
    // more than a shard answers
    const folders = Array.from({ length: 10_001 }, (_, at) => `${at}/x`);
    const documents = [...folders, '0/y', '0/z', '1/y'].map((key) => live(bucket, key, { size: 1 }));
    await store.objects.write(documents.map((document) => ({ document, equalClock: 'accept' })));
    await opened.refresh();
    const query: UsageQuery = { bucket, by: ['folder', 'class'], nowMs: 0, limit: 2, timeLimitMs: 60_000 };
    const sums = await store.usage(query);
    expect(sums).toMatchObject({ objects: documents.length, bytes: documents.length });
    const exact = new Map([
      ['0/', 3],
      ['1/', 2],
    ]);
    const [groups = []] = sums === 'too-slow' ? [] : sums.groups;
    for (const { name, objects } of groups) expect(objects, name).toBe(exact.get(name));
    await raw('DELETE', `/${prefix}-objects-${bucket}`);
  });

  it('leave out copies of an index', async () => {
    const { store, prefix } = opened;
    const bucket = 'copied';
    await store.objects.createBucket(bucket);
    const documents = [live(bucket, 'a'), tombstone(bucket, 'b')];
    await store.objects.write(documents.map((document) => ({ document, equalClock: 'accept' })));
    await opened.refresh();
    const copied = await raw('POST', '/_reindex?refresh=true', {
      source: { index: `${prefix}-objects-${bucket}` },
      dest: { index: `${prefix}-objects-${bucket}-copy` },
    });
    expect(copied.body).toMatchObject({ created: 2 });
    await opened.refresh();
    expect((await store.objects.search({ deleted: true, limit: 10 })).map(({ key }) => key)).toEqual(['b']);
    expect((await store.objects.search({ limit: 10 })).map(({ key }) => key)).toEqual(['a']);
  });
});
