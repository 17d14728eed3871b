/** Sums in OpenSearch: one search with one aggregation per kind of groups. */
import { z } from 'zod';
import { defined } from '../../base/defined.ts';
import { FaultError } from '../../base/fault.ts';
import { objectAges, objectSizes, largestGroups, type UsageBy } from '../groups.rules.ts';
import type { SumUsage, UsageGroup, UsageQuery, UsageSums } from '../store.ts';
import type { OpenSearchClient } from './client.ts';
import { parseAnswer } from './faults.ts';
import type { IndexNames } from './setup.ts';
import { filterQuery, createSearchSender } from './search.ts';

type Json = Readonly<Record<string, unknown>>;

const bytesSchema = z.object({ value: z.number().nullable() });
const sumSchema = z.object({ doc_count: z.number(), bytes: bytesSchema });
const groupsSchema = z.object({
  buckets: z.array(sumSchema.extend({ key: z.string(), doc_count_error_upper_bound: z.number().default(0) })),
});
const answerSchema = z.object({
  timed_out: z.boolean(),
  _shards: z.object({ total: z.number(), successful: z.number() }),
  hits: z.object({ total: z.object({ value: z.number() }) }),
  // absent if there is no index
  aggregations: z
    .object({ bytes: bytesSchema })
    .catchall(z.union([groupsSchema, sumSchema]))
    .optional(),
});
type Aggregations = NonNullable<z.infer<typeof answerSchema>['aggregations']>;

const BYTES = { bytes: { sum: { field: 'size' } } };
/** How many groups of a kind a shard returns. If there are no more in all, every sum is exact; otherwise OpenSearch says which groups' are. */
const SHARD_GROUPS = 10_000;
const DAY_MS = 86_400_000;

/** Creates the sums. */
export function createObjectUsage(client: OpenSearchClient, names: IndexNames): SumUsage {
  const sendSearch = createSearchSender(client, names);

  return async function usage(query, signal) {
    const { bucket = 'the buckets', by, timeLimitMs } = query;
    const kinds = by.flatMap((each, at) =>
      Object.entries({ [`groups_${at}`]: groupsOf(each, query), [`none_${at}`]: noneOf(each, query) }),
    );
    const body = {
      size: 0,
      track_total_hits: true,
      timeout: `${timeLimitMs}ms`,
      query: usageQuery(query),
      aggs: { ...BYTES, ...Object.fromEntries(kinds) },
    };
    // a search that must be complete answers with a fault when its time is up
    const answer = await sendSearch({ ...query, partial: true }, body, signal);
    if (answer === undefined) return sumsOf(query, 0, undefined);
    const { timed_out: timedOut, _shards: shards, hits, aggregations } = parseAnswer(answerSchema, answer);
    if (timedOut) return 'too-slow';
    // a shard that no node has is missing from `successful`, but not counted as `failed`
    const missing = shards.total - shards.successful;
    if (missing > 0) throw new FaultError('bucket.index-unavailable', `${missing} of ${shards.total} shards of ${bucket} did not answer`);
    return sumsOf(query, hits.total.value, aggregations);
  };
}

/** By folder, the folder is a term of its level, which is found faster than a prefix. */
function usageQuery({ by, prefix = '', ...filter }: UsageQuery): Json {
  if (!by.includes('folder')) return filterQuery({ ...filter, prefix });
  const folder = prefix === '' ? [] : [{ term: { [`d${levelOf(prefix)}`]: prefix } }];
  return { bool: { filter: [filterQuery(filter), ...folder] } };
}

function levelOf(prefix: string): number {
  return prefix.split('/').length - 1;
}

function fieldOf(by: UsageBy, { prefix = '' }: UsageQuery): string {
  const fields = {
    folder: `d${levelOf(prefix) + 1}`,
    extension: 'extension',
    class: 'storage_class',
    size: 'size',
    age: 'last_modified',
    bucket: 'bucket',
  };
  return fields[by];
}

function groupsOf(by: UsageBy, query: UsageQuery): Json {
  const field = fieldOf(by, query);
  switch (by) {
    case 'size':
      return { range: { field, ranges: sizeRanges() }, aggs: BYTES };
    case 'age':
      return { date_range: { field, format: 'epoch_millis', ranges: ageRanges(query) }, aggs: BYTES };
    case 'folder':
    case 'extension':
    case 'class':
    case 'bucket': {
      const terms = { field, size: query.limit, shard_size: SHARD_GROUPS, show_term_doc_count_error: true };
      return { terms: { ...terms, order: [{ _count: 'desc' }, { _key: 'asc' }] }, aggs: BYTES };
    }
  }
}

/** Documents without the field, found by a query, because the aggregation `missing` reads every document. */
function noneOf(by: UsageBy, query: UsageQuery): Json {
  return { filter: { bool: { must_not: { exists: { field: fieldOf(by, query) } } } }, aggs: BYTES };
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

function ageRanges({ nowMs }: UsageQuery): readonly Json[] {
  let to: number | undefined;
  return objectAges.map(({ name, days }) => {
    const from = Number.isFinite(days) ? nowMs - days * DAY_MS : undefined;
    const range = { key: name, ...defined({ from, to }) };
    to = from;
    return range;
  });
}

function sumsOf({ by, limit }: UsageQuery, objects: number, aggregations: Aggregations | undefined): UsageSums {
  return {
    objects,
    bytes: aggregations?.bytes.value ?? 0,
    groups: by.map((each, at) => {
      const found = [...exactGroups(aggregations?.[`groups_${at}`]), ...noGroup(aggregations?.[`none_${at}`])];
      return largestGroups(
        each,
        found.filter((group) => group.objects > 0),
        limit,
      );
    }),
  };
}

function exactGroups(aggregation: Aggregations[string] | undefined): readonly UsageGroup[] {
  if (aggregation === undefined || !('buckets' in aggregation)) return [];
  return aggregation.buckets
    .filter((group) => group.doc_count_error_upper_bound === 0)
    .map((group) => ({ name: group.key, objects: group.doc_count, bytes: group.bytes.value ?? 0 }));
}

function noGroup(aggregation: Aggregations[string] | undefined): readonly UsageGroup[] {
  if (aggregation === undefined || !('doc_count' in aggregation)) return [];
  return [{ name: '', objects: aggregation.doc_count, bytes: aggregation.bytes.value ?? 0 }];
}
