/** Typed access to stored records: each kind's ids and schema, reads, pages of lists, changes by compare-and-swap, and audit records. */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { bucketRecordSchema, unconnectedSchema } from '../records/bucket.ts';
import { processRecordSchema, queueRecordId, queueRecordSchema, probeRecordSchema } from '../records/receiving.ts';
import { auditRecordOf, type AuditFacts, type AuditRecord } from '../base/audit.ts';
import { decodeCursor, encodeCursor } from '../base/cursor.ts';
import { FaultError } from '../base/fault.ts';
import { markHistorySchema, markSchema } from '../records/dirty.ts';
import { jobSchema } from '../records/job.ts';
import { scheduleSchema } from '../records/schedule.ts';
import { eventHourSchema } from '../records/event-hours.ts';
import type { Listed, StateEntry, StateStore, WithPorts } from './store.ts';
import type { StateKind } from '../records/state-kind.ts';

/** A round is lost only when another change was stored, so ten lost rounds in a row are unlikely below hundreds of workers. */
const ATTEMPTS_MAX = 10;
const BACKOFF_MIN_MS = 10;
const BACKOFF_MAX_MS = 500;
/** The most entries that one request lists. */
const LIST_MAX = 1_000;

/** The id, kind and schema of one record. */
export interface RecordRef<Schema extends z.ZodObject> {
  readonly id: string;
  readonly kind: StateKind;
  readonly schema: Schema;
}

/** The beginning of the ids of an hour's records. Times have as many digits until the year 2286, so that ids sort by them. */
export function eventHourIdOf(ms: number): string {
  return `event-hour:${ms}`;
}

/** The beginning of the ids of a bucket's gaps; without a bucket, of all. */
export function gapIdsOf(bucket?: string): string {
  return bucket === undefined ? 'gap:' : `gap:${bucket}:`;
}

/** The beginning of the id of a bucket's closed gaps; without a bucket, of all. */
export function gapHistoryIdsOf(bucket?: string): string {
  return bucket === undefined ? 'gap-history:' : `gap-history:${bucket}:`;
}

/** The reference to a record of each kind that several subjects share. The records of logins, users, API keys and grants are in identity/refs.ts. */
export const refs = {
  bucket: (bucket: string) => ({ id: `bucket:${bucket}`, kind: 'bucket', schema: bucketRecordSchema }) as const,
  unconnected: (bucket: string) => ({ id: `unconnected:${bucket}`, kind: 'unconnected', schema: unconnectedSchema }) as const,
  gap: (id: string) => ({ id, kind: 'gap', schema: markSchema }) as const,
  gapHistory: (bucket: string) => ({ id: `${gapHistoryIdsOf(bucket)}closed`, kind: 'gap-history', schema: markHistorySchema }) as const,
  job: (jobId: string) => ({ id: `job:${jobId}`, kind: 'job', schema: jobSchema }) as const,
  process: (worker: string) => ({ id: `process:${worker}`, kind: 'process', schema: processRecordSchema }) as const,
  schedule: (name: string) => ({ id: `schedule:${name}`, kind: 'schedule', schema: scheduleSchema }) as const,
  eventHour: (hourMs: number, worker: string) =>
    ({ id: `${eventHourIdOf(hourMs)}:${worker}`, kind: 'event-hour', schema: eventHourSchema }) as const,
  probe: (topicArn: string) => ({ id: `probe:${topicArn}`, kind: 'probe', schema: probeRecordSchema }) as const,
  queue: (queueUrl: string) => ({ id: queueRecordId(queueUrl), kind: 'queue', schema: queueRecordSchema }) as const,
};

/** Reads the record; undefined if it is not stored. Throws the store's fault, and `record.newer` for a record that does not match its schema. */
export async function readRecord<Schema extends z.ZodObject>(
  state: StateStore,
  ref: Pick<RecordRef<Schema>, 'id' | 'schema'>,
  signal?: AbortSignal,
): Promise<z.infer<Schema> | undefined> {
  const entry = await state.get(ref.id, signal);
  return entry === undefined ? undefined : parseEntry(entry, ref.schema);
}

