import { defined } from '../../domain/defined.ts';
import { z } from 'zod';
import { compareKeys, firstAfterPrefix } from '../../domain/documents/key-order.ts';
import { groupsInOrder, largestGroups, objectAges, objectSizes, type FacetName, type FacetSum } from '../../domain/search/facets.ts';
import { FaultError } from '../../domain/fault.ts';
import type { ObjectFilter } from '../../pipeline/ports/object-index.ts';
import type { FacetSums, FacetsQuery, ObjectUsage, UsageQuery, UsageRow } from '../../pipeline/ports/object-usage.ts';
import type { OpenSearchClient } from './client.ts';
import { parseAnswer } from './faults.ts';
import { createSearchesAtOnce, type LargeGroup, type LargeGroups } from './large-groups.ts';
import type { IndexNames } from './names.ts';
import { anyOf, filterQuery, isOfAll } from './query.ts';
import { createSearchSender } from './searching.ts';

type Json = Readonly<Record<string, unknown>>;

const valueSchema = z.object({ value: z.number().nullable() });
const sumsSchema = z.object({
  doc_count: z.number(),
  bytes: valueSchema,
  oldest: valueSchema.optional(),
  newest: valueSchema.optional(),
});
const groupSchema = sumsSchema.extend({ key: z.string() });
const answerSchema = z.object({ timed_out: z.boolean(), _shards: z.object({ total: z.number(), successful: z.number() }) });
const usageSchema = answerSchema.extend({
  // absent if the index is empty
  aggregations: z.object({ groups: z.object({ buckets: z.array(groupSchema) }), none: sumsSchema.optional() }).optional(),
});

/** A search has the sum, the number or both. */
const searchAloneSchema = answerSchema.extend({
  hits: z.object({ total: z.object({ value: z.number() }).default({ value: 0 }) }),
  aggregations: z
    .object({
      bytes: z.object({ value: z.number() }).default({ value: 0 }),
      sizes: z.object({ count: z.number(), sum: z.number() }).default({ count: 0, sum: 0 }),
    })
    .prefault({}),
});

const facetSumSchema = z.object({ doc_count: z.number(), bytes: valueSchema });
const facetGroupsSchema = z.object({ buckets: z.array(facetSumSchema.extend({ key: z.string() })) });
const facetsSchema = answerSchema.extend({
  // absent if there is no index
  aggregations: z
    .object({
      bucket: facetGroupsSchema.optional(),
      extension: facetGroupsSchema,
      class: facetGroupsSchema,
      size: facetGroupsSchema,
      age: facetGroupsSchema,
      extension_none: facetSumSchema,
      class_none: facetSumSchema,
      size_none: facetSumSchema,
      age_none: facetSumSchema,
    })
    .optional(),
});
type FacetAggregations = NonNullable<z.infer<typeof facetsSchema>['aggregations']>;

const BYTES = { bytes: { sum: { field: 'size' } } };
/** The days at which a very large age is cut, so that several threads sum it. */
const AGE_CUTS: readonly number[] = [15, 60, 180, 730];
const SIZES = { sizes: { stats: { field: 'size' } } };
/** A shard answers this many of its groups, so that those with the most objects of all are exact unless there are far more. */
const SHARD_GROUPS = 5_000;

const TIMES = { oldest: { min: { field: 'last_modified' } }, newest: { max: { field: 'last_modified' } } };

function groupSums({ withoutTimes = false }: UsageQuery): Json {
  return withoutTimes ? BYTES : { ...BYTES, ...TIMES };
}

const DAY_MS = 86_400_000;

/**
 * Creates the sums on OpenSearch. Groups are ordered by their keys and cut only after the last one of the page, so that they
 * are exact whatever the number of shards (a terms aggregation that is ordered by counts is not).
 */
