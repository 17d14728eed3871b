/** Searches the index. Both stores return the same objects in the same order for the same request. */
import type { z } from 'zod';
import type { searchAnswer, searchQuery, asOf } from '../../api/search.ts';
import type { ObjectDocument } from '../../domain/documents/document.ts';
import { RequestError } from '../../domain/request-error.ts';
import { partsOfPlace, placeOfCursor, type SearchOrder } from '../../domain/search/cursor.ts';
import { overlapping, type Readable, readsAll, readsSome, touches } from '../../domain/access/readable.ts';
import { requireReadable, requireBucket } from '../buckets/list.ts';
import type { ObjectFilter, ObjectIndex, ObjectQuery } from '../ports/object-index.ts';
import type { StateStore } from '../ports/state.ts';
import { readPage } from '../records/pages.ts';
import { listAllRecords } from '../records/stored.ts';
import { checkWeight, filterOf, type FilterRequest, type UnderstoodFilter } from './search-filter.ts';
import { defined } from '../../domain/defined.ts';
import { bucketView } from '../../api/buckets.ts';
import { asksForMore, bucketRecordSchema, type BucketRecord, type EnrichMode } from '../../domain/bucket.ts';
import { bucketSeverities, bucketStatus } from '../../domain/bucket-status.ts';
import { troublesOf, type Processes } from '../buckets/processes.ts';
import { shownTo } from '../buckets/statuses.ts';
import { gapsOf } from '../gaps/stored-gaps.ts';
import type { WithPorts } from '../ports/ports.ts';

export type SearchRequest = z.output<typeof searchQuery>;
type SearchAnswer = z.output<typeof searchAnswer>;
export type Search = (request: SearchRequest, readable: Readable, signal?: AbortSignal) => Promise<SearchAnswer>;

interface SearchDependencies extends WithPorts<'state' | 'clock'> {
  readonly objects: ObjectIndex;
  readonly processes: Pick<Processes, 'troubles'>;
  readonly compareIntervalMs: number;
}

/** More results are not counted: a number above it changes nothing for its reader, and counting all takes as long as reading them. */
const TOTAL_MAX = 10_000;
const NOTHING = { value: 0, exact: true } as const;

/** Creates the search. Throws `request.invalid` for mistakes, `bucket.not-connected` and the store's faults. */
export function createSearch(dependencies: SearchDependencies): Search {
  const { objects, state, clock } = dependencies;
  const asOf = createAsOf(dependencies);

  return async function search(request, readable, signal) {
    const order = orderOf(request);
    const place = request.cursor === undefined ? undefined : placeOfCursor(request.cursor, order);
    // ages are counted from the first page on
    const nowMs = place?.nowMs ?? clock.nowMs();
    const understood = await understand(state, request, { nowMs, readable }, signal);
    checkOrder(order, understood.filter);
    const beside = await besidesOf(request, understood, { readable, signal });
    const { filter } = understood;
    if (filter === null) return { items: [], ...beside };
    const now = understood.relative ? { nowMs } : {};
    const page = await readPage({
      limit: request.limit,
      after: place === undefined ? undefined : partsOfPlace(order, place),
      fetch: (limit, position) => objects.search({ ...filter, ...sorted(order, position), limit }, signal),
      positionOf: (document) => partsOfPlace(order, { ...now, ...placeOfDocument(document, order) }),
    });
    return { ...page, ...beside };
  };

  /** What the answer has besides its items. */
  async function besidesOf(
    request: SearchRequest,
    { filter, understood, foundIn }: NarrowedFilter,
    { readable, signal }: { readonly readable: Readable; readonly signal: AbortSignal | undefined },
  ): Promise<Omit<SearchAnswer, 'items' | 'next'>> {
    return {
      ...(understood !== undefined && { understood }),
      ...(request.as_of === 'true' && { as_of: await asOf([...new Set(foundIn)], readable, signal) }),
      ...(request.total === 'true' && { total: filter === null ? NOTHING : await totalOf(filter, signal) }),
    };
  }

  async function totalOf(filter: ObjectFilter, signal: AbortSignal | undefined): Promise<NonNullable<SearchAnswer['total']>> {
    const count = await objects.count(filter, TOTAL_MAX, signal);
    return { value: Math.min(count, TOTAL_MAX), exact: count <= TOTAL_MAX };
  }
}

