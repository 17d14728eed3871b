/** Requests as the contract checks them: with every default. */
import {
  operationsOf,
  type AnyOperation,
  type CheckedOperations,
  type Context,
  type ControlName,
  type Operations,
} from '../../src/registry/contract/contract.ts';
import { jobRows, type ReindexRequest } from '../../src/registry/contract/jobs.ts';
import { objectRows } from '../../src/registry/contract/objects.ts';
import { checkRequest } from '../../src/registry/contract/row.ts';
import type { SearchRequest } from '../../src/search/search.ts';

/** A request for a re-index. */
export function reindexRequest({ bucket, ...body }: Partial<ReindexRequest> & { readonly bucket: string }): ReindexRequest {
  return { bucket, ...jobRows['POST /v1/buckets/{bucket}/reindex'].body.parse(body) };
}

/** A search. */
export function searchRequest(query: Partial<SearchRequest> = {}): SearchRequest {
  return objectRows['GET /v1/objects'].query.parse(query);
}

/** Wraps the operations for callers whose requests are not checked yet: each request is first checked by its row, as the server does. */
export function checkingRequests(operations: CheckedOperations): Operations {
  const byName: Readonly<Record<ControlName, AnyOperation>> = operations;
  const anyone: Context = { actor: { kind: 'local', host: 'here' }, signal: new AbortController().signal };
  return operationsOf((row) => async (request, context) => byName[row.operation](checkRequest(row, request), { ...anyone, ...context }));
}
