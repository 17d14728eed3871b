/**
 * What was written to a bucket's index, in the order of the writes, by the sequence numbers of its shards. A document has the number
 * of its last write (`_seq_no`). A shard executes writes at the same time, and what it has executed may still be lost with its primary,
 * so each page is read so:
 *
 *   primary terms ─► checkpoint ─► refresh ─► search up to the checkpoint ─► every write that the search could see is replicated ─► same terms
 *
 * - A write up to the global checkpoint was executed by every copy that may become the primary, before the refresh began: the search
 *   sees it. A number above the checkpoint is left to the next page.
 * - A write above it may hide the document's earlier one, which would return if the primary died with the later one. The page counts
 *   only once the checkpoint has reached all that was executed by then, and no primary has changed meanwhile (test/store/opensearch/changes.test.ts).
 * - What would reuse numbers otherwise (a restore, a stale or empty primary that an operator allocates, a new index) gives the shard
 *   another history uuid, as shrink, split and reindex give their index.
 */
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { FaultError } from '../../base/fault.ts';
import { objectDocumentSchema, type ObjectDocument } from '../../ordering/document.ts';
import type { Position } from '../../records/position.ts';
import { overlapping } from '../readable.rules.ts';
import type { Clock } from '../../process/clock.ts';
import type { Changes, ChangesPage, ObjectIndex } from '../store.ts';
import type { OpenSearchClient } from './client.ts';
import { bodyOf, isIndexMissing, parseAnswer } from './faults.ts';
import { partsQuery, documentsOf, type SendSearch } from './search.ts';
import type { IndexNames } from './setup.ts';

const copySchema = z.object({
  routing: z.object({ state: z.string(), primary: z.boolean() }),
  seq_no: z.object({ global_checkpoint: z.number(), max_seq_no: z.number() }).optional(),
  commit: z.object({ user_data: z.object({ history_uuid: z.string() }) }).optional(),
});
const statsSchema = z.object({
  indices: z.record(z.string(), z.object({ shards: z.record(z.string(), z.array(copySchema)) })).default({}),
});
const SERVING: ReadonlySet<string> = new Set(['STARTED', 'RELOCATING']);

const STATS = {
  level: 'shards',
  filter_path: 'indices.*.shards.*.routing,indices.*.shards.*.seq_no,indices.*.shards.*.commit.user_data.history_uuid',
};

interface Shard {
  readonly history: string;
  /** Its global checkpoint, as its primary knows it. */
  readonly at: number;
  /** The highest number that its primary has executed. */
  readonly max: number;
}
type Shards = ReadonlyMap<string, Shard>;

/** The shards behind the alias; undefined if there is no index. A shard without its primary is left out. */
async function shardsOf(client: OpenSearchClient, alias: string, signal?: AbortSignal): Promise<Shards | undefined> {
  const answer = await client.send({ method: 'GET', path: `/${alias}/_stats/docs`, query: STATS }, signal);
  if (isIndexMissing(answer)) return undefined;
  const [index, ...others] = Object.values(parseAnswer(statsSchema, bodyOf(answer, 'index')).indices);
  if (others.length > 0) throw new FaultError('bucket.index-misconfigured', `${alias} has ${others.length + 1} indices`);
  const found = Object.entries(index?.shards ?? {}).map(([shard, copies]) => [shard, primaryOf(copies)] as const);
  return new Map(found.flatMap(([shard, primary]) => (primary === undefined ? [] : [[shard, primary]])));
}

function primaryOf(copies: readonly z.infer<typeof copySchema>[]): Shard | undefined {
  const primary = copies.find(({ routing }) => routing.primary && SERVING.has(routing.state));
  if (primary?.seq_no === undefined || primary.commit === undefined) return undefined;
  const { global_checkpoint: at, max_seq_no: max } = primary.seq_no;
  return { history: primary.commit.user_data.history_uuid, at, max };
}

