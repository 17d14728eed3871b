import { describe, expect, it } from 'vitest';
import type { OpenSearchAnswer } from '../../../src/adapters/opensearch/client.ts';
import { indexNames } from '../../../src/adapters/opensearch/names.ts';
import { createObjectScan } from '../../../src/adapters/opensearch/scan.ts';

function scanAnswered(answer: OpenSearchAnswer) {
  const client = { send: async () => answer, close: async () => undefined };
  return createObjectScan({ client, names: indexNames('tally') });
}

/** As OpenSearch 3.6 answers. */
const shards = (successful: number, failed: number, total = 2) => ({ status: 200, body: { _shards: { total, successful, failed } } });
const missing = { status: 404, body: { error: { type: 'index_not_found_exception', reason: 'no such index' }, status: 404 } };

describe('a refresh', () => {
  it.each([
    ['every copy did it', shards(2, 0)],
    ['a replica is nowhere, as on a single node', shards(1, 0)],
    ['the bucket has no index', missing],
  ])('is done when %s', async (_, answer) => {
    await expect(scanAnswered(answer).refresh('photos')).resolves.toBeUndefined();
  });

  it.each([
    ['no shard is anywhere, which is answered with 200', shards(0, 0)],
    ['a shard failed, which is answered with 200', shards(1, 1)],
  ])('Fix: is not when %s', async (_, answer) => {
    await expect(scanAnswered(answer).refresh('photos')).rejects.toMatchObject({ code: 'bucket.index-unavailable' });
  });
});
