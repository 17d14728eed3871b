import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DOCUMENT_SCHEMA, type ObjectDocument } from '../../../src/domain/documents/document.ts';
import { faultOf } from '../../../src/domain/fault.ts';
import type { Store } from '../../../src/pipeline/ports/store.ts';
import { createFakeClock } from '../../support/fakes/ports.ts';
import type { Proxy, TestStore } from '../../support/servers/opensearch.ts';
import { openTestStore, raw, startProxy } from '../../support/servers/opensearch.ts';
import { opensearchUrl } from '../../support/servers/found.ts';

const LOCK = 'lock:index-setup';

const { settings } = JSON.parse(readFileSync('config/opensearch/objects.json', 'utf8')) as { settings: { analysis: object } };
const { analysis } = settings;

function live(bucket: string): ObjectDocument {
  return {
    bucket,
    key: 'a/b.txt',
    name: 'b.txt',
    extension: 'txt',
    size: 1,
    clock: 1,
    deleted: false,
    settled: true,
    source: 'native',
    indexed_at: '2026-01-02T03:04:05.678Z',
  };
}

describe.skipIf(opensearchUrl() === undefined)('setup of OpenSearch', () => {
  let opened: TestStore;
  let store: Store;
  let prefix: string;
  let proxy: Proxy | undefined;

  beforeEach(() => {
    opened = openTestStore();
    ({ store, prefix } = opened);
  });
  afterEach(async () => {
    await proxy?.close();
    proxy = undefined;
    await opened.dispose();
  });

  const schemaOf = async (index: string): Promise<unknown> => {
    const { body } = await raw('GET', `/${prefix}-${index}/_mapping`);
    const mappings = Object.values(body as Record<string, { mappings: { _meta?: { schema: number } } }>)[0]?.mappings;
    return mappings?._meta?.schema;
  };
  const write = async (bucket: string): Promise<string> => {
    const [answer] = await store.objects.write([{ document: live(bucket), equalClock: 'accept' }]);
    return answer?.kind === 'fault' ? answer.code : String(answer?.kind);
  };
  /** An index as another version made it. */
  const olderIndex = (bucket: string, mappings: Record<string, unknown>) =>
    raw('PUT', `/${prefix}-objects-${bucket}`, {
      settings: { analysis, number_of_replicas: 0 },
      mappings,
      aliases: { [`${prefix}-write-${bucket}`]: {} },
    });
  const olderMapping = {
    dynamic: 'strict',
    _meta: { schema: 0 },
    properties: { bucket: { type: 'keyword' }, deleted: { type: 'boolean' } },
  };
  // an index of before this version's template is not touched by it
  const withoutTemplate = () => raw('DELETE', `/_index_template/${prefix}-objects`);

  it('makes the state index, behind its alias, and the template with strict mappings', async () => {
    await store.setup.prepare();
    expect(await raw('GET', `/_alias/${prefix}-state`)).toMatchObject({ body: { [`${prefix}-state-1`]: {} } });
    const { body } = await raw('GET', `/_index_template/${prefix}-objects`);
    expect(body).toMatchObject({
      index_templates: [
        {
          index_template: {
            index_patterns: [`${prefix}-objects-*`],
            template: {
              settings: {
                index: { number_of_shards: '1', number_of_replicas: '0', refresh_interval: '1000ms', sort: { field: ['bucket', 'key'] } },
              },
              mappings: { dynamic: 'strict', _meta: { schema: DOCUMENT_SCHEMA } },
            },
          },
        },
      ],
    });
    expect(await store.state.get(LOCK)).toBeUndefined();
  });

  it('makes indices of buckets with the settings and the mapping of this version, template or not', async () => {
    await store.setup.prepare();
    await store.objects.createBucket('with');
    await withoutTemplate();
    await store.objects.createBucket('without');
    for (const bucket of ['with', 'without']) {
      const { body } = await raw('GET', `/${prefix}-objects-${bucket}`);
      expect(Object.values(body as object)[0]).toMatchObject({
        aliases: { [`${prefix}-write-${bucket}`]: {}, [`${prefix}-objects`]: { filter: { term: { deleted: false } } } },
        mappings: { dynamic: 'strict', properties: { key: { type: 'keyword' }, tags: { type: 'flat_object' } } },
        settings: {
          index: { number_of_replicas: '0', refresh_interval: '1000ms', sort: { field: ['bucket', 'key'], order: ['asc', 'asc'] } },
        },
      });
      expect(await write(bucket)).toBe('written');
    }
    await store.setup.prepare();
    expect(await schemaOf('objects-without')).toBe(DOCUMENT_SCHEMA);
  });

  it('tells the index of a bucket from an empty copy to which its aliases were moved, and knows it again', async () => {
    await store.setup.prepare();
    await store.objects.createBucket('kept');
    await store.objects.createBucket('moved');
    const before = await store.objects.identities(['kept', 'moved']);
    const [index, copy] = [`${prefix}-objects-moved`, `${prefix}-copy`];
    await raw('PUT', `/${copy}`, { settings: { number_of_replicas: 0 } });
    const aliases = [`${prefix}-write-moved`, `${prefix}-objects`];
    const move = (from: string, to: string) =>
      raw('POST', '/_aliases', {
        actions: aliases.flatMap((alias) => [{ remove: { index: from, alias } }, { add: { index: to, alias } }]),
      });
    expect(await move(index, copy)).toMatchObject({ status: 200 });
    const after = await store.objects.identities(['kept', 'moved']);
    expect(after).toEqual([before[0], expect.any(String)]);
    expect(after[1]).not.toBe(before[1]);
    expect(await store.objects.identities(['moved'])).toEqual([after[1]]);
    await move(copy, index);
    expect(await store.objects.identities(['kept', 'moved'])).toEqual(before);
  });

  it('adds to an older index what its mapping lacks, so that nothing is rejected', async () => {
    await olderIndex('old', olderMapping);
    await olderIndex('ancient', { dynamic: 'strict', properties: { bucket: { type: 'keyword' } } });
    expect(await write('old')).toBe('bucket.index-outdated');
    await store.setup.prepare();
    for (const bucket of ['old', 'ancient']) {
      expect(await write(bucket)).toBe('written');
      expect(await schemaOf(`objects-${bucket}`)).toBe(DOCUMENT_SCHEMA);
    }
  });

  it('leaves an index and a template of a newer version alone', async () => {
    await store.setup.prepare();
    const newer = { _meta: { schema: 99 }, properties: { invented: { type: 'keyword' } } };
    await raw('PUT', `/_index_template/${prefix}-objects`, {
      index_patterns: [`${prefix}-objects-*`],
      priority: 500,
      _meta: { schema: 99 },
      template: { mappings: { dynamic: 'strict', ...newer } },
    });
    // made by this older version: the newer one's template adds its fields, and its schema counts
    await store.objects.createBucket('newer');
    await store.setup.prepare();
    expect(await schemaOf('objects-newer')).toBe(99);
    const { body } = await raw('GET', `/${prefix}-objects-newer/_mapping`);
    expect(body).toMatchObject({ [`${prefix}-objects-newer`]: { mappings: { properties: { invented: {}, words: {} } } } });
    expect(await raw('GET', `/_index_template/${prefix}-objects`)).toMatchObject({
      body: { index_templates: [{ index_template: { _meta: { schema: 99 } } }] },
    });
    expect(await write('newer')).toBe('written');
  });

  it('upgrades the others when one index cannot be: blocked, closed or with a mapping of its own', async () => {
    for (const bucket of ['aa1', 'blocked', 'closed', 'zz1']) await olderIndex(bucket, olderMapping);
    await olderIndex('foreign', { ...olderMapping, properties: { bucket: { type: 'long' } } });
    await raw('PUT', `/${prefix}-objects-blocked/_settings`, { 'index.blocks.read_only': true });
    await raw('POST', `/${prefix}-objects-closed/_close`);
    await store.setup.prepare();
    expect(await Promise.all(['aa1', 'blocked', 'foreign', 'zz1'].map((bucket) => schemaOf(`objects-${bucket}`)))).toEqual([
      DOCUMENT_SCHEMA,
      0,
      0,
      DOCUMENT_SCHEMA,
    ]);
    await raw('PUT', `/${prefix}-objects-blocked/_settings`, { 'index.blocks.read_only': null });
    await store.setup.prepare();
    expect(await schemaOf('objects-blocked')).toBe(DOCUMENT_SCHEMA);
  });

  it('renews the template when shards or replicas are set otherwise', async () => {
    await store.setup.prepare();
    await opened.another({ shards: 3 }).setup.prepare();
    expect(await raw('GET', `/_index_template/${prefix}-objects`)).toMatchObject({
      body: { index_templates: [{ index_template: { template: { settings: { index: { number_of_shards: '3' } } } } }] },
    });
  });

  it('gives the state index its alias back', async () => {
    await store.setup.prepare();
    await store.state.put({ id: 'bucket:a', kind: 'bucket', record: { kept: true } }, null);
    await raw('DELETE', `/${prefix}-state-1/_alias/${prefix}-state`);
    await store.setup.prepare();
    expect(await store.state.get('bucket:a')).toMatchObject({ record: { kept: true } });
  });

  it('only reads when there is nothing to do, and takes no lock', async () => {
    await store.setup.prepare();
    proxy = await startProxy((_, forward) => forward());
    await opened.another({ urls: [proxy.url] }).setup.prepare();
    expect(new Set(proxy.requests.map(({ method }) => method))).toEqual(new Set(['GET']));
  });

  it('ends well when many workers begin at once', async () => {
    await Promise.all(['b1x', 'b2x', 'b3x'].map((bucket) => olderIndex(bucket, olderMapping)));
    await Promise.all(Array.from({ length: 4 }, () => opened.another().setup.prepare()));
    expect(await Promise.all(['b1x', 'b2x', 'b3x'].map((bucket) => schemaOf(`objects-${bucket}`)))).toEqual([
      DOCUMENT_SCHEMA,
      DOCUMENT_SCHEMA,
      DOCUMENT_SCHEMA,
    ]);
    expect(await store.state.get(LOCK)).toBeUndefined();
  });

  it('upgrades more indices than one request can name', async () => {
    const buckets = Array.from({ length: 23 }, (_, at) => `many-${at}-${'x'.repeat(50)}`);
    for (const bucket of buckets) await olderIndex(bucket, olderMapping);
    await store.setup.prepare();
    expect(new Set(await Promise.all(buckets.map((bucket) => schemaOf(`objects-${bucket}`))))).toEqual(new Set([DOCUMENT_SCHEMA]));
  }, 300_000);

  it('leaves the indices of another prefix alone, even of one that begins alike', async () => {
    const other = `${prefix}-two-objects-b`;
    await raw('PUT', `/${other}`, { settings: { number_of_replicas: 0 }, mappings: olderMapping });
    await store.setup.prepare();
    expect(await schemaOf('two-objects-b')).toBe(0);
    await raw('PUT', `/${other}/_settings`, { 'index.blocks.read_only_allow_delete': true });
    await store.objects.probe();
  });

  describe('the lock', () => {
    const workToDo = async () => {
      await store.setup.prepare();
      await withoutTemplate();
    };
    const hold = (expiresAtMs: number) => store.state.put({ id: LOCK, kind: 'lock', record: { holder: 'other', expiresAtMs } }, null);

    it('of a living holder is waited for', async () => {
      await workToDo();
      const clock = createFakeClock();
      const held = await hold(clock.nowMs() + 60_000);
      const prepared = opened.another({ clock }).setup.prepare();
      while (clock.sleepers() === 0) await new Promise(setImmediate);
      expect(await raw('GET', `/_index_template/${prefix}-objects`)).toMatchObject({ status: 404 });
      await store.state.remove(LOCK, held === 'conflict' ? '' : held.version);
      await clock.advance(500);
      await prepared;
      expect(await raw('GET', `/_index_template/${prefix}-objects`)).toMatchObject({ status: 200 });
    });

    it('of a crashed holder is taken over when it expires, within 60 s', async () => {
      await workToDo();
      const clock = createFakeClock({ autoAdvance: true });
      const startMs = clock.nowMs();
      await hold(startMs + 2_000);
      await opened.another({ clock }).setup.prepare();
      expect(clock.nowMs() - startMs).toBe(2_000);
      expect(await store.state.get(LOCK)).toBeUndefined();
    });

    it.each([
      ['says that it lives for a year', { holder: 'other', expiresAtMs: Date.UTC(2100, 0, 1) }, 60_000],
      ['is not ours to read', { of: 'another version' }, 0],
    ])('that %s is taken over all the same', async (_, record, afterMs) => {
      await workToDo();
      await store.state.put({ id: LOCK, kind: 'lock', record }, null);
      const clock = createFakeClock({ autoAdvance: true });
      const startMs = clock.nowMs();
      await opened.another({ clock }).setup.prepare();
      expect(clock.nowMs() - startMs).toBe(afterMs);
    });

    it('is given back when the work fails or is aborted', async () => {
      await workToDo();
      proxy = await startProxy(({ method, path }, forward) =>
        method === 'PUT' && path.includes('_index_template') ? { status: 503, body: '' } : forward(),
      );
      const failing = opened.another({ urls: [proxy.url] });
      await expect(failing.setup.prepare()).rejects.toMatchObject({ code: 'index.unreachable' });
      expect(await store.state.get(LOCK)).toBeUndefined();
    });

    it('is no longer waited for when the signal is aborted', async () => {
      await workToDo();
      const clock = createFakeClock();
      await hold(clock.nowMs() + 60_000);
      const controller = new AbortController();
      const prepared = opened.another({ clock }).setup.prepare(controller.signal);
      while (clock.sleepers() === 0) await new Promise(setImmediate);
      const reason = new Error('stopping');
      controller.abort(reason);
      await expect(prepared).rejects.toBe(reason);
    });
  });

  it('says what is in the way: the state index blocked for writing', async () => {
    await store.setup.prepare();
    await withoutTemplate();
    await raw('PUT', `/${prefix}-state/_settings`, { 'index.blocks.write': true });
    const code = await store.setup.prepare().then(
      () => 'no fault',
      (error: unknown) => faultOf(error).code,
    );
    expect(code).toBe('index.blocked');
    await raw('PUT', `/${prefix}-state/_settings`, { 'index.blocks.write': null });
  });
});
