import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DOCUMENT_SCHEMA } from '../../../src/domain/documents/document.ts';
import { faultOf, faults } from '../../../src/domain/fault.ts';
import type { Store } from '../../../src/pipeline/ports/store.ts';
import { live } from '../../contracts/world.ts';
import type { Proxy, TestStore } from '../../support/servers/opensearch.ts';
import { openTestStore, raw, startProxy } from '../../support/servers/opensearch.ts';
import { opensearchUrl } from '../../support/servers/found.ts';

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
    const [answer] = await store.objects.write([{ document: live(bucket, 'a/b.txt'), equalClock: 'accept' }]);
    return answer?.kind === 'fault' ? answer.code : String(answer?.kind);
  };
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
      expect(await schemaOf(`objects-${bucket}`)).toBe(DOCUMENT_SCHEMA);
    }
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

  describe('of a store that a newer version has prepared', () => {
    const templateOf = (name: string) => `/_index_template/${prefix}-${name}`;
    const newerTemplate = async (name: 'objects' | 'audit') => {
      await raw('PUT', templateOf(name), {
        index_patterns: [`${prefix}-${name}-*`],
        priority: 500,
        _meta: { schema: 99 },
        template: { mappings: { dynamic: 'strict', _meta: { schema: 99 }, properties: { invented: { type: 'keyword' } } } },
      });
    };
    const newerState = async () => {
      await raw('PUT', `/${prefix}-state/_mapping`, { _meta: { schema: 99 } });
    };

    it.each([
      ['the template of objects', () => newerTemplate('objects')],
      ['the template of the audit', () => newerTemplate('audit')],
      ['the state index', newerState],
    ])('is refused with advice, and changes nothing: %s', async (what, makeNewer) => {
      await store.setup.prepare();
      await makeNewer();
      // what this version would make otherwise
      await raw('DELETE', `/_index_template/${prefix}-${what.endsWith('audit') ? 'objects' : 'audit'}`);
      const contents = () => Promise.all([templateOf('objects'), templateOf('audit'), `/${prefix}-*`].map((path) => raw('GET', path)));
      const before = await contents();
      const fault = await opened
        .another({ shards: 3 })
        .setup.prepare()
        .then(() => undefined, faultOf);
      expect(fault).toMatchObject({ code: 'index.newer', reason: expect.stringContaining('has schema 99') });
      expect(faults['index.newer'].advice).toContain('newest version');
      expect(await contents()).toEqual(before);
    });

    it('is refused as well if an older version has prepared it', async () => {
      await store.setup.prepare();
      await raw('PUT', `/${prefix}-state/_mapping`, { _meta: { schema: 2 } });
      await raw('DELETE', templateOf('objects'));
      const fault = await opened
        .another({ shards: 3 })
        .setup.prepare()
        .then(() => undefined, faultOf);
      expect(fault).toMatchObject({ code: 'index.older', reason: expect.stringContaining('has schema 2') });
      expect((await raw('GET', templateOf('objects'))).status).toBe(404);
    });

    it('is written to by a process of this version that has begun before', async () => {
      await store.setup.prepare();
      await newerTemplate('objects');
      await newerState();
      await store.objects.createBucket('newer');
      expect(await write('newer')).toBe('written');
      expect(await store.state.put({ id: 'bucket:a', kind: 'bucket', record: {} }, null)).not.toBe('conflict');
    });
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

  it('only reads when there is nothing to do', async () => {
    await store.setup.prepare();
    proxy = await startProxy((_, forward) => forward());
    await opened.another({ urls: [proxy.url] }).setup.prepare();
    expect(new Set(proxy.requests.map(({ method }) => method))).toEqual(new Set(['GET']));
  });

  it('ends well when many workers begin at once', async () => {
    await Promise.all(Array.from({ length: 4 }, () => opened.another().setup.prepare()));
    await store.objects.createBucket('b');
    expect(await write('b')).toBe('written');
    expect(await raw('GET', `/_index_template/${prefix}-*`)).toMatchObject({ body: { index_templates: [{}, {}] } });
  });

  it('rejects with the fault of a request', async () => {
    proxy = await startProxy(({ method, path }, forward) =>
      method === 'PUT' && path.includes('_index_template') ? { status: 503, body: '' } : forward(),
    );
    const failing = opened.another({ urls: [proxy.url] });
    await expect(failing.setup.prepare()).rejects.toMatchObject({ code: 'index.unreachable' });
  });
});
