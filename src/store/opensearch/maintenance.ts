/** The maintenance of documents by the calendar, on OpenSearch. */
import { z } from 'zod';
import { isoOf, type ObjectDocument } from '../../ordering/document.ts';
import type { ObjectMaintenance } from '../object-index.ts';
import type { OpenSearchClient } from './client.ts';
import { bodyOf, isIndexMissing, parseAnswer } from './faults.ts';
import type { IndexNames } from './names.ts';
import { createSearchSender, documentsOf } from './searching.ts';

/** Unsettled documents are few, so they are in few buckets. */
const BUCKETS_MAX = 10_000;
const bucketsSchema = z.object({
  _shards: z.object({ failed: z.number() }),
  aggregations: z
    .object({ buckets: z.object({ sum_other_doc_count: z.number(), buckets: z.array(z.object({ key: z.string() })) }) })
    .optional(),
});
const purgedSchema = z.object({ deleted: z.number(), failures: z.array(z.unknown()).max(0) });

/** Creates the maintenance. It needs the permissions of the object index, and those of `_delete_by_query`, on its indices. */
export function createObjectMaintenance(client: OpenSearchClient, names: IndexNames): ObjectMaintenance {
  const sendSearch = createSearchSender(client, names);

  async function page(
    bucket: string,
    filter: readonly unknown[],
    { after, limit }: { readonly after: string; readonly limit: number },
    signal: AbortSignal | undefined,
  ): Promise<readonly ObjectDocument[]> {
    const position = { sort: [{ bucket: 'asc' }, { key: 'asc' }], search_after: [bucket, after] };
    return documentsOf(
      await sendSearch({ bucket }, { size: limit, query: { bool: { filter } }, ...position, track_total_hits: false }, signal),
    );
  }

  return {
    unsettled: (bucket, { clockBelow, ...range }, signal) => page(bucket, unsettledBelow(clockBelow), range, signal),
    async unsettledBuckets(clockBelow, signal) {
      const aggs = { buckets: { terms: { field: 'bucket', size: BUCKETS_MAX } } };
      const body = { size: 0, query: { bool: { filter: unsettledBelow(clockBelow) } }, aggs, track_total_hits: false };
      const answer = await client.send({ method: 'POST', path: `/${names.bucketAliases}/_search`, body }, signal);
      const { _shards, aggregations } = parseAnswer(bucketsSchema, bodyOf(answer));
      // there is no index yet, or an index did not answer, which its bucket's own request reports
      if (aggregations === undefined || _shards.failed > 0 || aggregations.buckets.sum_other_doc_count > 0) return undefined;
      return new Set(aggregations.buckets.buckets.map(({ key }) => key));
    },
    expiring(bucket, { beforeMs, ...range }, signal) {
      const filter = [{ term: { deleted: false } }, { range: { expires_at: { lt: isoOf(beforeMs) } } }];
      return page(bucket, filter, range, signal);
    },
    async purge(bucket, { deletedBeforeMs, limit }, signal) {
      const body = {
        query: { bool: { filter: [{ term: { deleted: true } }, { range: { deleted_at: { lt: isoOf(deletedBeforeMs) } } }] } },
      };
      // A document that was written since it was found has another sequence number, and stays. The refresh keeps the next call from
      // finding what this one deleted.
      const query = { conflicts: 'proceed', max_docs: limit, refresh: true, timeout: '5s' };
      const answer = await client.send({ method: 'POST', path: `/${names.objectsAlias(bucket)}/_delete_by_query`, query, body }, signal);
      return isIndexMissing(answer) ? 0 : parseAnswer(purgedSchema, bodyOf(answer, 'index')).deleted;
    },
  };
}

function unsettledBelow(clock: number): readonly unknown[] {
  return [{ term: { settled: false } }, { range: { clock: { lt: clock } } }];
}