export function createObjectUsage(client: OpenSearchClient, names: IndexNames, largeGroups: LargeGroups): ObjectUsage {
  const sendSearch = createSearchSender(client, names);
  const searchAtOnce = createSearchesAtOnce(client, names);

  /** One search for all groups. */
  async function sumTogether(query: UsageQuery, signal: AbortSignal | undefined): Promise<readonly Sums[]> {
    const body = { ...limitsOf(query), query: groupsQuery(query), aggs: groupsOf(query) };
    // a search that must be whole answers a fault when its time is over
    const answer = await sendSearch({ ...query, partial: true }, body, signal);
    return answer === undefined ? [] : [sumsOfGroups(answer, query)];
  }

  /** Searches for each of these groups, and for what they leave out; undefined if OpenSearch refuses that. */
  async function sumApart(query: UsageQuery, large: readonly LargeGroup[], signal: AbortSignal | undefined) {
    const field = fieldOf(query);
    const { groups } = groupsOf(query);
    const alone =
      query.by === 'age' ? agesAlone(query, large) : large.flatMap((group) => searchesFor(group, { term: { [field]: group.name } }));
    // not all but those that were found: to find these again would take as long
    const between = query.by === 'age' ? [] : namesBetween(query, large);
    const others = { query: { bool: { filter: [LIVE, groupsQuery(query), anyOf([...between, without('size')])] } }, aggs: { groups } };
    // an aggregation of documents without the field would test each document
    const none = { query: { bool: { filter: [LIVE, groupsQuery(query), without(field)] } }, aggs: BYTES, track_total_hits: true };
    const searches = [...alone, { name: '', body: none }];
    const bodies = [others, ...searches.map(({ body }) => body)].map((body) => ({ ...limitsOf(query), ...body }));
    const answers = await searchAtOnce(query.bucket, bodies, signal);
    if (answers === undefined) return undefined;
    const [ofOthers, ...ofSearches] = answers;
    const { rows, ...rest } = sumsOfGroups(ofOthers, query);
    // the number of a very large group has its objects without a size already
    const counted = new Set(large.filter(({ isVeryLarge }) => isVeryLarge).map(({ name }) => name));
    const left = { ...rest, rows: rows.filter(({ name }) => !counted.has(name)) };
    return [left, ...ofSearches.map((answer, at) => sumsAlone(answer, searches[at]?.name ?? ''))];
  }

  return {
    async usage(query, signal) {
      const place = placeOf(query);
      const large = place === undefined ? [] : largeGroups.at(place);
      const apart = large.length === 0 ? undefined : await sumApart(query, large, signal);
      const sums = apart ?? (await sumTogether(query, signal));
      if (sums.some(({ isWhole }) => !isWhole)) return 'too-slow';
      const rows = inOrder(query, added(sums.flatMap((each) => each.rows)));
      if (place !== undefined) largeGroups.remember(place, rows, sums[0]?.shards ?? 0);
      return rows.slice(0, query.limit);
    },

    async facets(query, signal) {
      const body = {
        ...limitsOf(query),
        query: sumsQuery(query),
        aggs: {
          // each sum of all documents takes as long as all requests for rows together: those of one bucket are those of all sizes
          ...(query.bucket === undefined && { bucket: termsOf('bucket', query) }),
          extension: termsOf('extension', query),
          class: termsOf('storage_class', query),
          size: { range: { field: 'size', ranges: sizeRanges() }, aggs: BYTES },
          age: { date_range: { field: 'last_modified', format: 'epoch_millis', ranges: ageRanges(query) }, aggs: BYTES },
          extension_none: noneOf('extension'),
          class_none: noneOf('storage_class'),
          size_none: noneOf('size'),
          age_none: noneOf('last_modified'),
        },
      };
      const answer = await sendSearch({ ...query, partial: true }, body, signal);
      if (answer === undefined) return facetsOf(undefined, query);
      const { timed_out: timedOut, _shards: shards, aggregations } = parseAnswer(facetsSchema, answer);
      if (timedOut) return 'too-slow';
      requireWhole(shards, query);
      return facetsOf(aggregations, query);
    },
  };
}

/** What one search found. */
interface Sums {
  readonly rows: readonly UsageRow[];
  readonly shards: number;
  /** False if its time was over before. */
  readonly isWhole: boolean;
}

function sumsOfGroups(answer: unknown, query: UsageQuery): Sums {
  const { timed_out: timedOut, _shards: shards, aggregations } = parseAnswer(usageSchema, answer);
  if (!timedOut) requireWhole(shards, query);
  const rows = (aggregations?.groups.buckets ?? []).map((group) => rowOf(group.key, group));
  const none = aggregations?.none === undefined ? [] : [rowOf('', aggregations.none)];
  return { rows: [...none, ...rows], shards: shards.total, isWhole: !timedOut };
}

function sumsAlone(answer: unknown, name: string): Sums {
  const { timed_out: timedOut, _shards: shards, hits, aggregations } = parseAnswer(searchAloneSchema, answer);
  const { bytes, sizes } = aggregations;
  const row = { name, objects: hits.total.value + sizes.count, bytes: bytes.value + sizes.sum };
  return { rows: [row], shards: shards.total, isWhole: !timedOut };
}

