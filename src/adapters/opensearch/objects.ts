import { z } from 'zod';
import type { ObjectDocument } from '../../domain/documents/document.ts';
import { documentId, textsSchema } from '../../domain/documents/document.ts';
import { FaultError, faultOf } from '../../domain/fault.ts';
import type { IndexWriteAnswer, ObjectIndex, ObjectQuery } from '../../pipeline/ports/object-index.ts';
import type { BulkAction, BulkVerdict } from './bulk.ts';
import { bulkAction, bulkVerdicts, clockVerdict, linesOf } from './bulk.ts';
import type { OpenSearchAnswer, OpenSearchClient } from './client.ts';
import { bodyOf, errorOf, itemFault, parseAnswer, requestFault, storeErrorSchema } from './faults.ts';
import type { IndexNames } from './names.ts';
import { createProbe } from './probe.ts';

interface ObjectsDependencies {
  readonly client: OpenSearchClient;
  readonly names: IndexNames;
  /** Body of a new objects index: settings and mappings. */
  readonly newIndex: Readonly<Record<string, unknown>>;
}

/**
 * The object index on OpenSearch. Needs on its own indices: read, write, create_index, delete_index, manage_aliases and
 * `indices:monitor/settings/get`; on the cluster: composite operations (bulk, mget).
 */
export function createObjectIndex({ client, names, newIndex }: ObjectsDependencies): ObjectIndex {
  const sendActions = createBulkSender(client);

  return {
    async write(writes, signal) {
      signal?.throwIfAborted();
      const prepared = writes.map((write) => bulkAction(write, names));
      const actions = prepared.filter((action) => 'write' in action);
      const verdicts = await sendActions(actions, signal);
      const undecided = actions.filter((_, at) => verdicts[at]?.kind === 'undecided');
      const decided = await decide(client, undecided, signal);
      const answers = new Map(actions.map((action, at) => [action, decided.get(action) ?? answerOf(verdicts[at])]));
      return prepared.map((action) => ('write' in action ? (answers.get(action) ?? unanswered) : action));
    },

    async getMany(bucket, keys, signal) {
      signal?.throwIfAborted();
      if (keys.length === 0) return [];
      const answer = await client.send(
        { method: 'POST', path: `/${names.objectsAlias(bucket)}/_mget`, query: STORED_ONLY, body: { ids: keys.map(documentId) } },
        signal,
      );
      const { docs } = parseAnswer(mgetSchema, bodyOf(answer));
      if (docs.length !== keys.length) parseAnswer(z.array(z.unknown()).length(keys.length), docs);
      return docs.map(storedDocument);
    },

    async search(query, signal) {
      // one bucket is asked through its own alias, so that another one's closed or broken index does not matter
      const alias = query.bucket === undefined ? names.liveAlias : names.objectsAlias(query.bucket);
      const answer = await client.send({ method: 'POST', path: `/${alias}/_search`, query: WHOLE_HITS, body: searchBody(query) }, signal);
      if (isIndexMissing(answer)) return [];
      return parseAnswer(searchSchema, bodyOf(answer)).hits.hits.map((hit) => hit._source);
    },

    async createBucket(bucket, signal) {
      const index = names.objectsIndex(bucket);
      const aliases = { [names.objectsAlias(bucket)]: {}, [names.liveAlias]: LIVE_ONLY };
      const actions = Object.entries(aliases).map(([alias, filter]) => ({ add: { index, alias, ...filter } }));
      // first, since an index that exists needs no permission to be created (nor room, past a disk's watermark)
      const aliased = await client.send({ method: 'POST', path: '/_aliases', body: { actions } }, signal);
      if (!isIndexMissing(aliased)) {
        bodyOf(aliased);
        return;
      }
      const created = await client.send({ method: 'PUT', path: `/${index}`, body: { ...newIndex, aliases } }, signal);
      // another worker was faster, and gave it its aliases
      if (errorOf(created).type !== 'resource_already_exists_exception') bodyOf(created);
    },

    async removeBucket(bucket, signal) {
      const answer = await client.send({ method: 'DELETE', path: `/${names.objectsIndex(bucket)}` }, signal);
      if (!isIndexMissing(answer)) bodyOf(answer);
    },

    probe: createProbe(client, names),
  };
}

const LIVE_ONLY = { filter: { term: { deleted: false } } };
/** Without each id and index, which the order tells; `found` is always there, so that no place is left out. */
const STORED_ONLY = { filter_path: 'docs.found,docs._source,docs.error' };
/** A page with a hole in it would be worse than none. */
const WHOLE_HITS = { allow_partial_search_results: false };

const unanswered: IndexWriteAnswer = { kind: 'fault', code: 'internal.unexpected', reason: 'the answer lacks this write' };

function answerOf(verdict: BulkVerdict | undefined): IndexWriteAnswer {
  return verdict === undefined || verdict.kind === 'undecided' ? unanswered : verdict;
}

/**
 * Sends actions as one request and halves it for as long as the server finds it too large (413), or finds in it what it
 * cannot parse (400: that should be impossible, and then only the one action may suffer). One index without its primary
 * holds the answer up for the time-out of 5 s at most.
 */
