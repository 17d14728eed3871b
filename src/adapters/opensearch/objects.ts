import { z } from 'zod';
import type { ObjectDocument } from '../../domain/documents/document.ts';
import { documentId, objectDocumentSchema } from '../../domain/documents/document.ts';
import { FaultError, faultOf } from '../../domain/fault.ts';
import type { Clock } from '../../pipeline/ports/clock.ts';
import type { IndexWriteAnswer, ObjectIndex } from '../../pipeline/ports/object-index.ts';
import type { BulkAction, BulkVerdict } from './bulk.ts';
import { BULK_FILTER, bulkAction, bulkVerdicts, clockVerdict, linesOf } from './bulk.ts';
import type { OpenSearchAnswer, OpenSearchClient } from './client.ts';
import { bodyOf, errorOf, isIndexMissing, itemFault, parseAnswer, requestFault, storeErrorSchema } from './faults.ts';
import type { IndexNames } from './names.ts';
import { createBucketProbe } from './probe.ts';
import { filterQuery, partsQuery, sortOf } from './query.ts';
import { createRejectionJudge } from './rejections.ts';
import { createSearchSender } from './searching.ts';

interface ObjectsDependencies {
  readonly client: OpenSearchClient;
  readonly names: IndexNames;
  /** The body of the request that creates an object index: settings and mappings. */
  readonly newIndex: Readonly<Record<string, unknown>>;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly probe: ObjectIndex['probe'];
}

/**
 * Creates the object index on OpenSearch. It needs the permissions read, write, create_index, delete_index and manage_aliases
 * on its indices, and composite operations (bulk, mget) on the cluster.
 */
export function createObjectIndex({ client, names, newIndex, clock, probe }: ObjectsDependencies): ObjectIndex {
  const sendActions = createBulkSender(client);
  const judgeRejections = createRejectionJudge(clock);
  const sendSearch = createSearchSender(client, names);

  return {
    async write(writes, signal) {
      signal?.throwIfAborted();
      const prepared = writes.map((write) => bulkAction(write, names));
      const actions = prepared.filter((action) => 'write' in action);
      const verdicts = judgeRejections(actions, await sendActions(actions, signal));
      if (actions.length === writes.length && verdicts.every(({ kind }) => kind === 'written')) return verdicts.map(answerOf);
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
      const { docs } = parseAnswer(mgetSchema, bodyOf(answer, 'index'));
      if (docs.length !== keys.length) parseAnswer(z.array(z.unknown()).length(keys.length), docs);
      return docs.map(storedDocument);
    },

    async search(query, signal) {
      const body = { size: query.limit, query: filterQuery(query), ...sortOf(query), track_total_hits: false };
      const found = await sendSearch(query, body, signal);
      return found === undefined ? [] : parseAnswer(searchSchema, found).hits.hits.map((hit) => hit._source);
    },

    async count(filter, max, signal) {
      const found = await sendSearch(filter, { size: 0, query: filterQuery(filter), track_total_hits: max + 1 }, signal);
      return found === undefined ? 0 : Math.min(max + 1, parseAnswer(countSchema, found).hits.total.value);
    },

    async changes(bucket, { prefix, within, sinceMs, limit }, signal) {
      const since = { range: { indexed_at: { gt: new Date(sinceMs).toISOString() } } };
      const filter = [
        since,
        ...(prefix === '' ? [] : [{ prefix: { key: prefix } }]),
        ...(within === undefined ? [] : [partsQuery(within, 'key')]),
      ];
      const sort = [{ indexed_at: 'desc' }, { key: 'asc' }];
      const found = await sendSearch({ bucket }, { size: limit, query: { bool: { filter } }, sort, track_total_hits: false }, signal);
      return found === undefined ? [] : parseAnswer(searchSchema, found).hits.hits.map((hit) => hit._source);
    },

    async createBucket(bucket, signal) {
      const index = names.objectsIndex(bucket);
      const aliases = { [names.objectsAlias(bucket)]: {}, [names.liveAlias]: LIVE_ONLY };
      const actions = Object.entries(aliases).map(([alias, filter]) => ({ add: { index, alias, ...filter } }));
      // tried first, because for an existing index it needs neither the permission to create indices nor a disk below its watermark
      const aliased = await client.send({ method: 'POST', path: '/_aliases', body: { actions }, changesCluster: true }, signal);
      if (!isIndexMissing(aliased)) {
        bodyOf(aliased);
        return;
      }
      const created = await client.send({ method: 'PUT', path: `/${index}`, body: { ...newIndex, aliases }, changesCluster: true }, signal);
      // another worker created the index first, with its aliases
      if (errorOf(created).type !== 'resource_already_exists_exception') bodyOf(created);
    },

    async identities(buckets, signal) {
      const [only = ''] = buckets;
      const answer = await client.send(
        {
          method: 'GET',
          path: `/${buckets.length === 1 ? names.objectsAlias(only) : names.bucketAliases}`,
          // a restore over a closed index keeps its uuid, and gives it another history
          query: { filter_path: '*.aliases,*.settings.index.uuid,*.settings.index.history.uuid', expand_wildcards: 'open,closed' },
        },
        signal,
      );
      if (isIndexMissing(answer)) return buckets.map(() => undefined);
      const found = Object.values(parseAnswer(identitiesSchema, bodyOf(answer)));
      const byAlias = new Map<string, string[]>();
      for (const { aliases, settings } of found) {
        const { uuid, history } = settings.index;
        for (const alias of Object.keys(aliases)) byAlias.set(alias, [...(byAlias.get(alias) ?? []), `${uuid}.${history?.uuid ?? ''}`]);
      }
      return buckets.map((bucket) => byAlias.get(names.objectsAlias(bucket))?.toSorted().join());
    },

    async removeBucket(bucket, signal) {
      const answer = await client.send({ method: 'DELETE', path: `/${names.objectsIndex(bucket)}`, changesCluster: true }, signal);
      if (!isIndexMissing(answer)) bodyOf(answer);
    },

    probe,
    probeBucket: createBucketProbe(client, names),
  };
}

