import { describe, expect, it } from 'vitest';
import type { OpenSearchAnswer, OpenSearchRequest } from '../../../src/store/opensearch/client.ts';
import { indexNames } from '../../../src/store/opensearch/setup.ts';
import { createObjectScan } from '../../../src/store/opensearch/scan.ts';
import { codeOf } from '../../contracts/world.ts';

function scanAnswered(answer: OpenSearchAnswer, sent: OpenSearchRequest[] = []) {
  const send = async (request: OpenSearchRequest) => {
    sent.push(request);
    return answer;
  };
  return createObjectScan({ client: { send, close: async () => undefined }, names: indexNames('tally') });
}

/** As OpenSearch 3.6 answers. */
const shards = (successful: number, failed: number, total = 2) => ({ status: 200, body: { _shards: { total, successful, failed } } });
const missing = { status: 404, body: { error: { type: 'index_not_found_exception', reason: 'no such index' }, status: 404 } };

describe('a refresh', () => {
  it.each([
    ['every copy did it', shards(2, 0), 'no fault'],
    ['a replica is nowhere, as on a single node', shards(1, 0), 'no fault'],
    ['the bucket has no index', missing, 'no fault'],
    // both answered with 200
    ['Fix: no shard is anywhere', shards(0, 0), 'bucket.index-unavailable'],
    ['Fix: a shard failed', shards(1, 1), 'bucket.index-unavailable'],
  ])('of which %s', async (_, answer, end) => {
    expect(await codeOf(scanAnswered(answer).refresh('photos'))).toBe(end);
  });
});

describe('a scan', () => {
  it('asks the primary shards alone for all documents: replicas may lack what a refresh has made visible', async () => {
    const sent: OpenSearchRequest[] = [];
    const scan = scanAnswered({ status: 200, body: { hits: { hits: [], total: { value: 0 } } } }, sent);
    await scan.scan('photos', { prefix: '', after: '', limit: 10 });
    await scan.countLive('photos', '');
    const query = { preference: '_primary', allow_partial_search_results: false };
    expect(sent).toMatchObject([
      { method: 'POST', query },
      { method: 'POST', query },
    ]);
  });
});
