import definition from '../../../config/opensearch/objects.json' with { type: 'json' };
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ObjectDocument } from '../../../src/ordering/document.ts';
import { faultOf } from '../../../src/base/fault.ts';
import type { IndexWrite, IndexWriteAnswer, Store } from '../../../src/store/store.ts';
import { codeOf, live, unique } from '../../contracts/world.ts';
import type { Interference, Proxy, TestStore } from '../../support/servers/opensearch.ts';
import { openTestStore, raw, startProxy } from '../../support/servers/opensearch.ts';
import { opensearchUrl } from '../../support/servers/found.ts';

const accept = (document: ObjectDocument): IndexWrite => ({ document, equalClock: 'accept' });
const ends = (answers: readonly IndexWriteAnswer[]): string[] =>
  answers.map((answer) => (answer.kind === 'fault' ? answer.fault.code : answer.kind));

describe.skipIf(opensearchUrl() === undefined)('the OpenSearch store', () => {
  let opened: TestStore;
  let store: Store;
  let prefix: string;
  let proxy: Proxy | undefined;

  beforeAll(async () => {
    opened = openTestStore();
    ({ store, prefix } = opened);
    await store.setup.prepare();
  });
  afterAll(() => opened?.dispose());
  afterEach(async () => {
    await proxy?.close();
    proxy = undefined;
  });

  /** The same installation behind a proxy. */
  async function behind(interfere: Interference, options: { readonly requestTimeoutMs?: number } = {}): Promise<Store> {
    proxy = await startProxy(interfere);
    return opened.another({ urls: [proxy.url], ...options });
  }

  async function newBucket(): Promise<string> {
    const bucket = unique('bucket');
    await store.objects.createBucket(bucket);
    return bucket;
  }

  async function settings(index: string, values: Record<string, unknown>): Promise<void> {
    expect(await raw('PUT', `/${prefix}-${index}/_settings`, values)).toMatchObject({ status: 200 });
  }

  describe('one index out of order', () => {
    const write = async (bucket: string, document: Partial<ObjectDocument> = {}): Promise<string[]> => {
      const neighbour = await newBucket();
      return ends(
        await store.objects.write([accept(live(neighbour, 'a')), accept(live(bucket, 'a', document)), accept(live(neighbour, 'b'))]),
      );
    };

    it.each(['write', 'read_only_allow_delete'])('with the block %s makes its own bucket wait only', async (block) => {
      const bucket = await newBucket();
      await settings(`objects-${bucket}`, { [`index.blocks.${block}`]: true });
      expect(await write(bucket)).toEqual(['written', 'bucket.index-blocked', 'written']);
      expect(await codeOf(store.objects.probe())).toBe('no fault');
      // what stops a disk from running full says so
      const reason = expect.stringContaining(block === 'read_only_allow_delete' ? 'flood-stage' : '');
      await expect(store.objects.probeBucket(bucket)).rejects.toMatchObject({ code: 'bucket.index-blocked', reason });
      await settings(`objects-${bucket}`, { [`index.blocks.${block}`]: null });
      expect(await codeOf(store.objects.probeBucket(bucket))).toBe('no fault');
      expect(await write(bucket)).toEqual(['written', 'written', 'written']);
    });

    it('closed makes its own bucket wait only, and leaves searches of the others alone', async () => {
      const bucket = await newBucket();
      const other = await newBucket();
      await store.objects.write([accept(live(other, 'a'))]);
      await opened.refresh();
      await raw('POST', `/${prefix}-objects-${bucket}/_close`);
      expect(await write(bucket)).toEqual(['written', 'bucket.index-blocked', 'written']);
      expect(await codeOf(store.objects.probeBucket(bucket))).toBe('bucket.index-blocked');
      expect(await codeOf(store.objects.getMany(bucket, ['a']))).toBe('bucket.index-blocked');
      expect(await codeOf(store.objects.search({ bucket, limit: 1 }))).toBe('bucket.index-blocked');
      expect(await store.objects.search({ bucket: other, limit: 1 })).toEqual([live(other, 'a')]);
      // all buckets: an answer that lacks one of them would be no answer
      expect(await codeOf(store.objects.search({ limit: 1 }))).toBe('bucket.index-blocked');
      await store.objects.removeBucket(bucket);
      expect(await codeOf(store.objects.search({ limit: 1 }))).toBe('no fault');
    });

    it('without its primary makes its own bucket wait only, after five seconds', async () => {
      const bucket = unique('unassigned');
      await raw('PUT', `/${prefix}-objects-${bucket}?wait_for_active_shards=0`, {
        settings: { number_of_replicas: 0, 'index.routing.allocation.require._name': 'nowhere' },
        aliases: { [`${prefix}-write-${bucket}`]: {} },
      });
      expect(await write(bucket)).toEqual(['written', 'bucket.index-unavailable', 'written']);
      expect(await codeOf(store.objects.getMany(bucket, ['a']))).toBe('bucket.index-unavailable');
      expect(await codeOf(store.objects.search({ bucket, limit: 1 }))).toBe('bucket.index-unavailable');
      await store.objects.removeBucket(bucket);
    });

    it('whose mapping lacks a field is misconfigured, not a reason to reject', async () => {
      const bucket = unique('lacking');
      await raw('PUT', `/${prefix}-objects-${bucket}`, { mappings: definition.mappings, aliases: { [`${prefix}-write-${bucket}`]: {} } });
      // what it lacks is what a newer version would write
      const newer: ObjectDocument & { readonly invented: string } = { ...live(bucket, 'a'), invented: 'tomorrow' };
      expect(ends(await store.objects.write([accept(newer), accept(live(bucket, 'b'))]))).toEqual([
        'bucket.index-misconfigured',
        'written',
      ]);
      await store.objects.removeBucket(bucket);
    });

    /** Puts a copy behind the aliases of a bucket, as after a restore under another name. */
    async function replaceByCopy(bucket: string): Promise<void> {
      const index = `${prefix}-objects-${bucket}-copy`;
      const add = [`${prefix}-write-${bucket}`, `${prefix}-objects`].map((alias) => ({ add: { index, alias } }));
      await raw('PUT', `/${index}`, definition);
      await raw('POST', '/_aliases', { actions: [...add, { remove_index: { index: `${prefix}-objects-${bucket}` } }] });
    }

    it.each(['is gone', 'is kept'])(
      'Fix: is no second one behind the alias when a copy has replaced it and the first %s',
      async (first) => {
        const bucket = await newBucket();
        await replaceByCopy(bucket);
        if (first === 'is kept') await raw('PUT', `/${prefix}-objects-${bucket}`);
        await store.objects.createBucket(bucket);
        expect(ends(await store.objects.write([accept(live(bucket, 'a'))]))).toEqual(['written']);
      },
    );

    it('Fix: is deleted under the name of the copy that replaced it behind its alias, and no other index is', async () => {
      const bucket = await newBucket();
      const foreign = `${prefix}x-foreign`;
      await replaceByCopy(bucket);
      await store.objects.write([accept(live(bucket, 'a'))]);
      await raw('PUT', `/${foreign}`, { aliases: { [`${prefix}-write-${bucket}`]: {} } });
      await store.objects.removeBucket(bucket);
      await opened.refresh();
      expect(await raw('GET', `/_cat/indices/${prefix}-objects-${bucket}*?format=json`)).toMatchObject({ body: [] });
      expect(await raw('GET', `/${foreign}`)).toMatchObject({ status: 200 });
      await raw('DELETE', `/${foreign}`);
      expect(await store.objects.search({ bucket, limit: 1 })).toEqual([]);
      await store.objects.createBucket(bucket);
      expect(ends(await store.objects.write([accept(live(bucket, 'b'))]))).toEqual(['written']);
    });

    it('gets back an alias that it lost when its bucket is created again', async () => {
      const bucket = await newBucket();
      await raw('DELETE', `/${prefix}-objects-${bucket}/_alias/*`);
      expect(await write(bucket)).toEqual(['written', 'bucket.index-missing', 'written']);
      await store.objects.createBucket(bucket);
      expect(await write(bucket)).toEqual(['written', 'written', 'written']);
      await opened.refresh();
      expect(await store.objects.search({ bucket, limit: 10 })).toHaveLength(1);
      expect((await store.objects.search({ limit: 1_000 })).filter((document) => document.bucket === bucket)).toHaveLength(1);
    });
  });

  describe('a request as a whole', () => {
    const error = (type: string, reason: string) => JSON.stringify({ error: { type, reason, root_cause: [] } });
    // recorded from OpenSearch 3.6; the shared server cannot be brought to answer so
    it.each([
      [429, error('rejected_execution_exception', 'rejected execution of coordinating operation […]'), 'index.overloaded'],
      [502, '<html>Bad Gateway</html>', 'index.unreachable'],
      [200, '{"took":1', 'index.unreachable'],
      [200, '<html>Welcome</html>', 'index.unreachable'],
    ])('answered %i %s throws its fault, and so do state and probe', async (status, body, code) => {
      const contentType = body.startsWith('{') ? 'application/json' : 'text/html';
      const broken = await behind(() => ({ status, body, contentType }));
      expect(await codeOf(broken.objects.write([accept(live('b', 'k'))]))).toBe(code);
      expect(await codeOf(broken.objects.probe())).toBe(code);
      expect(await codeOf(broken.state.get('x'))).toBe(code);
      expect(await codeOf(broken.state.put({ id: 'x', kind: 'lock', record: {} }, null))).toBe(code);
      expect(await codeOf(broken.objects.search({ limit: 1 }))).toBe(code);
      // one request each: whether to try again is not decided here
      expect(proxy?.requests).toHaveLength(5);
    });

    it.each([
      ['too large', 413, 'index.rejected'],
      ['not parsed', 400, 'internal.unexpected'],
    ])('that is %s is a refusal of its writes together, and of a single write its answer', async (_, status, alone) => {
      const strict = await behind(() => ({ status, body: error('action_request_validation_exception', 'made up') }));
      const writes = ['a', 'b'].map((key) => accept(live('b', key)));
      expect(await codeOf(strict.objects.write(writes))).toBe('index.rejected');
      expect(ends(await strict.objects.write(writes.slice(1)))).toEqual([status === 413 ? 'bucket.index-misconfigured' : alone]);
    });

    it('for another index that finds no room is a fault of that bucket alone, and one that exists needs none', async () => {
      const reason = 'Validation Failed: 1: this action would add [2] total shards, but this cluster currently has [1000]/[1000] maximum';
      const full = await behind(({ method }, forward) =>
        method === 'PUT' ? { status: 400, body: error('validation_exception', reason) } : forward(),
      );
      const bucket = await newBucket();
      expect(await codeOf(full.objects.createBucket(bucket))).toBe('no fault');
      expect(await codeOf(full.objects.createBucket(`${bucket}-another`))).toBe('bucket.index-limit');
      expect(await codeOf(full.objects.probe())).toBe('no fault');
    });
  });

  describe('a server that does not answer', () => {
    it('is unreachable after the time-out, which is three times as long for what changes the cluster', async () => {
      const missing = { status: 404, body: JSON.stringify({ error: { type: 'index_not_found_exception' }, status: 404 }) };
      const silent = await behind(({ path }) => (path.includes('-write-silent') ? missing : 'hang'), { requestTimeoutMs: 1_000 });
      const created = silent.objects.createBucket('silent-bucket');
      await expect(silent.objects.probe()).rejects.toMatchObject({ reason: expect.stringContaining('no answer within 1000 ms') });
      await expect(created).rejects.toMatchObject({
        code: 'index.unreachable',
        reason: expect.stringContaining('no answer within 3000 ms'),
      });
    });

    it('is left at once when the signal is aborted, with its reason', async () => {
      const asked = Promise.withResolvers<void>();
      const silent = await behind(() => {
        asked.resolve();
        return 'hang';
      });
      const controller = new AbortController();
      const written = silent.objects.write([accept(live('b', 'k'))], controller.signal);
      await asked.promise;
      const reason = new Error('stopping');
      controller.abort(reason);
      await expect(written).rejects.toBe(reason);
    });
  });

  describe('credentials in the URL', () => {
    it('are sent, decoded, and never told', async () => {
      proxy = await startProxy(() => ({ status: 401, body: 'Unauthorized', contentType: 'text/plain' }));
      const url = proxy.url.replace('http://', 'http://us%40er:pa%2Fss%3A@');
      const told: unknown[] = [];
      const secured = opened.another({ urls: [url] });
      await secured.objects.probe().catch((error: unknown) => told.push(error));
      expect(proxy.requests[0]?.headers['authorization']).toBe(`Basic ${Buffer.from('us@er:pa/ss:').toString('base64')}`);
      await proxy.close();
      await secured.objects.probe().catch((error: unknown) => told.push(error));
      expect(told.map((error) => faultOf(error).code)).toEqual(['index.denied', 'index.unreachable']);
      const { inspect } = await import('node:util');
      for (const error of told) expect(inspect(error, { depth: 20, showHidden: true })).not.toMatch(/pa(\/|%2F)ss|Basic /);
    });
  });

  describe('state', () => {
    it('blocked stops everybody, and so says the probe', async () => {
      const blocked = openTestStore();
      await blocked.store.setup.prepare();
      const put = () => codeOf(blocked.store.state.put({ id: 'lock:x', kind: 'lock', record: {} }, null));
      for (const block of ['write', 'read_only_allow_delete']) {
        await raw('PUT', `/${blocked.prefix}-state/_settings`, { [`index.blocks.${block}`]: true });
        expect(await put()).toBe('index.blocked');
        expect(await codeOf(blocked.store.objects.probe())).toBe('index.blocked');
        await raw('PUT', `/${blocked.prefix}-state/_settings`, { [`index.blocks.${block}`]: null });
      }
      expect(await put()).toBe('no fault');
      await blocked.dispose();
    });

    it('that somebody deleted is missing, to every question, and does not come back by itself', async () => {
      const lost = openTestStore();
      await lost.store.setup.prepare();
      await raw('DELETE', `/${lost.prefix}-state-1`);
      const { state, objects } = lost.store;
      expect(await codeOf(state.get('a'))).toBe('index.state-missing');
      expect(await codeOf(state.put({ id: 'a', kind: 'lock', record: {} }, null))).toBe('index.state-missing');
      expect(await codeOf(state.put({ id: 'a', kind: 'lock', record: {} }, '0:1'))).toBe('index.state-missing');
      expect(await codeOf(state.remove('a', '0:1'))).toBe('index.state-missing');
      expect(await codeOf(state.list('lock', { limit: 1 }))).toBe('index.state-missing');
      expect(await codeOf(state.count('lock'))).toBe('index.state-missing');
      expect(await codeOf(objects.probe())).toBe('index.state-missing');
      expect(await raw('GET', `/_cat/indices/${lost.prefix}-*?format=json`)).toMatchObject({ body: [] });
      await lost.dispose();
    });

    it('takes no version of another store for one of its own', async () => {
      await store.state.put({ id: 'lock:foreign', kind: 'lock', record: {} }, null);
      expect(await store.state.put({ id: 'lock:foreign', kind: 'lock', record: {} }, '17')).toBe('conflict');
      expect(await store.state.remove('lock:foreign', '17')).toBe('conflict');
      expect(await store.state.remove('lock:nothing', '17')).toBe('removed');
    });

    it('keeps ids apart that a path would confuse', async () => {
      const ids = ['.', '..', '../x', 'a/b', '%2e', '_search', '?q', '#', ' '];
      for (const id of ids) expect(await store.state.put({ id, kind: 'schedule', record: { id } }, null)).toMatchObject({ id });
      for (const id of ids) expect(await store.state.get(id)).toMatchObject({ id, record: { id } });
    });
  });
});
