import { z } from 'zod';
import { type ObjectDocument, documentId, objectDocumentSchema } from '../../ordering/document.ts';
import { FaultError } from '../../base/fault.ts';
import type { Clock } from '../../process/clock.ts';
import type { ObjectIndex, ObjectScan } from '../store.ts';
import { createBulkWrite } from './bulk.ts';
import { createChanges } from './changes.ts';
import type { OpenSearchClient } from './client.ts';
import { bodyOf, errorOf, isIndexMissing, itemFault, parseAnswer, storeErrorSchema } from './faults.ts';
import type { IndexNames } from './setup.ts';
import { filterQuery, sortOf, createSearchSender, documentsOf } from './search.ts';

interface ObjectsDependencies {
  readonly client: OpenSearchClient;
  readonly names: IndexNames;
  /** The body of the request that creates an object index: settings and mappings. */
  readonly newIndex: Readonly<Record<string, unknown>>;
  readonly clock: Pick<Clock, 'monotonicMs' | 'sleep'>;
  readonly probe: ObjectIndex['probe'];
  readonly refresh: ObjectScan['refresh'];
}

/**
 * Creates the object index on OpenSearch. It needs the permissions read, write, create_index, delete_index and manage_aliases
 * on its indices, and composite operations (bulk, mget) on the cluster.
 */
export function createObjectIndex({ client, names, newIndex, clock, probe, refresh }: ObjectsDependencies): ObjectIndex {
  const sendSearch = createSearchSender(client, names);

  /** The indices behind a bucket's alias. A restored or copied one has a different name. */
  async function indicesOf(bucket: string, signal: AbortSignal | undefined): Promise<readonly string[]> {
    const query = { filter_path: '*.aliases' };
    const answer = await client.send({ method: 'GET', path: `/${names.objectsAlias(bucket)}`, query }, signal);
    if (isIndexMissing(answer)) return [];
    return Object.keys(parseAnswer(indicesSchema, bodyOf(answer)));
  }

  return {
    write: createBulkWrite({ client, names, clock }),

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
      return documentsOf(found);
    },

    async count(filter, max, signal) {
      const found = await sendSearch(filter, { size: 0, query: filterQuery(filter), track_total_hits: max + 1 }, signal);
      return found === undefined ? 0 : Math.min(max + 1, parseAnswer(countSchema, found).hits.total.value);
    },

    ...createChanges({ client, clock, names, sendSearch, refresh }),

    async createBucket(bucket, signal) {
      const [index = names.objectsIndex(bucket)] = await indicesOf(bucket, signal);
      const aliases = { [names.objectsAlias(bucket)]: {}, [names.liveAlias]: LIVE_ONLY };
      const actions = Object.entries(aliases).map(([alias, filter]) => ({ add: { index, alias, ...filter } }));
      // tried first, because for an existing index it needs neither the permission to create indices nor a disk below its watermark
      const aliased = await client.send({ method: 'POST', path: '/_aliases', body: { actions }, changesCluster: true }, signal);
      if (!isIndexMissing(aliased)) {
        bodyOf(aliased);
        return;
      }
      const created = await client.send({ method: 'PUT', path: `/${index}`, body: { ...newIndex, aliases }, changesCluster: true }, signal);
      // another worker was first to create the index, with its aliases
      if (errorOf(created).type !== 'resource_already_exists_exception') bodyOf(created);
    },

    async identities(buckets, signal) {
      const [only = ''] = buckets;
      const answer = await client.send(
        {
          method: 'GET',
          path: `/${buckets.length === 1 ? names.objectsAlias(only) : names.bucketAliases}`,
          // a restore over a closed index keeps its uuid but gives it another history
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
      const behind = await indicesOf(bucket, signal);
      const own = behind.filter((index) => index.startsWith(`${names.liveAlias}-`));
      for (const index of new Set([names.objectsIndex(bucket), ...own])) {
        const answer = await client.send({ method: 'DELETE', path: `/${index}`, changesCluster: true }, signal);
        if (!isIndexMissing(answer)) bodyOf(answer);
      }
    },

    probe,
    probeBucket: (bucket, signal) => probeBucket(client, names, bucket, signal),
  };
}

const LIVE_ONLY = { filter: { term: { deleted: false } } };
/** Leaves out id and index, because documents are in the order of the request. `found` is always present, so that the answer has one entry per key. */
const STORED_ONLY = { filter_path: 'docs.found,docs._source,docs.error' };

const mgetSchema = z.object({
  docs: z.array(z.object({ _source: objectDocumentSchema.optional(), error: storeErrorSchema.optional() })),
});

function storedDocument({ _source, error }: z.infer<typeof mgetSchema>['docs'][number]): ObjectDocument | undefined {
  if (error === undefined || error.type === 'index_not_found_exception') return _source;
  const { code, reason } = itemFault(500, error);
  throw new FaultError(code, reason);
}

const indicesSchema = z.record(z.string(), z.unknown());

const identitiesSchema = z.record(
  z.string(),
  z.object({
    aliases: z.record(z.string(), z.unknown()).default({}),
    settings: z.object({ index: z.object({ uuid: z.string(), history: z.object({ uuid: z.string() }).optional() }) }),
  }),
);

const countSchema = z.object({ hits: z.object({ total: z.object({ value: z.number() }) }) });

const conflictSchema = z.object({
  items: z.tuple([z.object({ index: z.object({ status: z.number(), error: storeErrorSchema.optional() }) })]),
});
/** A sequence number that no document reaches, so that the conditional write below ends in a conflict and changes nothing. */
const NEVER = Number.MAX_SAFE_INTEGER;

/**
 * Probes one bucket: a conditional write to the alias of the bucket's index that can only end in a conflict. Its
 * id is none that a key has. The shard refuses it after every check of a real write and before anything is stored, so it leaves no document, no
 * tombstone and no sequence number behind.
 */
async function probeBucket(client: OpenSearchClient, names: IndexNames, bucket: string, signal?: AbortSignal): Promise<void> {
  const action = { index: { _index: names.objectsAlias(bucket), _id: 'probe', if_seq_no: NEVER, if_primary_term: 1 } };
  const answer = await client.send(
    {
      method: 'POST',
      path: '/_bulk',
      query: { require_alias: true, timeout: '5s' },
      lines: `${JSON.stringify(action)}\n{}\n`,
    },
    signal,
  );
  const { status, error } = parseAnswer(conflictSchema, bodyOf(answer)).items[0].index;
  if (status === 409) return;
  const { code, reason } = itemFault(status, error ?? { type: 'no_error' });
  throw new FaultError(code, reason);
}