/** The filter within what the caller may read; null: nothing of it may be. */
type NarrowedFilter = Omit<UnderstoodFilter, 'filter'> & { readonly filter: ObjectFilter | null };

/**
 * Understands the filter of a request, checks that its buckets are connected and enriched with what
 * it asks for, and narrows it to what the caller may read.
 */
export async function understand(
  state: StateStore,
  request: FilterRequest,
  { nowMs, readable }: { readonly nowMs: number; readonly readable: Readable },
  signal: AbortSignal | undefined,
): Promise<NarrowedFilter> {
  const understood = filterOf(request, nowMs);
  const named = await Promise.all([...new Set(understood.buckets)].map((bucket) => requireReadable(state, { bucket, readable }, signal)));
  await checkEnriched(state, understood, named, readable);
  const filter = narrowed(understood.filter, readable);
  if (filter?.within !== undefined) checkWeight(filter, filter.within.length);
  return { ...understood, filter };
}

/** Without the enrichment, the index does not know whether an object lacks a tag. */
async function checkEnriched(
  state: StateStore,
  { filter, foundIn }: UnderstoodFilter,
  named: readonly BucketRecord[],
  readable: Readable,
): Promise<void> {
  const asked = enrichmentOf(filter);
  if (asked === 'none') return;
  const isFound = ({ bucket }: BucketRecord): boolean => foundIn.includes(bucket);
  const isNamed = ({ bucket }: BucketRecord): boolean => named.some((each) => each.bucket === bucket);
  const searched =
    foundIn.length > 0
      ? named.filter(isFound)
      : (await listAllRecords(state, 'bucket', bucketRecordSchema)).filter((each) => !isNamed(each) && readsSome(readable, each.bucket));
  const lacking = searched.find(({ enrich }) => asksForMore(enrich, asked));
  if (lacking === undefined) return;
  const { bucket } = lacking;
  const [what, set] =
    asked === 'tags'
      ? ['tags', `\`tally bucket set ${bucket} --enrich tags\``]
      : ['metadata', `\`tally bucket set ${bucket} --enrich head\``];
  throw new RequestError(
    'request.invalid',
    `${bucket} is not enriched with ${what}, so the index cannot know: leave it out (-bucket:${bucket}), or enrich it (${set}, then \`tally reindex ${bucket} --fill\`)`,
  );
}

/** What the buckets of a search must be enriched with. */
function enrichmentOf({ where = [] }: ObjectFilter): EnrichMode {
  const kinds = new Set(where.flatMap(({ anyOf }) => anyOf.map(({ kind }) => kind)));
  if (kinds.has('tag')) return 'tags';
  return kinds.has('meta') || kinds.has('type') ? 'head' : 'none';
}

/** The filter within what may be read; null: nothing of it may be. */
function narrowed(filter: ObjectFilter, readable: Readable): ObjectFilter | null {
  if (readable === 'everything') return filter;
  const { bucket, prefix = '' } = filter;
  const within = overlapping(readable, filter);
  const [part] = within;
  if (part === undefined) return null;
  // the filter asks for a part of one that may be read whole
  return part.bucket === bucket && part.prefix === prefix ? filter : { ...filter, within };
}

function orderOf({ sort: by = 'key', order = 'asc' }: Pick<SearchRequest, 'sort' | 'order'>): SearchOrder {
  return { by, order };
}

function checkOrder({ by }: SearchOrder, filter: ObjectFilter | null): void {
  const deleted = filter?.deleted === true;
  if (by === 'key' || filter === null || deleted === (by === 'deleted_at')) return;
  throw new RequestError('request.invalid', deleted ? `sort: deleted objects have no ${by}` : 'sort: deleted_at only with deleted=true');
}

function sorted(order: SearchOrder, position: readonly string[] | undefined): Pick<ObjectQuery, 'sort' | 'after'> {
  const isDefault = order.by === 'key' && order.order === 'asc';
  return { ...(!isDefault && { sort: order }), ...(position !== undefined && { after: afterOf(position) }) };
}

/** The place of these parts, which are those of a checked cursor or of a document. */
function afterOf(parts: readonly string[]): NonNullable<ObjectQuery['after']> {
  const [, , value = '', bucket = '', key = ''] = parts;
  return { bucket, key, ...(value !== '' && { value: Number(value) }) };
}

