import type { ObjectFilter } from '../../pipeline/ports/object-index.ts';
import type { OpenSearchClient } from './client.ts';
import { bodyOf, isIndexMissing } from './faults.ts';
import type { IndexNames } from './names.ts';

type SendSearch = (
  /** `partial`: the answer may lack what a shard did not find in time, and says so. */
  filter: Pick<ObjectFilter, 'bucket' | 'deleted'> & { readonly partial?: boolean },
  body: Readonly<Record<string, unknown>>,
  signal?: AbortSignal,
) => Promise<unknown>;

/** Sends searches to the indices that a filter is about. Resolves with the body of the answer; undefined if there is no such index. */
export function createSearchSender(client: OpenSearchClient, names: IndexNames): SendSearch {
  return async function sendSearch({ bucket, deleted = false, partial = false }, body, signal) {
    // one bucket is searched through its own alias, so that a closed or broken index of another bucket does not matter
    const alias = bucket === undefined ? allOf(names, deleted) : names.objectsAlias(bucket);
    // a pattern would leave closed indices out without a word, and an alias does not
    const closed = bucket === undefined && deleted ? { expand_wildcards: 'open,closed' } : {};
    const query = { allow_partial_search_results: partial, ...closed };
    const answer = await client.send({ method: 'POST', path: `/${alias}/_search`, query, body }, signal);
    return isIndexMissing(answer) ? undefined : bodyOf(answer, bucket === undefined ? 'cluster' : 'index');
  };
}

/** The alias of live documents leaves tombstones out. */
function allOf(names: IndexNames, deleted: boolean): string {
  return deleted ? names.bucketAliases : names.liveAlias;
}