/**
 * Stores the record that `change` returns, and resolves with it. Nothing is written if `change` returns undefined or the
 * same object that it was given. `change` may be called again with a newer record, and may throw. Fields that a newer
 * version of Tally stored are kept. `listed: 'soon'` does not wait until lists show the record (see StateStore.put). Throws the
 * store's fault, `record.contended` after ten lost rounds (at most 4 s), and `internal.unexpected` for a record that could not be
 * read again.
 */
export async function updateRecord<Schema extends z.ZodObject, Next extends z.infer<Schema> | undefined>(
  state: StateStore,
  ref: RecordRef<Schema>,
  change: (current: z.infer<Schema> | undefined) => Next,
  listed: Listed = 'now',
): Promise<Next> {
  return retryConflicts(ref.id, async () => {
    const entry = await state.get(ref.id);
    const current = entry === undefined ? undefined : parseEntry(entry, ref.schema);
    const next = change(current);
    if (next === undefined || next === current) return { done: next };
    const record = keepingUnknown(entry, ref.schema, next, ref.id);
    const stored = await state.put({ id: ref.id, kind: ref.kind, record, listed }, entry?.version ?? null);
    return stored === 'conflict' ? 'conflict' : { done: next };
  });
}

/** Deletes the record if it is stored, whatever it contains by then. Throws as updateRecord does. */
export async function removeRecord(state: StateStore, id: string): Promise<void> {
  await retryConflicts(id, async () => {
    const entry = await state.get(id);
    if (entry !== undefined && (await state.remove(id, entry.version)) === 'conflict') return 'conflict';
    return { done: undefined };
  });
}

/**
 * Lists all records of a kind in id order. Only for kinds whose number is bounded (buckets, gaps, unconnected names). A record
 * that cannot be read is left out: a newer version wrote it, and it must not hide the others.
 */
export async function listAllRecords<Schema extends z.ZodObject>(
  state: StateStore,
  kind: StateKind,
  schema: Schema,
  walk?: Walk,
): Promise<readonly z.infer<Schema>[]> {
  return (await listAllEntries(state, kind, walk)).flatMap((entry) => {
    const parsed = schema.safeParse(entry.record);
    return parsed.success ? [parsed.data] : [];
  });
}

/** Lists the entries of a kind in id order, including those that this version cannot read: all, or those of the walk. */
export async function listAllEntries(state: StateStore, kind: StateKind, walk?: Walk): Promise<readonly StateEntry[]> {
  return (await Array.fromAsync(pagesOf(state, kind, walk))).flat();
}

interface Walk {
  /** Only entries whose ids begin with this. */
  readonly prefix?: string;
  /** Only entries after this id. */
  readonly after?: string | undefined;
  /** The most entries of one page; 1 to 1,000. */
  readonly limit?: number;
  readonly signal?: AbortSignal | undefined;
}

/** Reads the entries of a kind page by page, in id order, so that entries with a prefix follow each other. What has been read may be removed meanwhile. */
export async function* pagesOf(
  state: Pick<StateStore, 'list'>,
  kind: StateKind,
  { prefix = '', after = prefix, limit = LIST_MAX, signal }: Walk = {},
): AsyncGenerator<readonly StateEntry[], void> {
  for (let last = after === '' ? undefined : after, isWhole = true; isWhole;) {
    const entries = await state.list(kind, { after: last, limit }, signal);
    const found = entries.filter(({ id }) => id.startsWith(prefix));
    yield found;
    isWhole = found.length === limit;
    last = found.at(-1)?.id;
  }
}

/** Parses a stored record. Throws `record.newer` if it does not match the schema. */
export function parseEntry<Schema extends z.ZodObject>(entry: StateEntry, schema: Schema): z.infer<Schema> {
  const parsed = schema.safeParse(entry.record);
  if (parsed.success) return parsed.data;
  throw new FaultError('record.newer', `the stored record ${entry.id} does not match its schema: ${z.prettifyError(parsed.error)}`);
}

/**
 * The next record plus the stored fields that its schema does not contain: an older worker must not remove what a newer one stored.
 * Throws `internal.unexpected` for a record that could not be read again, such as one with an infinite number: JSON has none.
 */