/** The position at which each shard's global checkpoint stands; undefined if there is no index. */
export async function positionOf(client: OpenSearchClient, alias: string, signal?: AbortSignal): Promise<Position | undefined> {
  const shards = await shardsOf(client, alias, signal);
  return shards && Object.fromEntries([...shards].map(([shard, { history, at }]) => [shard, { history, at }]));
}

const pageSchema = z.object({
  hits: z.object({ hits: z.array(z.object({ _source: objectDocumentSchema, sort: z.tuple([z.number()]) })) }),
});

const indexTermsSchema = z.record(z.string(), z.object({ primary_terms: z.record(z.string(), z.number()) }));
const termsSchema = z.object({ metadata: z.object({ indices: indexTermsSchema }).optional() });
type Terms = z.infer<typeof indexTermsSchema>;

/** The terms of the primaries, by index and shard: a term rises with each change of a shard's primary, and with each of its starts. */
async function termsOf(client: OpenSearchClient, alias: string, signal: AbortSignal | undefined): Promise<Terms> {
  const query = { filter_path: 'metadata.indices.*.primary_terms' };
  const answer = await client.send({ method: 'GET', path: `/_cluster/state/metadata/${alias}`, query }, signal);
  return parseAnswer(termsSchema, bodyOf(answer, 'index')).metadata?.indices ?? {};
}

/** How often it is asked whether what was executed is replicated, and the pause between: a bulk request takes less, unless a copy is in trouble. */
const REPLICATED_ASKS_MAX = 20;
const REPLICATED_PAUSE_MS = 50;
/** How often a page is read because a primary changed meanwhile. */
const READS_MAX = 3;

interface ChangesParts {
  readonly client: OpenSearchClient;
  readonly clock: Pick<Clock, 'sleep'>;
  readonly names: IndexNames;
  readonly sendSearch: SendSearch;
  readonly refresh: (bucket: string, signal?: AbortSignal) => Promise<void>;
}

