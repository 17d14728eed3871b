import { z } from 'zod';
import type { ObjectScan, ScannedDocument } from '../../pipeline/ports-reindex.ts';
import type { OpenSearchAnswer, OpenSearchClient } from './opensearch-client.ts';
import { bodyOf, errorOf, parseAnswer } from './opensearch-faults.ts';
import type { IndexNames } from './opensearch-names.ts';

interface ScanDependencies {
  readonly client: OpenSearchClient;
  readonly names: IndexNames;
}

/** A page with a hole in it would make phantoms and missing objects of what is there. */
const WHOLE_HITS = { allow_partial_search_results: false };

const scannedSchema = z.object({
  key: z.string(),
  size: z.number().exactOptional(),
  etag: z.string().exactOptional(),
  last_modified: z.string().exactOptional(),
  last_modified_exact: z.boolean().exactOptional(),
  storage_class: z.string().exactOptional(),
  clock: z.number(),
  settled: z.boolean(),
}) satisfies z.ZodType<ScannedDocument>;

/** An empty page is left out by filter_path. */
const pageSchema = z.object({
  hits: z.object({ hits: z.array(z.object({ _source: scannedSchema })).default([]) }).default({ hits: [] }),
});
const countSchema = z.object({ hits: z.object({ total: z.object({ value: z.number() }) }) });

/**
 * The scan on OpenSearch: one bucket's own alias, sorted as its index is sorted, so that a page costs a page. Without a
 * point in time: what changes meanwhile is found by the second look, and nothing is held open in the cluster.
 */
export function createObjectScan({ client, names }: ScanDependencies): ObjectScan {
  return {
    async scan(bucket, { prefix, after, upTo, limit }, signal) {
      const body = {
        size: limit,
        query: liveUnder(prefix, upTo),
        // keywords sort by their UTF-8 bytes
        sort: [{ bucket: 'asc' }, { key: 'asc' }],
        ...(after !== '' && { search_after: [bucket, after] }),
        track_total_hits: false,
        _source: Object.keys(scannedSchema.shape),
      };
      const query = { ...WHOLE_HITS, filter_path: 'hits.hits._source' };
      const answer = await client.send({ method: 'POST', path: `/${names.objectsAlias(bucket)}/_search`, query, body }, signal);
      return isIndexMissing(answer) ? [] : parseAnswer(pageSchema, bodyOf(answer)).hits.hits.map((hit) => hit._source);
    },

    async refresh(bucket, signal) {
      const answer = await client.send({ method: 'POST', path: `/${names.objectsAlias(bucket)}/_refresh` }, signal);
      if (!isIndexMissing(answer)) bodyOf(answer);
    },

    async countLive(bucket, prefix, signal) {
      const body = { size: 0, query: liveUnder(prefix, undefined), track_total_hits: true };
      const answer = await client.send({ method: 'POST', path: `/${names.objectsAlias(bucket)}/_search`, query: WHOLE_HITS, body }, signal);
      return isIndexMissing(answer) ? 0 : parseAnswer(countSchema, bodyOf(answer)).hits.total.value;
    },
  };
}

function liveUnder(prefix: string, upTo: string | undefined): Readonly<Record<string, unknown>> {
  const filter = [
    { term: { deleted: false } },
    ...(prefix === '' ? [] : [{ prefix: { key: prefix } }]),
    ...(upTo === undefined ? [] : [{ range: { key: { lte: upTo } } }]),
  ];
  return { bool: { filter } };
}

/** The bucket has never been connected, or not any more. */
function isIndexMissing(answer: OpenSearchAnswer): boolean {
  return answer.status === 404 && errorOf(answer).type === 'index_not_found_exception';
}
