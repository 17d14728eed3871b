import { describe } from 'vitest';
import { enrichmentContract } from '../../contracts/enrichment-contract.ts';
import { openTestStore } from '../../support/servers/opensearch.ts';
import { opensearchUrl } from '../../support/servers/found.ts';

describe.skipIf(opensearchUrl() === undefined)('OpenSearch', () => {
  // a term of the index has 32,766 bytes at most, and that of a flat_object begins with the field and the key
  enrichmentContract('the OpenSearch store', { open: () => Promise.resolve(openTestStore()), takesAnyLength: false });
});