/** Creates the reads of changes. They need the permissions `indices:monitor/stats` and `cluster:monitor/state` besides those of reading and refreshing. */
export function createChanges(parts: ChangesParts): Pick<ObjectIndex, 'changes' | 'latest' | 'position'> {
  const { client, clock, names, sendSearch, refresh } = parts;

  return {
    async changes(bucket, page, signal) {
      const alias = names.objectsAlias(bucket);
      for (let reads = 0; reads < READS_MAX; reads += 1) {
        const terms = await termsOf(client, alias, signal);
        const end = await shardsOf(client, alias, signal);
        if (end === undefined) return Object.keys(page.after).length === 0 ? EMPTY : 'lost';
        requireShards(alias, terms, end);
        if (isLost(page.after, end)) return 'lost';
        const found = await readPage(bucket, page, end, signal);
        if (found.isIdle || ((await isReplicated(alias, end, signal)) && isDeepStrictEqual(await termsOf(client, alias, signal), terms)))
          return found.changes;
      }
      throw new FaultError('bucket.index-unavailable', `the primary shards of ${alias} change, or a copy does not follow its primary`);
    },

    async latest(bucket, { limit, ...page }, signal) {
      const query = { bool: { filter: partsOf(bucket, page), must_not: UNTOLD } };
      return documentsOf(
        await sendSearch({ bucket }, { size: limit, query, sort: [{ _seq_no: 'desc' }], track_total_hits: false }, signal),
      );
    },

    position: async (bucket, signal) => (await positionOf(client, names.objectsAlias(bucket), signal)) ?? {},
  };

  async function readPage(
    bucket: string,
    { after, ...page }: ChangesPage & { readonly after: Position },
    end: Shards,
    signal: AbortSignal | undefined,
  ): Promise<{ readonly changes: Changes; readonly isIdle: boolean }> {
    const places = [...end].map(([shard, { history, at: upTo }]) => ({ shard, history, upTo, at: after[shard]?.at ?? NOTHING_WRITTEN }));
    const behind = places.filter(({ at, upTo }) => at < upTo);
    if (behind.length > 0) await refresh(bucket, signal);
    const documents: ObjectDocument[] = [];
    for (const place of behind) {
      const limit = page.limit - documents.length;
      if (limit === 0) break;
      const found = await readShard(names.objectsAlias(bucket), place, { ...page, bucket, limit }, signal);
      documents.push(...found.map(({ document }) => document));
      place.at = found.length < limit ? place.upTo : (found.at(-1)?.at ?? place.upTo);
    }
    const position = Object.fromEntries(places.map(({ shard, history, at }) => [shard, { history, at }]));
    const more = behind.some(({ at, upTo }) => at < upTo);
    return { changes: { documents, position, more }, isIdle: behind.length === 0 };
  }

  /** Whether all that the primaries have executed by now is replicated, soon. One that does not answer may die with what the page saw. */
  async function isReplicated(alias: string, read: Shards, signal: AbortSignal | undefined): Promise<boolean> {
    const executed = await shardsOf(client, alias, signal);
    for (let asks = 0, now = executed; asks < REPLICATED_ASKS_MAX; asks += 1) {
      if ([...read.keys()].every((shard) => (now?.get(shard)?.at ?? NOTHING_WRITTEN) >= (executed?.get(shard)?.max ?? Infinity)))
        return true;
      await clock.sleep(REPLICATED_PAUSE_MS, signal);
      now = await shardsOf(client, alias, signal);
    }
    return false;
  }

  /** The documents whose last write is after the place, and not after its end. */
  async function readShard(
    alias: string,
    { shard, at: from, upTo }: { readonly shard: string; readonly at: number; readonly upTo: number },
    { bucket, limit, ...page }: ChangesPage & { readonly bucket: string },
    signal: AbortSignal | undefined,
  ) {
    const filter = [{ range: { _seq_no: { gt: from, lte: upTo } } }, ...partsOf(bucket, page)];
    const body = { size: limit, query: { bool: { filter, must_not: UNTOLD } }, sort: [{ _seq_no: 'asc' }], track_total_hits: false };
    const query = { allow_partial_search_results: false, preference: `_shards:${shard}|_primary` };
    const answer = await client.send({ method: 'POST', path: `/${alias}/_search`, query, body }, signal);
    return parseAnswer(pageSchema, bodyOf(answer, 'index')).hits.hits.map(({ _source, sort: [at] }) => ({ document: _source, at }));
  }
}

/** The number before the first one. */
const NOTHING_WRITTEN = -1;
const EMPTY = { documents: [], position: {}, more: false };
/** The tombstones of keys that the index never held (bulk.ts). */
const UNTOLD = { term: { never_held: true } };

/** A replica that has just become the primary may know a lower checkpoint, but has executed every write up to the one it does not know. */
function isLost(after: Position, end: Shards): boolean {
  return Object.entries(after).some(([shard, { history, at }]) => {
    const own = end.get(shard);
    return own?.history !== history || own.max < at;
  });
}

/** Without one of them, a page could seem to be the last one. */
function requireShards(alias: string, terms: Terms, end: Shards): void {
  const shards = Object.values(terms).flatMap(({ primary_terms }) => Object.keys(primary_terms));
  const missing = shards.find((shard) => !end.has(shard));
  if (missing !== undefined) throw new FaultError('bucket.index-unavailable', `shard ${missing} of ${alias} has no primary`);
}

function partsOf(bucket: string, { prefix, within }: Omit<ChangesPage, 'limit'>): readonly Readonly<Record<string, unknown>>[] {
  const parts = within === undefined ? [{ bucket, prefix }] : overlapping(within, { bucket, prefix });
  return parts.length === 1 && parts[0]?.prefix === '' ? [] : [partsQuery(parts, 'key')];
}
