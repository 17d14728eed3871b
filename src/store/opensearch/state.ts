import { z } from 'zod';
import { FaultError } from '../../base/fault.ts';
import type { Clock } from '../../process/clock.ts';
import type { Listed, StateEntry, StateStore, StateVersion } from '../store.ts';
import { stateKinds } from '../../records/state-kind.ts';
import type { OpenSearchClient } from './client.ts';
import { type StoreError, itemFault, parseAnswer, stateBody, stateFault, storeErrorSchema } from './faults.ts';
import type { IndexNames } from './setup.ts';

interface StateDependencies {
  readonly client: OpenSearchClient;
  readonly names: IndexNames;
  readonly clock: Clock;
}

/** What identifies one version of a document: OpenSearch's sequence number and primary term. */
const sequenceSchema = z.object({ _seq_no: z.number(), _primary_term: z.number() });
type Sequence = z.infer<typeof sequenceSchema>;

/** The document of a record. `record` is stored unchanged and not indexed; `due_at_ms` repeats its `dueAtMs`, by which due() searches. */
const sourceSchema = z.object({ id: z.string(), kind: z.enum(stateKinds), record: z.unknown() });

const foundSchema = z.object({
  docs: z.tuple([
    z.union([
      z.object({ error: storeErrorSchema }),
      z.object({ found: z.literal(false) }),
      sequenceSchema.extend({ found: z.literal(true), _source: sourceSchema.optional() }),
    ]),
  ]),
});

const itemSchema = z.object({ status: z.number(), error: storeErrorSchema.optional(), ...sequenceSchema.partial().shape });
type Item = z.infer<typeof itemSchema>;
/** The answer to one operation. The operation's name, which is the item's key, is ignored. */
const bulkSchema = z.object({
  items: z.tuple([
    z
      .record(z.string(), itemSchema)
      .transform((item) => Object.values(item)[0])
      .pipe(itemSchema),
  ]),
});

const listSchema = z.object({ hits: z.object({ hits: z.array(sequenceSchema.extend({ _source: sourceSchema })) }) });
const dueSchema = z.object({
  hits: z.object({ hits: z.array(z.object({ _source: z.object({ id: z.string() }) })) }),
});
const dueRecordSchema = z.object({ dueAtMs: z.number() });
const countSchema = z.object({ hits: z.object({ total: z.object({ value: z.number() }) }) });

/**
 * Creates the state store: records are documents of one index, and compare-and-swap uses sequence number and primary term.
 * Requests contain ids in their bodies, never in a path. The index is refreshed every 200 ms and not every second, because
 * most writes wait for the next refresh, so that list() returns them.
 */
