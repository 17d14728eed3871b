/** The names of an installation's indices and aliases in OpenSearch (one prefix), and how they are created. */
import { bucketSlug } from '../../records/bucket.ts';
import { cachingLatest } from '../../base/latest.ts';
import { z } from 'zod';
import { FaultError } from '../../base/fault.ts';
import type { Store } from '../store.ts';
import { createOpenSearchClient, type ClientOptions, type OpenSearchClient } from './client.ts';
import { bodyOf, errorOf, isIndexMissing, parseAnswer, requestFault } from './faults.ts';

export interface IndexNames {
  /** The index that contains a bucket's documents. Documents are written and read only through its alias. */
  objectsIndex(bucket: string): string;
  /** The alias of one bucket's index: with `require_alias` a write can never create an index by accident. */
  objectsAlias(bucket: string): string;
  /** The live documents of all buckets: an alias with the filter `deleted: false`. */
  readonly liveAlias: string;
  /** The aliases of all buckets. An index that Tally did not create, such as a copy or a restore, has none. A prefix may not contain `-write`. */
  readonly bucketAliases: string;
  /** The alias through which state is read and written, so that `require_alias` works. */
  readonly state: string;
  readonly stateIndex: string;
  /** The index of the audit of one month (`2026.11`). */
  auditIndex(month: string): string;
  /** The alias through which its records are written, so that `require_alias` works. */
  auditAlias(month: string): string;
  /** Matches the indices of the audit of this prefix only, because a prefix may not contain `-audit`. */
  readonly auditPattern: string;
}

export function indexNames(prefix: string): IndexNames {
  return {
    objectsIndex: (bucket) => `${prefix}-objects-${bucketSlug(bucket)}`,
    objectsAlias: cachingLatest((bucket: string) => `${prefix}-write-${bucketSlug(bucket)}`),
    liveAlias: `${prefix}-objects`,
    bucketAliases: `${prefix}-write-*`,
    state: `${prefix}-state`,
    stateIndex: `${prefix}-state-1`,
    auditIndex: (month) => `${prefix}-audit-${month}`,
    auditAlias: (month) => `${prefix}-audit-write-${month}`,
    auditPattern: `${prefix}-audit-*`,
  };
}

// ── the state index ──────────────────────────────────────────────────────────────────────────────────────────────────

interface SetupTarget {
  readonly connection: ClientOptions;
  readonly client: OpenSearchClient;
  readonly names: IndexNames;
  /** Settings and mappings of the state index. */
  readonly newIndex: { readonly mappings: { readonly _meta: { readonly schema: number } } };
}

const indicesSchema = z.record(
  z.string(),
  z.object({ mappings: z.object({ _meta: z.object({ schema: z.number() }).catch({ schema: 0 }) }).optional() }),
);

/**
 * Makes the state index, unless the nodes are not all of one cluster. What another version has prepared is refused and left as it is, by
 * the number of its schema (`_meta.schema` in config/opensearch/state.json, which is raised with each change of a record, a document or
 * an index). It needs the permissions of the object index on the indices of this prefix.
 */
export function createIndexSetup({ connection, client, names, newIndex }: SetupTarget): Store['setup'] {
  return {
    async prepare(signal) {
      await requireOneCluster(connection, signal);
      const read = { method: 'GET', path: `/${names.state}`, query: { filter_path: '*.aliases,*.mappings._meta' } } as const;
      let answer = await client.send(read, signal);
      if (isIndexMissing(answer)) {
        await createAliased(client, { index: names.stateIndex, alias: names.state, definition: newIndex }, signal);
        answer = await client.send(read, signal);
      }
      const wanted = newIndex.mappings._meta.schema;
      for (const [index, { mappings }] of Object.entries(parseAnswer(indicesSchema, bodyOf(answer)))) {
        const schema = mappings?._meta.schema ?? 0;
        if (schema === wanted) continue;
        const reason = `the state index ${index} has schema ${schema}, and this version of Tally reads schema ${wanted}`;
        throw new FaultError('index.other-version', reason);
      }
    },
  };
}

const rootSchema = z.object({ cluster_uuid: z.string() });

/**
 * Throws `index.foreign-node` if two nodes tell the ids of different clusters: half of the writes would go to each. A node that does
 * not answer, or whose role does not permit `cluster:monitor/main`, is not compared.
 */
async function requireOneCluster(connection: ClientOptions, signal?: AbortSignal): Promise<void> {
  const { urls } = connection;
  if (urls.length === 1) return;
  const clusters = await Promise.all(
    urls.map(async (url) => {
      const node = createOpenSearchClient({ ...connection, urls: [url] });
      const answer = await node.send({ method: 'GET', path: '/' }, signal).catch(() => undefined);
      await node.close();
      return rootSchema.safeParse(answer?.body).data?.cluster_uuid;
    }),
  );
  signal?.throwIfAborted();
  const ids = new Set(clusters.filter((id) => id !== undefined));
  if (ids.size <= 1) return;
  const told = urls.map((url, at) => `${new URL(url).host}: ${clusters[at] ?? 'no answer'}`);
  throw new FaultError('index.foreign-node', `the nodes belong to different clusters (${told.join(', ')})`);
}

/**
 * Makes an index behind an alias, with these settings and mappings. An index of that name that exists keeps its own and is given the
 * alias: another worker made it first, or its alias was deleted. A write to the alias with `require_alias` never makes an index by
 * itself, which would have neither.
 */
export async function createAliased(
  client: OpenSearchClient,
  { index, alias, definition }: { readonly index: string; readonly alias: string; readonly definition: Readonly<Record<string, unknown>> },
  signal?: AbortSignal,
): Promise<void> {
  const body = { ...definition, aliases: { [alias]: {} } };
  const created = await client.send({ method: 'PUT', path: `/${index}`, body, changesCluster: true }, signal);
  if (created.status === 200) return;
  if (errorOf(created).type !== 'resource_already_exists_exception') throw requestFault(created);
  const actions = [{ add: { index, alias } }];
  bodyOf(await client.send({ method: 'POST', path: '/_aliases', body: { actions }, changesCluster: true }, signal));
}
