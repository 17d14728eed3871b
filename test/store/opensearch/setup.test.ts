import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { faultOf } from '../../../src/base/fault.ts';
import type { Store } from '../../../src/store/store.ts';
import { live } from '../../contracts/world.ts';
import type { TestStore } from '../../support/servers/opensearch.ts';
import { openTestStore, raw } from '../../support/servers/opensearch.ts';
import { opensearchUrl } from '../../support/servers/found.ts';

describe.skipIf(opensearchUrl() === undefined)('setup of OpenSearch', () => {
  let opened: TestStore;
  let store: Store;
  let prefix: string;

  beforeEach(async () => {
    opened = openTestStore();
    ({ store, prefix } = opened);
    await store.setup.prepare();
  });
  afterEach(() => opened.dispose());

  const write = async (bucket: string): Promise<string> => {
    const [answer] = await store.objects.write([{ document: live(bucket, 'a/b.txt'), equalClock: 'accept' }]);
    return answer?.kind === 'fault' ? answer.fault.code : String(answer?.kind);
  };

  it('makes the state index, behind its alias, and nothing else', async () => {
    expect(await raw('GET', `/${prefix}-*/_alias`)).toMatchObject({
      body: { [`${prefix}-state-1`]: { aliases: { [`${prefix}-state`]: {} } } },
    });
    expect(await raw('GET', `/_index_template/${prefix}-*`)).toMatchObject({ body: { index_templates: [] } });
  });

  it('makes indices of buckets with the settings and the mapping of this version', async () => {
    await store.objects.createBucket('made');
    const { body } = await raw('GET', `/${prefix}-objects-made`);
    expect(Object.values(body as object)[0]).toMatchObject({
      aliases: { [`${prefix}-write-made`]: {}, [`${prefix}-objects`]: { filter: { term: { deleted: false } } } },
      mappings: { dynamic: 'strict', properties: { key: { type: 'keyword' }, tags: { type: 'flat_object' } } },
      settings: {
        index: { number_of_replicas: '0', refresh_interval: '1000ms', sort: { field: ['bucket', 'key'], order: ['asc', 'asc'] } },
      },
    });
    expect(await write('made')).toBe('written');
  });

  it('tells the index of a bucket from an empty copy to which its aliases were moved, and knows it again', async () => {
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

  describe('of a store that another version has prepared', () => {
    const setSchema = (schema: number) => raw('PUT', `/${prefix}-state/_mapping`, { _meta: { schema } });

    it.each([99, 2])('is refused, and changes nothing: schema %i', async (schema) => {
      await setSchema(schema);
      const contents = () => raw('GET', `/${prefix}-*`);
      const before = await contents();
      const fault = await opened
        .another({ shards: 3 })
        .setup.prepare()
        .then(() => undefined, faultOf);
      expect(fault).toMatchObject({ code: 'index.other-version', reason: expect.stringContaining(`has schema ${schema}`) });
      expect(await contents()).toEqual(before);
    });

    it('is written to by a process of this version that has begun before', async () => {
      await setSchema(99);
      await store.objects.createBucket('newer');
      expect(await write('newer')).toBe('written');
      expect(await store.state.put({ id: 'bucket:a', kind: 'bucket', record: {} }, null)).not.toBe('conflict');
    });
  });

  it('gives the state index its alias back', async () => {
    await store.state.put({ id: 'bucket:a', kind: 'bucket', record: { kept: true } }, null);
    await raw('DELETE', `/${prefix}-state-1/_alias/${prefix}-state`);
    await store.setup.prepare();
    expect(await store.state.get('bucket:a')).toMatchObject({ record: { kept: true } });
  });
});
