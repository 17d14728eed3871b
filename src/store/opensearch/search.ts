/** Sends searches to the indices of the buckets that they search. */
import { z } from 'zod';
import { objectDocumentSchema, type ObjectDocument } from '../../ordering/document.ts';
import type { ObjectFilter } from '../store.ts';
import type { OpenSearchAnswer, OpenSearchClient } from './client.ts';
import { bodyOf, isIndexMissing, parseAnswer } from './faults.ts';
import type { IndexNames } from './setup.ts';

export type SendSearch = (
  /** `partial`: the answer may lack what a shard did not find in time, and says so. */
  filter: Pick<ObjectFilter, 'bucket' | 'deleted' | 'within'> & { readonly partial?: boolean },
  body: Readonly<Record<string, unknown>>,
  signal?: AbortSignal,
) => Promise<unknown>;

const documentsSchema = z.object({ hits: z.object({ hits: z.array(z.object({ _source: objectDocumentSchema })) }) });

/** A search's documents in its order. */
export function documentsOf(found: unknown): readonly ObjectDocument[] {
  return found === undefined ? [] : parseAnswer(documentsSchema, found).hits.hits.map((hit) => hit._source);
}

const severalSchema = z.object({ responses: z.tuple([z.looseObject({ status: z.number() })]) });

const aliasesSchema = z.record(z.string(), z.object({ aliases: z.record(z.string(), z.unknown()) }));

/** Sends searches to the indices of a filter. Resolves with the answer's body; undefined if there is no such index. */
export function createSearchSender(client: OpenSearchClient, names: IndexNames): SendSearch {
  return async function sendSearch({ bucket, deleted = false, within, partial = false }, body, signal) {
    const buckets = bucket === undefined ? within && [...new Set(within.map((part) => part.bucket))] : [bucket];
    // a search that names no index would search all
    if (buckets?.length === 0) return undefined;
    const sent = { partial, body };
    // an index outside the search must not affect it: it may be closed, broken or slow
    const answer = buckets === undefined ? await sendToAll(deleted, sent, signal) : await sendToSome(buckets, sent, signal);
    return isIndexMissing(answer) ? undefined : bodyOf(answer, buckets === undefined ? 'cluster' : 'index');
  };

  function sendToAll(deleted: boolean, { partial, body }: Sent, signal: AbortSignal | undefined): Promise<OpenSearchAnswer> {
    // the alias of live documents leaves tombstones out
    const alias = deleted ? names.bucketAliases : names.liveAlias;
    // unlike an alias, a pattern would silently leave out closed indices
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
    const send = async (index: readonly string[]): Promise<OpenSearchAnswer> => {
      const header = { index, allow_partial_search_results: partial };
      const answer = await client.send(
        { method: 'POST', path: '/_msearch', lines: `${JSON.stringify(header)}\n${JSON.stringify(body)}\n` },
        signal,
      );
      if (answer.status !== 200) return answer;
      const { status, ...found } = parseAnswer(severalSchema, answer.body).responses[0];
      return { ...answer, status, body: found };
    };
    const aliases = buckets.map((bucket) => names.objectsAlias(bucket));
    const answer = await send(aliases);
    if (!isIndexMissing(answer)) return answer;
    // not `ignore_unavailable`, which silently leaves out closed indices too
    const existing = await existingAliases(signal);
    const left = aliases.filter((alias) => existing.has(alias));
    if (left.length === 0) return answer;
    const ofExisting = await send(left);
    // an index was removed in between: without a retry, the answer would lack the others
    bodyOf(ofExisting, 'index');
    return ofExisting;
  }

  /** The aliases of all buckets that have an index, even a closed one. */
  async function existingAliases(signal: AbortSignal | undefined): Promise<ReadonlySet<string>> {
    const query = { filter_path: '*.aliases', expand_wildcards: 'open,closed' };
    const answer = await client.send({ method: 'GET', path: `/${names.bucketAliases}`, query }, signal);
    if (isIndexMissing(answer)) return new Set();
    return new Set(Object.values(parseAnswer(aliasesSchema, bodyOf(answer))).flatMap(({ aliases }) => Object.keys(aliases)));
  }
}

interface Sent {
  readonly partial: boolean;
  readonly body: Readonly<Record<string, unknown>>;
}
