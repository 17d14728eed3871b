import { defined } from '../../domain/defined.ts';
import { z } from 'zod';
import { groupsInOrder, largestGroups, objectAges, objectSizes, type FacetName, type FacetSum } from '../../domain/search/facets.ts';
import { FaultError } from '../../domain/fault.ts';
import type { ObjectFilter } from '../../pipeline/ports/object-index.ts';
import type { FacetSums, FacetsQuery, ObjectUsage, UsageQuery, UsageRow } from '../../pipeline/ports/object-usage.ts';
import type { OpenSearchClient } from './client.ts';
import { parseAnswer } from './faults.ts';
import type { IndexNames } from './names.ts';
import { filterQuery, isOfAll } from './query.ts';
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
const usageSchema = z.object({
  timed_out: z.boolean(),
  _shards: z.object({ total: z.number(), successful: z.number() }),
  // absent if the index is empty
  aggregations: z.object({ groups: z.object({ buckets: z.array(groupSchema) }), none: sumsSchema.optional() }).optional(),
});

const facetSumSchema = z.object({ doc_count: z.number(), bytes: valueSchema });
const facetGroupsSchema = z.object({ buckets: z.array(facetSumSchema.extend({ key: z.string() })) });
const facetsSchema = z.object({
  timed_out: z.boolean(),
  _shards: z.object({ total: z.number(), successful: z.number() }),
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
export function createObjectUsage(client: OpenSearchClient, names: IndexNames): ObjectUsage {
  const sendSearch = createSearchSender(client, names);

  return {
    async usage(query, signal) {
      const body = {
        size: 0,
        track_total_hits: false,
        timeout: `${query.timeLimitMs}ms`,
        query: sumsQuery(filterOf(query), placeFilters(query)),
        aggs: query.by === 'age' ? agesOf(query) : groupsOf(query, fieldOf(query)),
      };
      // a search that must be whole answers a fault when its time is over
      const answer = await sendSearch({ ...query, partial: true }, body, signal);
      if (answer === undefined) return [];
      const { timed_out: timedOut, _shards: shards, aggregations } = parseAnswer(usageSchema, answer);
      if (timedOut) return 'too-slow';
      requireWhole(shards, query);
      const groups = aggregations?.groups.buckets ?? [];
      const rows = inOrder(query, groups)
        .filter(({ doc_count: objects }) => objects > 0)
        .map((group) => rowOf(group.key, group));
      const none = aggregations?.none;
      return (none === undefined || none.doc_count === 0 ? rows : [rowOf('', none), ...rows]).slice(0, query.limit);
    },

    async facets(query, signal) {
      const body = {
        size: 0,
        track_total_hits: false,
        timeout: `${query.timeLimitMs}ms`,
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

function placeFilters(query: UsageQuery): readonly Json[] {
  const { by, prefix, after } = query;
  return [
    ...(by === 'folder' && prefix !== '' ? [{ term: { [`d${levelOf(prefix)}`]: prefix } }] : []),
    ...(after === undefined || by === 'age' ? [] : [{ range: { [fieldOf(query)]: { gt: after } } }]),
  ];
}

function groupsOf(query: UsageQuery, field: string): Json {
  const { limit, after } = query;
  const aggs = groupSums(query);
  return {
    groups: { terms: { field, size: limit, order: { _key: 'asc' } }, aggs },
    ...(after === undefined && { none: noneOf(field, aggs) }),
  };
}

function ageRanges({ nowMs }: { readonly nowMs: number }): readonly Json[] {
  let youngerMs: number | undefined;
  return objectAges.map(({ name, days }) => {
    const fromMs = Number.isFinite(days) ? nowMs - days * DAY_MS : undefined;
    const range = { key: name, ...defined({ from: fromMs, to: youngerMs }) };
    youngerMs = fromMs;
    return range;
  });
}

function agesOf(query: UsageQuery): Json {
  const aggs = groupSums(query);
  return {
    groups: { date_range: { field: 'last_modified', format: 'epoch_millis', ranges: ageRanges(query) }, aggs },
    none: noneOf('last_modified', aggs),
  };
}

/** Ranges are answered the oldest first. */
function inOrder({ by }: UsageQuery, groups: readonly z.infer<typeof groupSchema>[]): readonly z.infer<typeof groupSchema>[] {
  return by === 'age' ? objectAges.flatMap(({ name }) => groups.filter(({ key }) => key === name)) : groups;
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
