import { z } from 'zod';
import type { ObjectFilter } from '../../pipeline/ports/object-index.ts';
import type { OpenSearchAnswer, OpenSearchClient } from './client.ts';
import { bodyOf, isIndexMissing, parseAnswer } from './faults.ts';
import type { IndexNames } from './names.ts';

type SendSearch = (
  /** `partial`: the answer may lack what a shard did not find in time, and says so. */
  filter: Pick<ObjectFilter, 'bucket' | 'deleted' | 'within'> & { readonly partial?: boolean },
  body: Readonly<Record<string, unknown>>,
  signal?: AbortSignal,
) => Promise<unknown>;

const severalSchema = z.object({ responses: z.tuple([z.looseObject({ status: z.number() })]) });

/** Sends searches to the indices that a filter is about. Resolves with the body of the answer; undefined if there is no such index. */
export function createSearchSender(client: OpenSearchClient, names: IndexNames): SendSearch {
  return async function sendSearch({ bucket, deleted = false, within, partial = false }, body, signal) {
    const buckets = bucket === undefined ? within && [...new Set(within.map((part) => part.bucket))] : [bucket];
    const sent = { partial, body };
    // an index that a search is not about must not matter: it may be closed, broken or slow
    const answer = buckets === undefined ? await sendToAll(deleted, sent, signal) : await sendToSome(buckets, sent, signal);
    return isIndexMissing(answer) ? undefined : bodyOf(answer, buckets === undefined ? 'cluster' : 'index');
  };

  function sendToAll(deleted: boolean, { partial, body }: Sent, signal: AbortSignal | undefined): Promise<OpenSearchAnswer> {
    // the alias of live documents leaves tombstones out
    const alias = deleted ? names.bucketAliases : names.liveAlias;
    // a pattern would leave closed indices out without a word, and an alias does not
    const closed = deleted ? { expand_wildcards: 'open,closed' } : {};
    return client.send(
      { method: 'POST', path: `/${alias}/_search`, query: { allow_partial_search_results: partial, ...closed }, body },
      signal,
    );
  }

  async function sendToSome(buckets: readonly string[], sent: Sent, signal: AbortSignal | undefined): Promise<OpenSearchAnswer> {
    const [only, ...others] = buckets;
    if (only === undefined || others.length > 0) return sendToSeveral(buckets, sent, signal);
    const query = { allow_partial_search_results: sent.partial };
    return client.send({ method: 'POST', path: `/${names.objectsAlias(only)}/_search`, query, body: sent.body }, signal);
  }

  /** The names are in the body of the request: an address has at most 4 kB. */
  async function sendToSeveral(
    buckets: readonly string[],
    { partial, body }: Sent,
    signal: AbortSignal | undefined,
  ): Promise<OpenSearchAnswer> {
    const index = buckets.map((bucket) => names.objectsAlias(bucket));
    const send = async (ifMissing: object): Promise<OpenSearchAnswer> => {
      const header = { index, allow_partial_search_results: partial, ...ifMissing };
      const answer = await client.send(
        { method: 'POST', path: '/_msearch', lines: `${JSON.stringify(header)}\n${JSON.stringify(body)}\n` },
        signal,
      );
      if (answer.status !== 200) return answer;
      const { status, ...found } = parseAnswer(severalSchema, answer.body).responses[0];
      return { ...answer, status, body: found };
    };
    const answer = await send({});
    // only then, because it leaves closed indices out as well, without a word
    return isIndexMissing(answer) ? send({ ignore_unavailable: true }) : answer;
  }
}

interface Sent {
  readonly partial: boolean;
  readonly body: Readonly<Record<string, unknown>>;
}