export function keepingUnknown<Schema extends z.ZodObject>(
  entry: StateEntry | undefined,
  schema: Schema,
  next: z.infer<Schema>,
  id = entry?.id,
): Record<string, unknown> {
  const again = schema.safeParse(JSON.parse(JSON.stringify(next)));
  if (!again.success) {
    const reason = `the record ${id} was not stored, because it could not be read again: ${z.prettifyError(again.error)}`;
    throw new FaultError('internal.unexpected', reason);
  }
  if (typeof entry?.record !== 'object' || entry.record === null) return next;
  return { ...Object.fromEntries(Object.entries(entry.record).filter(([name]) => !(name in schema.shape))), ...next };
}

async function retryConflicts<Result>(id: string, attempt: () => Promise<{ readonly done: Result } | 'conflict'>): Promise<Result> {
  for (let round = 0; round < ATTEMPTS_MAX; round += 1) {
    const result = await attempt();
    if (result !== 'conflict') return result.done;
    await sleep(Math.random() * Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** round));
  }
  throw new FaultError('record.contended', `other writers changed the record ${id} ${ATTEMPTS_MAX} times in a row`);
}

// ── pages of lists: we read one item more than the page holds, to see whether another page follows ───────────────────

/** One page of a list; `next` is absent on the last page. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly next?: string;
}

interface PageSource<Item, Position> {
  readonly limit: number;
  /** The position that the request's cursor names. */
  readonly after: Position | undefined;
  /** Returns up to `limit` (1 to 1,000) items after a position, in order. */
  readonly fetch: (limit: number, after: Position | undefined) => Promise<readonly Item[]>;
  readonly positionOf: (item: Item) => Position;
}

/** Reads one page. It has a `next` only if another item follows. */
export async function readPage<Item, Position extends readonly string[]>(source: PageSource<Item, Position>): Promise<Page<Item>> {
  const { limit, fetch, positionOf } = source;
  const fetched = await fetch(Math.min(limit + 1, LIST_MAX), source.after);
  const items = fetched.slice(0, limit);
  const last = items.at(-1);
  if (last === undefined || items.length < limit) return { items };
  // a page of the largest size leaves no room to fetch one item more
  const hasMore = fetched.length > limit || (limit === LIST_MAX && (await fetch(1, positionOf(last))).length > 0);
  return hasMore ? { items, next: encodeCursor(positionOf(last)) } : { items };
}

/** Reads one page of the stored records of a kind, in the order of their ids. Throws `request.invalid` for a cursor that no page returned. */
export function readEntries(
  state: Pick<StateStore, 'list'>,
  kind: StateKind,
  { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
  signal?: AbortSignal,
): Promise<Page<StateEntry>> {
  return readPage({
    limit,
    after: decodeCursor(cursor, 1),
    fetch: (count, position) => state.list(kind, { limit: count, after: position?.[0] }, signal),
    positionOf: ({ id }) => [id],
  });
}

// ── records of the audit about what has happened ─────────────────────────────────────────────────────────────────────

/** Creates a record with a new id. */
export function newAuditRecord(facts: AuditFacts): AuditRecord {
  return auditRecordOf(facts, randomBytes(6).toString('hex'));
}

/**
 * Logs and stores a record about what has happened already. Never rejects: a failure is logged, and changes nothing. It takes
 * no signal, because what has happened is recorded even if its caller has left.
 */
export async function storeAuditRecord({ audit, telemetry }: WithPorts<'audit' | 'telemetry'>, record: AuditRecord): Promise<void> {
  telemetry.audited(record);
  try {
    await audit.append(record);
  } catch (error) {
    telemetry.requestFailed('store an audit record', error);
  }
}

// ── the probe of a store ─────────────────────────────────────────────────────────────────────────────────────────────

/** The record that probes write. Its kind is one that every version knows. */
const PROBE_ID = 'lock:probe';

/**
 * Reads a record of the state and swaps it. So it meets what prevents a real write: connection, credentials, a block of the cluster
 * or of the state index, a missing primary, a full queue, a full disk.
 */
export async function probeState(state: Pick<StateStore, 'get' | 'put'>, signal?: AbortSignal): Promise<void> {
  const stored = await state.get(PROBE_ID, signal);
  // a conflict is no failure: another process has written the record since
  await state.put({ id: PROBE_ID, kind: 'lock', record: {} }, stored?.version ?? null, signal);
}
