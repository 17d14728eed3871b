import { describe } from 'vitest';
import { auditContract } from '../../contracts/audit-contract.ts';
import { exportContract } from '../../contracts/export-contract.ts';
import { maintenanceContract } from '../../contracts/maintenance-contract.ts';
import { scanContract } from '../../contracts/scan-contract.ts';
import { storeContract } from '../../contracts/store-contract.ts';
import { openTestStore } from '../../support/servers/opensearch.ts';
import { opensearchUrl } from '../../support/servers/found.ts';

describe.skipIf(opensearchUrl() === undefined)('OpenSearch', () => {
  storeContract('the OpenSearch store', () => Promise.resolve(openTestStore()));
  auditContract('the OpenSearch store', () => Promise.resolve(openTestStore()));
  exportContract('the OpenSearch store', () => Promise.resolve(openTestStore()));
  maintenanceContract('the OpenSearch store', () => Promise.resolve(openTestStore()));
  scanContract('the OpenSearch store', () => Promise.resolve(openTestStore()));
  scanContract('the OpenSearch store on several shards', () => Promise.resolve(openTestStore({ shards: 3 })));
});