/** One row for each name that has objects. */
function added(rows: readonly UsageRow[]): readonly UsageRow[] {
  const byName = new Map<string, UsageRow>();
  for (const row of rows) {
    const known = byName.get(row.name);
    byName.set(row.name, known === undefined ? row : { ...known, objects: known.objects + row.objects, bytes: known.bytes + row.bytes });
  }
  return [...byName.values()].filter(({ objects }) => objects > 0);
}

function requireWhole(
  shards: { readonly total: number; readonly successful: number },
  { bucket = 'the buckets' }: { readonly bucket?: string | undefined },
): void {
  // a shard that no node has is missing from `successful`, but not counted as `failed`
  const missing = shards.total - shards.successful;
  if (missing > 0) throw new FaultError('bucket.index-unavailable', `${missing} of ${shards.total} shards of ${bucket} did not answer`);
}

function termsOf(field: string, { groupsMax }: FacetsQuery): Json {
  return { terms: { field, size: groupsMax, shard_size: SHARD_GROUPS, order: [{ _count: 'desc' }, { _key: 'asc' }] }, aggs: BYTES };
}

const LIVE = { term: { deleted: false } };

/**
 * The query for sums by fields of live documents. Tombstones have none of these, so those of a whole bucket are of all
 * documents: of these, OpenSearch finds ranges in its trees of points, in a third of the time.
 */
function sumsQuery(filter: ObjectFilter, places: readonly Json[] = []): Json {
  if (filter.bucket !== undefined && isOfAll(filter) && places.length === 0) return { match_all: {} };
  return { bool: { filter: [filterQuery(filter), ...places] } };
}

/** The sums of live documents without the field. A query finds these, where the aggregation `missing` reads every document. */
function noneOf(field: string, aggs: Json = BYTES): Json {
  return { filter: { bool: { filter: LIVE, must_not: { exists: { field } } } }, aggs };
}

function sizeRanges(): readonly Json[] {
  let from: number | undefined;
  return objectSizes.map(({ name, bytes }) => {
    const to = Number.isFinite(bytes) ? bytes : undefined;
    const range = { key: name, ...defined({ from, to }) };
    from = to;
    return range;
  });
}

function facetsOf(aggregations: FacetAggregations | undefined, { groupsMax, bucket }: FacetsQuery): FacetSums {
  if (aggregations === undefined) return { objects: 0, bytes: 0, facets: { bucket: [], extension: [], class: [], size: [], age: [] } };
  const sumsOf = (name: FacetName, none?: z.infer<typeof facetSumSchema>): readonly FacetSum[] =>
    [...(aggregations[name]?.buckets ?? []), ...(none === undefined ? [] : [{ key: '', ...none }])]
      .map((each) => ({ name: each.key, objects: each.doc_count, bytes: each.bytes.value ?? 0 }))
      .filter((each) => each.objects > 0);
  const sizes = groupsInOrder(objectSizes, sumsOf('size', aggregations.size_none));
  const objects = sizes.reduce((sum, group) => sum + group.objects, 0);
  const bytes = sizes.reduce((sum, group) => sum + group.bytes, 0);
  const ofBucket = bucket === undefined || objects === 0 ? sumsOf('bucket') : [{ name: bucket, objects, bytes }];
  return {
    objects,
    bytes,
    facets: {
      bucket: largestGroups(ofBucket, groupsMax),
      extension: largestGroups(sumsOf('extension', aggregations.extension_none), groupsMax),
      class: largestGroups(sumsOf('class', aggregations.class_none), groupsMax),
      size: sizes,
      age: groupsInOrder(objectAges, sumsOf('age', aggregations.age_none)),
    },
  };
}

/** The folder is a term of its level, which is found faster than a prefix. */
function filterOf({ bucket, key, words, extension, where, within, prefix, by }: UsageQuery) {
  return {
    bucket,
    ...defined({ key, words, extension, where, within }),
    ...(by !== 'folder' && { prefix }),
  };
}

function levelOf(prefix: string): number {
  return prefix.split('/').length - 1;
}

function fieldOf({ by, prefix }: UsageQuery): string {
  switch (by) {
    case 'folder':
      return `d${levelOf(prefix) + 1}`;
    case 'class':
      return 'storage_class';
    case 'extension':
      return 'extension';
    case 'age':
      return 'last_modified';
  }
}

/** The place whose groups are summed, if these are all documents of the bucket or folder, and their sums alone. */
function placeOf(query: UsageQuery): string | undefined {
  const { bucket, by, prefix, after, withoutTimes = false } = query;
  return withoutTimes && after === undefined && isOfAll(filterOf(query)) ? JSON.stringify([bucket, by, prefix]) : undefined;
}

