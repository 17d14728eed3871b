/** Documents in key order on OpenSearch, for comparisons with a listing and for the calendar. */
import { z } from 'zod';
import { FaultError } from '../../base/fault.ts';
import { compareKeys, firstAfterPrefix } from '../../base/key-order.ts';
import { scannedDocumentSchema, type ObjectScan, type ScannedDocument, type ObjectMaintenance } from '../store.ts';
import type { OpenSearchAnswer, OpenSearchClient, OpenSearchRequest } from './client.ts';
import { bodyOf, isIndexMissing, parseAnswer } from './faults.ts';
import { positionOf } from './changes.ts';
import type { IndexNames } from './setup.ts';
import { isoOf, type ObjectDocument } from '../../ordering/document.ts';
import { createSearchSender, documentsOf } from './search.ts';

/**
 * Documents that are missing from a page would appear as missing objects. Requests go to primary shards only: under segment
 * replication, a refresh makes a write visible on them alone, and replicas follow at some later time
 * (https://docs.opensearch.org/latest/tuning-your-cluster/availability-and-recovery/segment-replication/index/). A document
 * that a replica does not have yet would be neither compared nor counted, and its object might be gone.
 */
const WHOLE_HITS = { allow_partial_search_results: false, preference: '_primary' };

const pageSchema = z.object({ hits: z.object({ hits: z.array(z.object({ _source: scannedDocumentSchema })) }) });
const refreshSchema = z.object({ _shards: z.object({ successful: z.number(), failed: z.number() }) });
const countSchema = z.object({ hits: z.object({ total: z.object({ value: z.number() }) }) });

/**
 * Creates the scan on OpenSearch. It searches one bucket's alias in the order of the index, so that each segment is read
 * only from the first matching document and only for one page. It requests the whole source: filtering it or reading doc
 * values costs the server more (measured: 1.3 µs per document, against 6 and 2). It uses no point in time: what is read
 * again by key shows what changes meanwhile.
 */
export function createObjectScan({ client, names }: { readonly client: OpenSearchClient; readonly names: IndexNames }): ObjectScan {
  return {
    async scan(bucket, { limit, ...bounds }, signal) {
      const body = {
        size: limit,
        query: liveWithin(bounds),
        // keywords sort by their UTF-8 bytes
        sort: [{ bucket: 'asc' }, { key: 'asc' }],
        track_total_hits: false,
      };
      let documents: readonly ScannedDocument[] = [];
      const read = (page: unknown): void => {
        documents = parseAnswer(pageSchema, page).hits.hits.map((hit) => hit._source);
      };
      const answer = await search(bucket, { body, read }, signal);
      if (!isIndexMissing(answer)) bodyOf(answer, 'index');
      return documents;
    },

    async refresh(bucket, signal) {
      const answer = await client.send({ method: 'POST', path: `/${names.objectsAlias(bucket)}/_refresh` }, signal);
      if (isIndexMissing(answer)) return;
      const { successful, failed } = parseAnswer(refreshSchema, bodyOf(answer, 'index'))._shards;
      // the status is 200 even then; unassigned copies count as neither successful nor failed
      if (failed > 0 || successful === 0) {
        throw new FaultError(
          'bucket.index-unavailable',
          `the refresh of ${names.objectsAlias(bucket)} succeeded on ${successful} shards and failed on ${failed}`,
        );
      }
    },

    async countLive(bucket, prefix, signal) {
      const body = { size: 0, query: liveWithin({ prefix, after: '' }), track_total_hits: true };
      const answer = await search(bucket, { body }, signal);
      return isIndexMissing(answer) ? 0 : parseAnswer(countSchema, bodyOf(answer, 'index')).hits.total.value;
    },
  };

  function search(bucket: string, request: Pick<OpenSearchRequest, 'body' | 'read'>, signal?: AbortSignal): Promise<OpenSearchAnswer> {
    return client.send({ method: 'POST', path: `/${names.objectsAlias(bucket)}/_search`, query: WHOLE_HITS, ...request }, signal);
  }
}

interface KeyBounds {
  readonly prefix: string;
  readonly after: string;
  readonly upTo?: string;
}

/**
 * The query for live documents within the bounds. It uses a range of keys and not `search_after` with a prefix query:
 * `search_after` visits every document before it (30 ns each, most of the cost of a deep page), whereas a range visits only
 * the documents within it (12 ns each), whose number is bounded by the parts of a job.
 */
function liveWithin({ prefix, after, upTo }: KeyBounds): Readonly<Record<string, unknown>> {
  const end = firstAfterPrefix(prefix);
  const isUpToFirst = upTo !== undefined && (end === undefined || compareKeys(upTo, end) < 0);
  const range = {
    ...(compareKeys(after, prefix) >= 0 ? after !== '' && { gt: after } : { gte: prefix }),
    ...(isUpToFirst ? { lte: upTo } : end !== undefined && { lt: end }),
  };
  return { bool: { filter: [{ term: { deleted: false } }, ...(Object.keys(range).length === 0 ? [] : [{ range: { key: range } }])] } };
}

// ── what the calendar reads and purges ───────────────────────────────────────────────────────────────────────────────

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
    async purge(bucket, { deletedBeforeMs, upTo, limit }, signal) {
      const alias = names.objectsAlias(bucket);
      // of another history: what an index was before it was restored says nothing about what it is
      const now = await positionOf(client, alias, signal);
      let purged = 0;
      for (const [shard, { history, at }] of Object.entries(upTo)) {
        if (now?.[shard]?.history !== history || purged === limit) continue;
        const old = [{ term: { deleted: true } }, { range: { deleted_at: { lt: isoOf(deletedBeforeMs) } } }];
        const body = { query: { bool: { filter: [...old, { range: { _seq_no: { lte: at } } }] } } };
        // A document that was written since it was found has another sequence number, and stays. The refresh keeps the next call from
        // finding what this one deleted.
        const query = {
          conflicts: 'proceed',
          max_docs: limit - purged,
          refresh: true,
          timeout: '5s',
          preference: `_shards:${shard}|_primary`,
        };
        const answer = await client.send({ method: 'POST', path: `/${alias}/_delete_by_query`, query, body }, signal);
        if (isIndexMissing(answer)) return purged;
        purged += parseAnswer(purgedSchema, bodyOf(answer, 'index')).deleted;
      }
      return purged;
    },
  };
}

function unsettledBelow(clock: number): readonly unknown[] {
  return [{ term: { settled: false } }, { range: { clock: { lt: clock } } }];
}
