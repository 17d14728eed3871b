/** Requests as the contract checks them: with every default. */
import { jobRows, type ReindexRequest } from '../../src/api/jobs.ts';
import { objectRows } from '../../src/api/objects.ts';
import type { SearchRequest } from '../../src/pipeline/control/search.ts';

/** A request for a re-index. */
export function reindexRequest({ bucket, ...body }: Partial<ReindexRequest> & { readonly bucket: string }): ReindexRequest {
  return { bucket, ...jobRows['POST /v1/buckets/{bucket}/reindex'].body.parse(body) };
}

/** A search. */
export function searchRequest(query: Partial<SearchRequest> = {}): SearchRequest {
  return objectRows['GET /v1/objects'].query.parse(query);
}
