/**
 * The maintenance of documents by the calendar, on OpenSearch. A tombstone is deleted by the sequence number of the
 * document that has its clock. (A delete with the clock as external_gte version would remove a document with an equal clock
 * that was written meanwhile. It would also create an index if the alias is missing, even with `require_alias`: measured
 * on 3.6.)
 */
import { defined } from '../../domain/defined.ts';
import { z } from 'zod';
import { documentId, objectDocumentSchema } from '../../domain/documents/document.ts';
import { FaultError } from '../../domain/fault.ts';
import type { AgedPage, ObjectMaintenance } from '../../pipeline/ports/object-index.ts';
import type { OpenSearchClient } from './client.ts';
import { bodyOf, isIndexMissing, itemFault, parseAnswer, storeErrorSchema } from './faults.ts';
import type { IndexNames } from './names.ts';
import { sequenceSchema, type Sequence } from './sequence.ts';

interface Page {
  readonly bucket: string;
  readonly filter: readonly unknown[];
  readonly after: string;
  readonly limit: number;
  /** The fields to return; absent: all. */
  readonly fields?: readonly string[];
}

interface Tombstone {
  readonly key: string;
  readonly clock: number;
}

const LIVE = { term: { deleted: false } };
const tombstoneSchema = z.object({ key: z.string(), clock: z.number() });

const hitsSchema = z.object({ hits: z.object({ hits: z.array(z.object({ _source: z.unknown() })) }) });
/** Unsettled documents are few, so they are in few buckets. */
const BUCKETS_MAX = 10_000;
const bucketsSchema = z.object({
  _shards: z.object({ failed: z.number() }),
  aggregations: z
    .object({ buckets: z.object({ sum_other_doc_count: z.number(), buckets: z.array(z.object({ key: z.string() })) }) })
    .optional(),
});
const foundSchema = z.object({
  docs: z.array(
    z.object({
      error: storeErrorSchema.optional(),
      ...sequenceSchema.partial().shape,
      _source: z.object({ clock: z.number(), deleted: z.boolean() }).optional(),
    }),
  ),
});
const deletedSchema = z.object({
  items: z.array(z.object({ delete: z.object({ status: z.number(), error: storeErrorSchema.optional() }) })),
});

/** Creates the maintenance. It needs the permissions of the object index, and `indices:data/write/delete`, on its indices. */
export function createObjectMaintenance(client: OpenSearchClient, names: IndexNames): ObjectMaintenance {
  async function page<Hit>(
    schema: z.ZodType<Hit>,
    { bucket, filter, after, limit, fields }: Page,
    signal: AbortSignal | undefined,
  ): Promise<readonly Hit[]> {
    const body = {
      size: limit,
      query: { bool: { filter } },
      sort: [{ bucket: 'asc' }, { key: 'asc' }],
      search_after: [bucket, after],
      track_total_hits: false,
      ...(fields !== undefined && { _source: fields }),
    };
    const path = `/${names.objectsAlias(bucket)}/_search`;
    const answer = await client.send({ method: 'POST', path, query: { allow_partial_search_results: false }, body }, signal);
    if (isIndexMissing(answer)) return [];
    const { hits } = parseAnswer(hitsSchema, bodyOf(answer, 'index')).hits;
    return parseAnswer(
      z.array(schema),
      hits.map(({ _source }) => _source),
    );
  }

  /** The ids and sequence numbers of those tombstones that still have the same clock, read in realtime. */
  async function currentOf(bucket: string, tombstones: readonly Tombstone[], signal: AbortSignal | undefined) {
    const path = `/${names.objectsAlias(bucket)}/_mget`;
    const ids = tombstones.map(({ key }) => documentId(key));
    const answer = await client.send({ method: 'POST', path, query: { _source: 'clock,deleted' }, body: { ids } }, signal);
    if (isIndexMissing(answer)) return [];
    const { docs } = parseAnswer(foundSchema, bodyOf(answer, 'index'));
    return docs.flatMap(({ error, _source, ...found }, at) => {
      if (error !== undefined && error.type !== 'index_not_found_exception') throw faultOfItem(500, error);
      const [id, tombstone] = [ids[at], tombstones[at]];
      if (id === undefined || _source?.deleted !== true || _source.clock !== tombstone?.clock) return [];
      return [{ id, ...parseAnswer(sequenceSchema, found) }];
    });
  }

  async function deleteAt(bucket: string, tombstones: readonly (Sequence & { readonly id: string })[], signal: AbortSignal | undefined) {
    const _index = names.objectsAlias(bucket);
    const lines = tombstones.map(({ id, _seq_no, _primary_term }) =>
      JSON.stringify({ delete: { _index, _id: id, if_seq_no: _seq_no, if_primary_term: _primary_term } }),
    );
    const answer = await client.send({ method: 'POST', path: '/_bulk', query: { timeout: '5s' }, lines: `${lines.join('\n')}\n` }, signal);
    const { items } = parseAnswer(deletedSchema, bodyOf(answer));
    for (const { delete: item } of items) {
      if (item.error !== undefined && item.error.type !== 'version_conflict_engine_exception') throw faultOfItem(item.status, item.error);
    }
    return items.filter(({ delete: { error } }) => error === undefined).length;
  }

  return {
    unsettled: (bucket, { clockBelow, ...range }, signal) =>
      page(objectDocumentSchema, { bucket, filter: unsettledBelow(clockBelow), ...range }, signal),
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
      return page(objectDocumentSchema, { bucket, filter, ...range }, signal);
    },
    async aged(bucket, { after, limit, ...age }, signal) {
      const documents = await page(objectDocumentSchema, { bucket, filter: agedFilter(age), after, limit }, signal);
      const last = documents.length < limit ? undefined : documents.at(-1)?.key;
      return { documents, ...(last !== undefined && { next: last }) };
    },
    tombstones(bucket, { deletedBeforeMs, ...range }, signal) {
      const filter = [{ term: { deleted: true } }, { range: { deleted_at: { lt: isoOf(deletedBeforeMs) } } }];
      return page(tombstoneSchema, { bucket, filter, ...range, fields: ['key', 'clock'] }, signal);
    },
    async purge(bucket, tombstones, signal) {
      signal?.throwIfAborted();
      if (tombstones.length === 0) return 0;
      const current = await currentOf(bucket, tombstones, signal);
      return current.length === 0 ? 0 : deleteAt(bucket, current, signal);
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

function faultOfItem(status: number, error: z.infer<typeof storeErrorSchema>): FaultError {
  const { code, reason } = itemFault(status, error);
  return new FaultError(code, reason);
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}
