/**
 * The audit in OpenSearch: one index per month, so that old records are deleted as whole indices. Records are created by id, so
 * a repeated request stores a record once.
 */
import { z } from 'zod';
import { auditIdAt, auditMonthEndMs, auditMonthOf, auditRecordSchema } from '../../base/audit.ts';
import type { AuditQuery, AuditStore } from '../store.ts';
import type { OpenSearchAnswer, OpenSearchClient } from './client.ts';
import { bodyOf, isIndexMissing, itemFault, parseAnswer, stateBody, stateFault, storeErrorSchema } from './faults.ts';
import { type IndexNames, createAliased } from './setup.ts';

interface AuditDependencies {
  readonly client: OpenSearchClient;
  readonly names: IndexNames;
  /** Settings and mappings of a month's index. */
  readonly newIndex: Readonly<Record<string, unknown>>;
}

const itemSchema = z.object({ status: z.number(), result: z.string().optional(), error: storeErrorSchema.optional() });
const createdSchema = z.object({ items: z.tuple([z.object({ create: itemSchema })]) });
const hitsSchema = z.object({ hits: z.object({ hits: z.array(z.object({ _source: auditRecordSchema })) }) });
const indicesSchema = z.record(z.string(), z.unknown());

/** Creates the audit. It needs the permissions of the object index, and `indices:admin/get`, on its indices. */
export function createOpenSearchAudit({ client, names, newIndex }: AuditDependencies): AuditStore {
  async function createIndex(month: string, signal?: AbortSignal): Promise<void> {
    // a store that was never prepared must stay empty
    stateBody(await client.send({ method: 'GET', path: `/${names.state}`, query: { filter_path: '*.aliases' } }, signal));
    await createAliased(client, { index: names.auditIndex(month), alias: names.auditAlias(month), definition: newIndex }, signal);
  }

  async function create(month: string, id: string, { line, signal }: { readonly line: string; readonly signal: AbortSignal | undefined }) {
    const operation = JSON.stringify({ create: { _index: names.auditAlias(month), _id: id } });
    const lines = `${operation}\n${line}\n`;
    const query = { require_alias: true, timeout: '5s' };
    const answer = await client.send({ method: 'POST', path: '/_bulk', query, lines, repeatable: true }, signal);
    return parseAnswer(createdSchema, bodyOf(answer)).items[0].create;
  }

  return {
    async append(record, signal) {
      signal?.throwIfAborted();
      const month = auditMonthOf(record);
      const request = { line: JSON.stringify(record), signal };
      let item = await create(month, record.id, request);
      if (item.error?.type === 'index_not_found_exception') {
        // the first record of its month, or the index was deleted
        await createIndex(month, signal);
        item = await create(month, record.id, request);
      }
      // a conflict: an earlier attempt has stored the record
      if (item.result === 'created' || item.error?.type === 'version_conflict_engine_exception') return;
      throw stateFault(
        itemFault(item.status, item.error ?? { type: `result ${item.result ?? 'missing'}`, reason: 'the write had no effect' }),
      );
    },

    async list({ before, limit, ...query }, signal) {
      const body = {
        size: limit,
        query: { bool: { filter: filterOf(query) } },
        sort: [{ id: 'desc' }],
        track_total_hits: false,
        ...(before !== undefined && { search_after: [before] }),
      };
      const options = { allow_partial_search_results: false, allow_no_indices: true, ignore_unavailable: true };
      const answer = await client.send({ method: 'POST', path: `/${names.auditPattern}/_search`, query: options, body }, signal);
      return parseAnswer(hitsSchema, bodyOf(answer)).hits.hits.map(({ _source }) => _source);
    },

    async purge(beforeMs, signal) {
      const query = { filter_path: '*.settings.index.uuid', expand_wildcards: 'open,closed' };
      const answer = await client.send({ method: 'GET', path: `/${names.auditPattern}`, query }, signal);
      const [oldest] = oldIndices(answer, names, beforeMs);
      if (oldest === undefined) return 'none';
      const deleted = await client.send({ method: 'DELETE', path: `/${oldest}`, changesCluster: true }, signal);
      // another worker was faster
      if (!isIndexMissing(deleted)) bodyOf(deleted);
      return 'more';
    },
  };
}

function filterOf({ fromMs, toMs, email, event, key }: Omit<AuditQuery, 'limit' | 'before'>): readonly unknown[] {
  const id = { ...(fromMs !== undefined && { gte: auditIdAt(fromMs) }), ...(toMs !== undefined && { lt: auditIdAt(toMs) }) };
  const auth = 'useridentity.sessionContext.auth';
  const keys = [{ term: { [`${auth}.keyName`]: key } }, { term: { [`${auth}.keyFingerprint`]: key } }];
  return [
    ...(Object.keys(id).length === 0 ? [] : [{ range: { id } }]),
    ...(event === undefined ? [] : [{ term: { eventname: event } }]),
    ...(email === undefined ? [] : [{ term: { 'useridentity.email': email } }]),
    ...(key === undefined ? [] : [{ bool: { should: keys, minimum_should_match: 1 } }]),
  ];
}

/** The indices of months that ended at or before this moment, oldest first. Other indices are never deleted. */
function oldIndices(answer: OpenSearchAnswer, names: IndexNames, beforeMs: number): readonly string[] {
  const beginning = names.auditIndex('');
  return Object.keys(parseAnswer(indicesSchema, bodyOf(answer)))
    .filter((index) => index.startsWith(beginning) && (auditMonthEndMs(index.slice(beginning.length)) ?? Infinity) <= beforeMs)
    .sort();
}
