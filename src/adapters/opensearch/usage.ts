import { defined } from '../../domain/defined.ts';
import { z } from 'zod';
import { FaultError } from '../../domain/fault.ts';
import { usageAges, type ObjectUsage, type UsageQuery, type UsageRow } from '../../pipeline/ports/object-usage.ts';
import type { OpenSearchClient } from './client.ts';
import { parseAnswer } from './faults.ts';
import type { IndexNames } from './names.ts';
import { filterQuery } from './query.ts';
import { createSearchSender } from './searching.ts';

type Json = Readonly<Record<string, unknown>>;

const valueSchema = z.object({ value: z.number().nullable() });
const sumsSchema = z.object({ doc_count: z.number(), bytes: valueSchema, oldest: valueSchema, newest: valueSchema });
const groupSchema = sumsSchema.extend({ key: z.string() });
const usageSchema = z.object({
  timed_out: z.boolean(),
  _shards: z.object({ total: z.number(), successful: z.number() }),
  // absent if the index is empty
  aggregations: z.object({ groups: z.object({ buckets: z.array(groupSchema) }), none: sumsSchema.optional() }).optional(),
});

const SUMS = {
  bytes: { sum: { field: 'size' } },
  oldest: { min: { field: 'last_modified' } },
  newest: { max: { field: 'last_modified' } },
};
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
        query: { bool: { filter: [filterQuery(filterOf(query)), ...placeFilters(query)] } },
        aggs: query.by === 'age' ? agesOf(query) : groupsOf(query, fieldOf(query)),
      };
      // a search that must be whole answers a fault when its time is over
      const answer = await sendSearch({ ...query, partial: true }, body, signal);
      if (answer === undefined) return [];
      const { timed_out: timedOut, _shards: shards, aggregations } = parseAnswer(usageSchema, answer);
      if (timedOut) return 'too-slow';
      // a shard that no node has is missing from `successful`, but not counted as `failed`
      const missing = shards.total - shards.successful;
      if (missing > 0)
        throw new FaultError('bucket.index-unavailable', `${missing} of ${shards.total} shards of ${query.bucket} did not answer`);
      const groups = aggregations?.groups.buckets ?? [];
      const rows = inOrder(query, groups)
        .filter(({ doc_count: objects }) => objects > 0)
        .map((group) => rowOf(group.key, group));
      const none = aggregations?.none;
      return (none === undefined || none.doc_count === 0 ? rows : [rowOf('', none), ...rows]).slice(0, query.limit);
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

function groupsOf({ limit, after }: UsageQuery, field: string): Json {
  return {
    groups: { terms: { field, size: limit, order: { _key: 'asc' } }, aggs: SUMS },
    ...(after === undefined && { none: { missing: { field }, aggs: SUMS } }),
  };
}

function agesOf({ nowMs }: UsageQuery): Json {
  let youngerMs: number | undefined;
  const ranges = usageAges.map(({ name, days }) => {
    const fromMs = Number.isFinite(days) ? nowMs - days * DAY_MS : undefined;
    const range = { key: name, ...defined({ from: fromMs, to: youngerMs }) };
    youngerMs = fromMs;
    return range;
  });
  return {
    groups: { date_range: { field: 'last_modified', format: 'epoch_millis', ranges }, aggs: SUMS },
    none: { missing: { field: 'last_modified' }, aggs: SUMS },
  };
}

/** Ranges are answered the oldest first. */
function inOrder({ by }: UsageQuery, groups: readonly z.infer<typeof groupSchema>[]): readonly z.infer<typeof groupSchema>[] {
  return by === 'age' ? usageAges.flatMap(({ name }) => groups.filter(({ key }) => key === name)) : groups;
}

function rowOf(name: string, { doc_count: objects, bytes, oldest, newest }: z.infer<typeof sumsSchema>): UsageRow {
  return {
    name,
    objects,
    bytes: bytes.value ?? 0,
    ...(oldest.value !== null && { oldestMs: oldest.value }),
    ...(newest.value !== null && { newestMs: newest.value }),
  };
}
