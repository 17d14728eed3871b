/**
 * What only a server that nobody else uses can be made to answer: blocks of the whole cluster, 413 and 429. Its limits
 * are in global-setup.ts. store.test.ts covers the same answers as they were recorded.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { faultOf } from '../../../src/domain/fault.ts';
import type { IndexWrite } from '../../../src/pipeline/ports/object-index.ts';
import { live } from '../../contracts/world.ts';
import { until } from '../../support/servers/aws.ts';
import type { TestStore } from '../../support/servers/opensearch.ts';
import { openTestStore, raw } from '../../support/servers/opensearch.ts';
import { limitedOpensearchUrl } from '../../support/servers/found.ts';

const url = limitedOpensearchUrl() ?? '';

describe.skipIf(url === '')('a limited OpenSearch', () => {
  let opened: TestStore;

  beforeAll(async () => {
    opened = openTestStore({ urls: [url] });
    await opened.store.setup.prepare();
    await opened.store.objects.createBucket('bucket');
  });
  afterAll(() => opened?.dispose());

  const accept = (key: string, etag: string): IndexWrite => ({ document: live('bucket', key, { clock: 1, etag }), equalClock: 'accept' });
  const many = (count: number, name: string, etagLength = 1_000): IndexWrite[] =>
    Array.from({ length: count }, (_, at) => accept(`${name}${at}`, 'x'.repeat(etagLength)));
  const faultCode = (promise: Promise<unknown>): Promise<string> =>
    promise.then(
      () => 'no fault',
      (error: unknown) => faultOf(error).code,
    );

  it('takes a request beyond its 1 MB in halves', async () => {
    const answers = await opened.store.objects.write(many(900, 'halved'));
    expect(new Set(answers.map(({ kind }) => kind))).toEqual(new Set(['written']));
    expect(answers).toHaveLength(900);
  });

  it('pushes back as a whole when it holds too much', async () => {
    expect(await faultCode(opened.store.objects.write(many(740, 'pushed')))).toBe('index.overloaded');
  });

  it('pushes back item by item when its queue is full, and writes the others', async () => {
    const ends = new Set<string>();
    // a busy machine may send so slowly that the queue never fills
    await until('it pushed back', async () => {
      const requests = Array.from({ length: 40 }, (_, at) => opened.store.objects.write(many(10, `queued${at}-`, 10)));
      const answers = (await Promise.all(requests)).flat();
      for (const answer of answers) ends.add(answer.kind === 'fault' ? answer.code : answer.kind);
      return ends.has('bucket.index-overloaded');
    });
    expect(ends).toEqual(new Set(['written', 'bucket.index-overloaded']));
  });

  it.each(['read_only', 'read_only_allow_delete'])('with cluster.blocks.%s lets nobody write, and so says the probe', async (block) => {
    const { objects, state } = opened.store;
    await raw('PUT', '/_cluster/settings', { persistent: { [`cluster.blocks.${block}`]: true } }, url);
    try {
      expect(await faultCode(objects.write(many(1, 'blocked')))).toBe('index.blocked');
      expect(await faultCode(objects.probe())).toBe('index.blocked');
      expect(await faultCode(state.put({ id: 'x', kind: 'lock', record: {} }, null))).toBe('index.blocked');
      expect(await faultCode(objects.createBucket('another'))).toBe('index.blocked');
      expect(await faultCode(state.get('x'))).toBe('no fault');
    } finally {
      await raw('PUT', '/_cluster/settings', { persistent: { [`cluster.blocks.${block}`]: null } }, url);
    }
    expect(await faultCode(objects.probe())).toBe('no fault');
    expect(await objects.write(many(1, 'unblocked'))).toEqual([{ kind: 'written' }]);
  });

  it('without room for another index says so of that bucket alone, and still takes one that exists', async () => {
    const { objects } = opened.store;
    for (const [setting, value, code] of [
      ['cluster.max_shards_per_node', 1, 'bucket.index-limit'],
      ['cluster.blocks.create_index', true, 'bucket.index-unavailable'],
    ] as const) {
      await raw('PUT', '/_cluster/settings', { persistent: { [setting]: value } }, url);
      try {
        expect(await faultCode(objects.createBucket('another'))).toBe(code);
        expect(await faultCode(objects.createBucket('bucket'))).toBe('no fault');
        expect(await faultCode(objects.probe())).toBe('no fault');
      } finally {
        await raw('PUT', '/_cluster/settings', { persistent: { [setting]: null } }, url);
      }
    }
  });
});