function createBulkSender(client: OpenSearchClient) {
  const query = { require_alias: true, timeout: '5s', filter_path: 'errors,items.*.status,items.*.error.type,items.*.error.reason' };

  return async function sendActions(actions: readonly BulkAction[], signal?: AbortSignal): Promise<readonly BulkVerdict[]> {
    if (actions.length === 0) return [];
    const lines = actions.map(linesOf).join('');
    const answer = await client.send({ method: 'POST', path: '/_bulk', query, lines }, signal);
    if (answer.status === 200) return bulkVerdicts(actions, answer.body);
    if (answer.status !== 413 && answer.status !== 400) throw requestFault(answer);
    if (actions.length === 1) return [refusedAlone(answer)];
    const middle = Math.ceil(actions.length / 2);
    const first = await sendActions(actions.slice(0, middle), signal);
    const second = await sendActions(actions.slice(middle), signal).catch((error: unknown) => {
      if (!(error instanceof FaultError)) throw error;
      // the first half is written: its answers must not be lost with the second
      return actions.slice(middle).map(() => ({ kind: 'fault' as const, ...faultOf(error) }));
    });
    return [...first, ...second];
  };
}

function refusedAlone(answer: OpenSearchAnswer): IndexWriteAnswer {
  if (answer.status === 413) return { kind: 'fault', code: 'index.rejected', reason: '413: larger than the server takes' };
  return { kind: 'fault', code: 'internal.unexpected', reason: requestFault(answer).reason };
}

const versionsSchema = z.object({ docs: z.array(z.object({ _version: z.number().optional() })) });

/** Asks for the stored clocks where a refusal did not tell them. */
async function decide(
  client: OpenSearchClient,
  actions: readonly BulkAction[],
  signal: AbortSignal | undefined,
): Promise<Map<BulkAction, IndexWriteAnswer>> {
  if (actions.length === 0) return new Map();
  const docs = actions.map(({ alias, id }) => ({ _index: alias, _id: id, _source: false }));
  const answer = await client.send({ method: 'POST', path: '/_mget', body: { docs } }, signal);
  const versions = parseAnswer(versionsSchema, bodyOf(answer)).docs;
  return new Map(
    actions.map((action, at) => {
      const stored = versions[at]?._version;
      const { clock } = action.write.document;
      // refused, and yet nothing as new is there: removed in between, so it may be tried again
      return [action, stored === undefined || stored < clock ? unanswered : clockVerdict(stored, clock)];
    }),
  );
}

/** ObjectDocument as it is stored; `words`, and fields of a newer version, are left out. */
export const documentSchema = z.object({
  bucket: z.string(),
  key: z.string(),
  name: z.string().exactOptional(),
  extension: z.string().exactOptional(),
  size: z.number().exactOptional(),
  etag: z.string().exactOptional(),
  version_id: z.string().exactOptional(),
  last_modified: z.string().exactOptional(),
  last_modified_exact: z.boolean().exactOptional(),
  storage_class: z.string().exactOptional(),
  content_type: z.string().exactOptional(),
  user_metadata: textsSchema.exactOptional(),
  tags: textsSchema.exactOptional(),
  expires_at: z.string().exactOptional(),
  deleted: z.boolean(),
  deleted_at: z.string().exactOptional(),
  clock: z.number(),
  settled: z.boolean(),
  source: z.enum(['native', 'eventbridge', 'routed', 'listing', 'check']),
  event_name: z.string().exactOptional(),
  event_time: z.string().exactOptional(),
  indexed_at: z.string(),
});

const mgetSchema = z.object({
  docs: z.array(z.object({ _source: documentSchema.optional(), error: storeErrorSchema.optional() })),
});

function storedDocument({ _source, error }: z.infer<typeof mgetSchema>['docs'][number]): ObjectDocument | undefined {
  if (error === undefined || error.type === 'index_not_found_exception') return _source;
  const { code, reason } = itemFault(500, error);
  throw new FaultError(code, reason);
}

const searchSchema = z.object({ hits: z.object({ hits: z.array(z.object({ _source: documentSchema })) }) });

function searchBody(query: ObjectQuery): Record<string, unknown> {
  const filter = [
    { term: { deleted: false } },
    ...(query.bucket === undefined ? [] : [{ term: { bucket: query.bucket } }]),
    ...(query.key === undefined ? [] : [{ term: { key: query.key } }]),
    ...(query.prefix === undefined || query.prefix === '' ? [] : [{ prefix: { key: query.prefix } }]),
    ...(query.extension === undefined ? [] : [{ term: { extension: query.extension } }]),
    ...(query.words?.whole ?? []).map((word) => ({ term: { words: word } })),
    ...(query.words === undefined ? [] : [{ prefix: { words: query.words.prefix } }]),
  ];
  return {
    size: query.limit,
    query: { bool: { filter } },
    // keywords sort by their UTF-8 bytes; the same order as index.sort, so that a page costs a page
    sort: [{ bucket: 'asc' }, { key: 'asc' }],
    ...(query.after !== undefined && { search_after: [query.after.bucket, query.after.key] }),
    track_total_hits: false,
  };
}

/** Whether the request's index or alias is not there. */
export function isIndexMissing(answer: OpenSearchAnswer): boolean {
  return answer.status === 404 && errorOf(answer).type === 'index_not_found_exception';
}
