/** The maintenance of documents by the calendar, on OpenSearch. */
import { defined } from '../../domain/defined.ts';
import { z } from 'zod';
import { objectDocumentSchema, type ObjectDocument } from '../../domain/documents/document.ts';
import type { AgedPage, ObjectMaintenance } from '../../pipeline/ports/object-index.ts';
import type { OpenSearchClient } from './client.ts';
import { bodyOf, isIndexMissing, parseAnswer } from './faults.ts';
import type { IndexNames } from './names.ts';

interface Page {
  readonly bucket: string;
  readonly filter: readonly unknown[];
  readonly after: string;
  readonly limit: number;
}

const LIVE = { term: { deleted: false } };

const hitsSchema = z.object({ hits: z.object({ hits: z.array(z.object({ _source: z.unknown() })) }) });
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
  async function page({ bucket, filter, after, limit }: Page, signal: AbortSignal | undefined): Promise<readonly ObjectDocument[]> {
    const body = {
      size: limit,
      query: { bool: { filter } },
      sort: [{ bucket: 'asc' }, { key: 'asc' }],
      search_after: [bucket, after],
      track_total_hits: false,
    };
    const path = `/${names.objectsAlias(bucket)}/_search`;
    const answer = await client.send({ method: 'POST', path, query: { allow_partial_search_results: false }, body }, signal);
    if (isIndexMissing(answer)) return [];
    const { hits } = parseAnswer(hitsSchema, bodyOf(answer, 'index')).hits;
    return hits.map(({ _source }) => parseAnswer(objectDocumentSchema, _source));
  }

  return {
    unsettled: (bucket, { clockBelow, ...range }, signal) => page({ bucket, filter: unsettledBelow(clockBelow), ...range }, signal),
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
      const filter = [LIVE, { range: { expires_at: { lt: isoOf(beforeMs) } } }];
      return page({ bucket, filter, ...range }, signal);
    },
    async aged(bucket, { after, limit, ...age }, signal) {
      const documents = await page({ bucket, filter: agedFilter(age), after, limit }, signal);
      const last = documents.length < limit ? undefined : documents.at(-1)?.key;
      return { documents, ...(last !== undefined && { next: last }) };
    },
    async purge(bucket, { deletedBeforeMs, limit }, signal) {
      const body = {
        query: { bool: { filter: [{ term: { deleted: true } }, { range: { deleted_at: { lt: isoOf(deletedBeforeMs) } } }] } },
      };
      // A document that was written since it was found has another sequence number, and stays. The refresh keeps the next call from
      // finding what this one deleted.
      const query = { conflicts: 'proceed', max_docs: limit, refresh: true, timeout: '5s' };
      const answer = await client.send({ method: 'POST', path: `/${names.objectsAlias(bucket)}/_delete_by_query`, query, body }, signal);
      if (isIndexMissing(answer)) return { purged: 0 };
      const { deleted } = parseAnswer(purgedSchema, bodyOf(answer, 'index'));
      // each call begins at what is left
      return { purged: deleted, ...(deleted === limit && { next: '' }) };
    },
  };
}

function unsettledBelow(clock: number): readonly unknown[] {
  return [{ term: { settled: false } }, { range: { clock: { lt: clock } } }];
}

function agedFilter({ prefix, modifiedUntilMs, sizeAbove, sizeBelow }: Omit<AgedPage, 'after' | 'limit'>): readonly unknown[] {
  const size = defined({ gt: sizeAbove, lt: sizeBelow });
  return [
    LIVE,
    ...(prefix === '' ? [] : [{ prefix: { key: prefix } }]),
    orUnknown('last_modified', { lte: isoOf(modifiedUntilMs) }),
    ...(Object.keys(size).length === 0 ? [] : [orUnknown('size', size)]),
  ];
}

function orUnknown(field: string, range: Readonly<Record<string, unknown>>): unknown {
  const unknown = { bool: { must_not: [{ exists: { field } }] } };
  return { bool: { should: [{ range: { [field]: range } }, unknown], minimum_should_match: 1 } };
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}
