import { describe } from 'vitest';
import { auditContract } from '../../contracts/audit-contract.ts';
import { enrichmentContract } from '../../contracts/enrichment-contract.ts';
import { feedContract } from '../../contracts/feed-contract.ts';
import { maintenanceContract } from '../../contracts/maintenance-contract.ts';
import { scanContract } from '../../contracts/scan-contract.ts';
import { searchContract } from '../../contracts/search-contract.ts';
import { usageContract } from '../../contracts/usage-contract.ts';
import { withinContract } from '../../contracts/within-contract.ts';
import { storeContract } from '../../contracts/store-contract.ts';
import type { Breadth } from '../../contracts/world.ts';
import { isLong } from '../../support/breadth.ts';
import { openTestStore } from '../../support/servers/opensearch.ts';
import { opensearchUrl } from '../../support/servers/found.ts';

describe.skipIf(opensearchUrl() === undefined)('OpenSearch', () => {
  const open = () => Promise.resolve(openTestStore());
  /** SQLite plays each product whole each day. */
  const breadth = (runs: number): Breadth => ({ runs: isLong ? 5 * runs : runs, isWhole: isLong });
  storeContract('the OpenSearch store', open);
  auditContract('the OpenSearch store', open);
  maintenanceContract('the OpenSearch store', open, breadth(12));
  feedContract('the OpenSearch store', open);
  // a term of the index has 32,766 bytes at most, and that of a flat_object begins with the field and the key
  enrichmentContract('the OpenSearch store', { open, takesAnyLength: false });
  // several shards answer in no order, and one is the case that is easier
  for (const shards of isLong ? [1, 3] : [2]) {
    const name = `the OpenSearch store on ${shards} shards`;
    const openSharded = () => Promise.resolve(openTestStore({ shards }));
    usageContract(name, openSharded);
    searchContract(name, openSharded, breadth(50));
    withinContract(name, openSharded, breadth(10));
    scanContract(name, openSharded, breadth(30));
    feedContract(name, openSharded, shards);
  }
});