const LIVE_ONLY = { filter: { term: { deleted: false } } };
/** Leaves out id and index, because documents are in the order of the request. `found` is always present, so that the answer has one entry per key. */
const STORED_ONLY = { filter_path: 'docs.found,docs._source,docs.error' };

const unanswered: IndexWriteAnswer = { kind: 'fault', code: 'internal.unexpected', reason: 'the answer contains no result for this write' };

function answerOf(verdict: BulkVerdict | undefined): IndexWriteAnswer {
  return verdict === undefined || verdict.kind === 'undecided' ? unanswered : verdict;
}

/**
 * Sends actions as one request. It halves the request as long as it is too large for the server (413) or the server cannot
 * parse it (400, which should be impossible; halving limits the failure to one action). An index without its primary shard
 * delays the answer by at most the time-out of 5 s.
 */
function createBulkSender(client: OpenSearchClient) {
  const query = { require_alias: true, timeout: '5s', filter_path: BULK_FILTER };

  return async function sendActions(actions: readonly BulkAction[], signal?: AbortSignal): Promise<readonly BulkVerdict[]> {
    if (actions.length === 0) return [];
    const lines = actions.map(linesOf).join('');
    // a repeat at the same clock is accepted, or answered `equal` with the content that is stored
    const answer = await client.send({ method: 'POST', path: '/_bulk', repeatable: true, query, lines }, signal);
    if (answer.status === 200) return bulkVerdicts(actions, answer.body);
    if (answer.status !== 413 && answer.status !== 400) throw requestFault(answer);
    if (actions.length === 1) return [refusedAlone(answer)];
    const middle = Math.ceil(actions.length / 2);
    const first = await sendActions(actions.slice(0, middle), signal);
    const second = await sendActions(actions.slice(middle), signal).catch((error: unknown) => {
      if (!(error instanceof FaultError)) throw error;
      // the first half is written, so its answers must not be lost when the second half fails
      return actions.slice(middle).map(() => ({ kind: 'fault' as const, ...faultOf(error) }));
    });
    return [...first, ...second];
  };
}

function refusedAlone(answer: OpenSearchAnswer): IndexWriteAnswer {
  if (answer.status === 413)
    return { kind: 'fault', code: 'index.rejected', reason: '413: the document is larger than the server accepts' };
  return { kind: 'fault', code: 'internal.unexpected', reason: requestFault(answer).reason };
}

const versionsSchema = z.object({ docs: z.array(z.object({ _version: z.number().optional() })) });

/** Decides the undecided actions by reading the stored clocks. */
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
      // the write was refused, but no document with such a clock is stored now: it was removed meanwhile, so the write may be tried again
      return [action, stored === undefined || stored < clock ? unanswered : clockVerdict(stored, clock)];
    }),
  );
}

const mgetSchema = z.object({
  docs: z.array(z.object({ _source: objectDocumentSchema.optional(), error: storeErrorSchema.optional() })),
});

function storedDocument({ _source, error }: z.infer<typeof mgetSchema>['docs'][number]): ObjectDocument | undefined {
  if (error === undefined || error.type === 'index_not_found_exception') return _source;
  const { code, reason } = itemFault(500, error);
  throw new FaultError(code, reason);
}

const identitiesSchema = z.record(
  z.string(),
  z.object({
    aliases: z.record(z.string(), z.unknown()).default({}),
    settings: z.object({ index: z.object({ uuid: z.string(), history: z.object({ uuid: z.string() }).optional() }) }),
  }),
);

const countSchema = z.object({ hits: z.object({ total: z.object({ value: z.number() }) }) });
const searchSchema = z.object({ hits: z.object({ hits: z.array(z.object({ _source: objectDocumentSchema })) }) });