function placeOfDocument(
  document: ObjectDocument,
  { by }: SearchOrder,
): { readonly bucket: string; readonly key: string; readonly value?: number } {
  const { bucket, key } = document;
  if (by === 'key') return { bucket, key };
  const value = document[by];
  return { bucket, key, value: typeof value === 'string' ? Date.parse(value) : (value ?? -1) };
}

/** How far the index of a bucket can be relied on now: shown above the results of a search. */

type AsOf = z.output<typeof asOf>;

/** More buckets are not described: that is what fits above a result. */
const BUCKETS_MAX = 8;
const PREFIXES_MAX = 3;

/** Waits are noted once a minute. An older note says nothing about now: since then no event has come from the queue. */
const NOTE_AGE_MAX_MS = 180_000;

/** How far events are behind, by the queue in which they waited longest; undefined: not noticeably. */
function behindMs({ eventQueues = [] }: Pick<BucketRecord, 'eventQueues'>, nowMs: number): number | undefined {
  const waits = eventQueues.flatMap(({ atMs, waitedMs }) => (waitedMs !== undefined && nowMs - atMs <= NOTE_AGE_MAX_MS ? waitedMs : []));
  return waits.length === 0 ? undefined : Math.round(Math.max(...waits));
}

/** Creates the function for the buckets that a search names. */
export function createAsOf({ state, clock, processes, compareIntervalMs }: Omit<SearchDependencies, 'objects'>) {
  async function asOfBucket(bucket: string, readable: Readable, signal: AbortSignal | undefined): Promise<AsOf> {
    const nowMs = clock.nowMs();
    const [record, troubles, all] = await Promise.all([
      requireBucket(state, bucket, signal),
      processes.troubles(),
      gapsOf(state, bucket, signal),
    ]);
    const gaps = all.filter((gap) => touches(readable, gap));
    const { status, last_event_at, last_compared_at } = bucketView(
      record,
      shownTo(readable, bucketStatus({ record, ...troublesOf(troubles, record, nowMs), gaps, nowMs, compareIntervalMs })),
    );
    const times = defined({ last_event_at, last_compared_at, behind_ms: behindMs(record, nowMs) });
    return {
      bucket,
      status,
      // they are about keys of the whole bucket
      ...(readsAll(readable, { bucket, prefix: '' }) && times),
      gaps: gaps.length,
      gap_prefixes: [...new Set(gaps.map(({ prefix }) => prefix ?? ''))].slice(0, PREFIXES_MAX),
    };
  }

  return async function asOfBuckets(buckets: readonly string[], readable: Readable, signal?: AbortSignal): Promise<readonly AsOf[]> {
    const all = await Promise.all(buckets.map((bucket) => asOfBucket(bucket, readable, signal)));
    // what may differ is never among those that are left out
    const rank = ({ status }: AsOf): number => bucketSeverities.indexOf(status.severity);
    return all.toSorted((a, b) => rank(a) - rank(b)).slice(0, BUCKETS_MAX);
  };
}

/** Default: a day is what people look for when something changed. */
const SINCE_MS = 86_400_000;

interface ChangesRequest {
  readonly bucket: string;
  readonly prefix?: string;
  readonly since?: string;
  readonly limit: number;
}

interface ChangesDependencies extends WithPorts<'state' | 'clock'> {
  readonly objects: Pick<ObjectIndex, 'changes'>;
}

/** Lists what changed last. Throws `bucket.not-connected` and the store's faults. */
export async function listChanges(
  { state, objects, clock }: ChangesDependencies,
  { bucket, prefix = '', since, limit }: ChangesRequest,
  readable: Readable,
  signal?: AbortSignal,
): Promise<readonly ObjectDocument[]> {
  await requireReadable(state, { bucket, readable }, signal);
  const page = { prefix, sinceMs: since === undefined ? clock.nowMs() - SINCE_MS : Date.parse(since), limit };
  if (readable === 'everything') return objects.changes(bucket, page, signal);
  const within = overlapping(readable, { bucket, prefix });
  return within.length === 0 ? [] : objects.changes(bucket, { ...page, within }, signal);
}
