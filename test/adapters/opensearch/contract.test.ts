import { describe } from 'vitest';
import { auditContract } from '../../contracts/audit-contract.ts';
import { exportContract } from '../../contracts/export-contract.ts';
import { maintenanceContract } from '../../contracts/maintenance-contract.ts';
import { scanContract } from '../../contracts/scan-contract.ts';
import { searchContract } from '../../contracts/search-contract.ts';
import { seriesContract } from '../../contracts/series-contract.ts';
import { usageContract } from '../../contracts/usage-contract.ts';
import { withinContract } from '../../contracts/within-contract.ts';
import { storeContract } from '../../contracts/store-contract.ts';
import { isLong } from '../../support/breadth.ts';
import { openTestStore } from '../../support/servers/opensearch.ts';
import { opensearchUrl } from '../../support/servers/found.ts';

describe.skipIf(opensearchUrl() === undefined)('OpenSearch', () => {
  storeContract('the OpenSearch store', () => Promise.resolve(openTestStore()));
  auditContract('the OpenSearch store', () => Promise.resolve(openTestStore()));
  exportContract('the OpenSearch store', () => Promise.resolve(openTestStore()));
  seriesContract('the OpenSearch store', () => Promise.resolve(openTestStore()));
  maintenanceContract('the OpenSearch store', () => Promise.resolve(openTestStore()));
  // several shards answer in no order, and one is the case that is easier
  for (const shards of isLong ? [1, 3] : [3]) {
    usageContract(`the OpenSearch store on ${shards} shards`, () => Promise.resolve(openTestStore({ shards })));
    searchContract(`the OpenSearch store on ${shards} shards`, () => Promise.resolve(openTestStore({ shards })));
    withinContract(`the OpenSearch store on ${shards} shards`, () => Promise.resolve(openTestStore({ shards })), 20);
    scanContract(`the OpenSearch store on ${shards} shards`, () => Promise.resolve(openTestStore({ shards })));
  }
});