export function createStateStore({ client, names, clock }: StateDependencies): StateStore {
  async function find(id: string, source: boolean, signal: AbortSignal | undefined) {
    const body = { docs: [{ _id: id, _source: source }] };
    const answer = await client.send({ method: 'POST', path: `/${names.state}/_mget`, body }, signal);
    const document = parseAnswer(foundSchema, stateBody(answer)).docs[0];
    if ('error' in document) throw stateFault(itemFault(500, document.error));
    return document.found ? document : undefined;
  }

  async function get(id: string, signal?: AbortSignal): Promise<StateEntry | undefined> {
    const document = await find(id, true, signal);
    return document && { ...entryOf(sourceSchema.parse(document._source)), version: versionOf(document) };
  }

  /** Sends one conditional operation. */
  async function swap({ operation, lines = '', listed = 'now' }: Swap, signal?: AbortSignal): Promise<Item> {
    const answer = await client.send(
      {
        method: 'POST',
        path: '/_bulk',
        // require_alias: a deleted state index must not be created again by this write, empty and without its mapping
        query: { require_alias: true, ...(listed === 'now' && { refresh: 'wait_for' }), timeout: '5s' },
        lines: `${JSON.stringify(operation)}\n${lines}`,
      },
      signal,
    );
    return parseAnswer(bulkSchema, stateBody(answer)).items[0];
  }

  async function search(query: object, body: Readonly<Record<string, unknown>>, signal?: AbortSignal): Promise<unknown> {
    const answer = await client.send(
      {
        method: 'POST',
        path: `/${names.state}/_search`,
        // the primary is searched, because the refresh that a write waited for happened there with every kind of replication
        query: { allow_partial_search_results: false, preference: '_primary' },
        body: { ...body, query },
      },
      signal,
    );
    return stateBody(answer);
  }

  return {
    get,

    async version(id, signal) {
      const document = await find(id, false, signal);
      return document && versionOf(document);
    },

    async put({ id, kind, record, listed }, expected, signal) {
      signal?.throwIfAborted();
      const sequence = expected === null ? null : sequenceOf(expected);
      if (sequence === undefined) return 'conflict';
      const target = { _index: names.state, _id: id };
      const operation = sequence === null ? { create: target } : { index: { ...target, ...conditionOf(sequence) } };
      const due = dueRecordSchema.safeParse(record);
      const dueAt = due.success ? { due_at_ms: due.data.dueAtMs } : {};
      const document = { id, kind, record, ...dueAt, updated_at: new Date(clock.nowMs()).toISOString() };
      const item = await swap({ operation, lines: `${JSON.stringify(document)}\n`, listed }, signal);
      if (isConflict(item.error)) return 'conflict';
      return { id, kind, record, version: versionOf(written(item)) };
    },

    async remove(id, expected, signal, listed) {
      signal?.throwIfAborted();
      const sequence = sequenceOf(expected);
      const target = { _index: names.state, _id: id };
      const item = sequence && (await swap({ operation: { delete: { ...target, ...conditionOf(sequence) } }, listed }, signal));
      if (item === undefined || isConflict(item.error)) return (await get(id, signal)) === undefined ? 'removed' : 'conflict';
      written(item);
      return 'removed';
    },

    async due({ nowMs, aheadMaxMs, limit }, signal) {
      const should = [{ range: { due_at_ms: { lte: nowMs } } }, { range: { due_at_ms: { gt: nowMs + aheadMaxMs } } }];
      const query = { bool: { filter: [{ term: { kind: 'job' } }, { bool: { should } }] } };
      const body = await search(
        { function_score: { query, random_score: {}, boost_mode: 'replace' } },
        { size: limit, _source: ['id'], track_total_hits: false },
        signal,
      );
      return parseAnswer(dueSchema, body).hits.hits.map(({ _source: { id } }) => id);
    },

    async list(kind, { after, limit }, signal) {
      const page = { size: limit, sort: [{ id: 'asc' }], ...(after !== undefined && { search_after: [after] }) };
      const body = await search(ofKind(kind), { ...page, seq_no_primary_term: true, track_total_hits: false }, signal);
      return parseAnswer(listSchema, body).hits.hits.map((hit) => ({ ...entryOf(hit._source), version: versionOf(hit) }));
    },

    async count(kind, signal) {
      const body = await search(ofKind(kind), { size: 0, track_total_hits: true }, signal);
      return parseAnswer(countSchema, body).hits.total.value;
    },
  };
}

interface Swap {
  readonly operation: Readonly<Record<string, unknown>>;
  /** The document line with its newline; a deletion has none. */
  readonly lines?: string;
  readonly listed?: Listed | undefined;
}

function ofKind(kind: string): object {
  return { bool: { filter: [{ term: { kind } }] } };
}

function entryOf({ id, kind, record }: z.infer<typeof sourceSchema>): Omit<StateEntry, 'version'> {
  return { id, kind, record };
}

function versionOf({ _seq_no, _primary_term }: Sequence): StateVersion {
  return `${_seq_no}:${_primary_term}`;
}

/** The sequence numbers in a version. Undefined if it is not a version of this store; then it equals no stored version. */
function sequenceOf(version: StateVersion): Sequence | undefined {
  const [, seqNo, primaryTerm] = /^(\d{1,15}):(\d{1,15})$/.exec(version) ?? [];
  return seqNo === undefined ? undefined : { _seq_no: Number(seqNo), _primary_term: Number(primaryTerm) };
}

function conditionOf({ _seq_no, _primary_term }: Sequence): { readonly if_seq_no: number; readonly if_primary_term: number } {
  return { if_seq_no: _seq_no, if_primary_term: _primary_term };
}

function isConflict(error: StoreError | undefined): boolean {
  return error?.type === 'version_conflict_engine_exception';
}

/** The sequence numbers of the written document. Throws the fault if the operation was refused. */
function written(item: Item): Sequence {
  if (item.error !== undefined) throw stateFault(itemFault(item.status, item.error));
  const sequence = sequenceSchema.safeParse(item);
  if (!sequence.success)
    throw new FaultError('internal.unexpected', `OpenSearch answered a write of state with ${item.status} and without a sequence number`);
  return sequence.data;
}
