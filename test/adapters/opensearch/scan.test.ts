import { describe, expect, it } from 'vitest';
import type { OpenSearchRequest } from '../../../src/adapters/opensearch/client.ts';
import { indexNames } from '../../../src/adapters/opensearch/names.ts';
import { createObjectScan } from '../../../src/adapters/opensearch/scan.ts';

describe('a scan on OpenSearch', () => {
  it('asks the primary shards alone for all documents: replicas may lack what a refresh has made visible', async () => {
    const sent: OpenSearchRequest[] = [];
    const send = async (request: OpenSearchRequest) => {
      sent.push(request);
      return { status: 200, body: { hits: { hits: [], total: { value: 0 } } } };
    };
    const scan = createObjectScan({ client: { send, close: async () => undefined }, names: indexNames('tally') });
    await scan.scan('photos', { prefix: '', after: '', limit: 10 });
    await scan.countLive('photos', '');
    const query = { preference: '_primary', allow_partial_search_results: false };
    expect(sent).toMatchObject([
      { method: 'POST', query },
      { method: 'POST', query },
    ]);
  });
});