function limitsOf({ timeLimitMs }: { readonly timeLimitMs: number }): Json {
  return { size: 0, track_total_hits: false, timeout: `${timeLimitMs}ms` };
}

function groupsQuery(query: UsageQuery): Json {
  const { by, prefix, after } = query;
  return sumsQuery(filterOf(query), [
    ...(by === 'folder' && prefix !== '' ? [{ term: { [`d${levelOf(prefix)}`]: prefix } }] : []),
    ...(after === undefined || by === 'age' ? [] : [{ range: { [fieldOf(query)]: { gt: after } } }]),
  ]);
}

/** A search that finds a part of the sums of a group. */
interface Alone {
  readonly name: string;
  readonly body: Json;
}

/** The searches for documents of one group. */
function searchesFor({ name, isVeryLarge }: LargeGroup, documents: Json): readonly Alone[] {
  const query = { bool: { filter: documents } };
  if (!isVeryLarge) return [{ name, body: { query, aggs: SIZES } }];
  return [
    { name, body: { query, aggs: BYTES } },
    { name, body: { query, track_total_hits: true } },
  ];
}

/** The groups that are none of these, as ranges of their names. */
function namesBetween(query: UsageQuery, groups: readonly LargeGroup[]): readonly Json[] {
  const { by, prefix } = query;
  const names = groups.map(({ name }) => name).toSorted(compareKeys);
  const [begin, end] = by === 'folder' ? [prefix, firstAfterPrefix(prefix)] : [];
  return [undefined, ...names].map((name, at) => {
    const from = name === undefined ? { gte: begin } : { gt: name };
    return { range: { [fieldOf(query)]: defined({ ...from, lt: names[at] ?? end }) } };
  });
}

/** Documents without the field. */
function without(field: string): Json {
  return { bool: { must_not: { exists: { field } } } };
}

/** All ages: to find what is in none of some takes as long as to find these. A very large one has parts, so that several threads sum it. */
function agesAlone(query: UsageQuery, large: readonly LargeGroup[]): readonly Alone[] {
  return ageRanges(query).flatMap(({ key: name, from, to }) => {
    const isVeryLarge = large.some((group) => group.isVeryLarge && group.name === name);
    const cuts = AGE_CUTS.map((days) => query.nowMs - days * DAY_MS).filter(
      (cut) => isVeryLarge && cut > (from ?? -Infinity) && cut < (to ?? query.nowMs),
    );
    return [...cuts, from].flatMap((start, at) => {
      const bounds = defined({ gte: start, lt: at === 0 ? to : cuts[at - 1] });
      return searchesFor({ name, isVeryLarge }, { range: { last_modified: { format: 'epoch_millis', ...bounds } } });
    });
  });
}

function groupsOf(query: UsageQuery): Json {
  const { by, limit, after } = query;
  const field = fieldOf(query);
  const aggs = groupSums(query);
  const groups =
    by === 'age'
      ? { date_range: { field, format: 'epoch_millis', ranges: ageRanges(query) }, aggs }
      : { terms: { field, size: limit, order: { _key: 'asc' } }, aggs };
  return { groups, ...((after === undefined || by === 'age') && { none: noneOf(field, aggs) }) };
}

function ageRanges({ nowMs }: { readonly nowMs: number }) {
  let youngerMs: number | undefined;
  return objectAges.map(({ name, days }) => {
    const fromMs = Number.isFinite(days) ? nowMs - days * DAY_MS : undefined;
    const range = { key: name, ...defined({ from: fromMs, to: youngerMs }) };
    youngerMs = fromMs;
    return range;
  });
}

/** Ages are answered the youngest first, other groups in the order of their names; first what has none. */
function inOrder({ by }: UsageQuery, rows: readonly UsageRow[]): readonly UsageRow[] {
  const rankOf = ({ name }: UsageRow): number => objectAges.findIndex((age) => age.name === name);
  return rows.toSorted((a, b) => (by === 'age' ? rankOf(a) - rankOf(b) : compareKeys(a.name, b.name)));
}

function rowOf(name: string, { doc_count: objects, bytes, oldest, newest }: z.infer<typeof sumsSchema>): UsageRow {
  return {
    name,
    objects,
    bytes: bytes.value ?? 0,
    ...(typeof oldest?.value === 'number' && { oldestMs: oldest.value }),
    ...(typeof newest?.value === 'number' && { newestMs: newest.value }),
  };
}
