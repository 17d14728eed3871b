import { describe } from 'vitest';
import { readerMatrix } from '../contracts/reader-matrix.ts';
import { isLong } from '../support/breadth.ts';
import { opensearchUrl } from '../support/servers/found.ts';
import { openTestStore } from '../support/servers/opensearch.ts';

describe.skipIf(opensearchUrl() === undefined)('OpenSearch', () => {
  readerMatrix('OpenSearch', () => Promise.resolve(openTestStore()), isLong ? 5 : 1);
});
