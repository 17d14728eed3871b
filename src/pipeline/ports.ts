/**
 * The ports: everything that the pipeline asks of the world, in our own words. Adapters implement these; nothing in
 * pipeline/ or domain/ knows a vendor. Adapters throw {@link FaultError} and nothing else; whatever waits takes an
 * AbortSignal last and rejects with the signal's reason when it is aborted.
 */
import type { ObjectDocument, ObjectState } from '../domain/document.ts';
import type { FaultCode } from '../domain/fault.ts';
import type { Dialect } from '../domain/events/record.ts';
import type { OutcomeKind } from '../domain/outcome.ts';
import type { StateKind } from '../domain/state-kind.ts';
import type { QueryWords } from '../domain/words.ts';
import type { Versioning } from '../domain/bucket.ts';
import type { EnrichFact, VersionDetails } from './ports-enrich.ts';
import type { Traced, TracedBucket } from './ports-tracing.ts';
import type { CalendarTelemetry, ObjectMaintenance, ObjectScan, ReindexTelemetry } from './ports-reindex.ts';

// ── time ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Clock {
  /** Wall clock, ms since the epoch. Never decides an order. */
  nowMs(): number;
  /** Monotonic clock, ms from an arbitrary start: for durations and expiry. */
  monotonicMs(): number;
  /** Resolves after `delayMs`; rejects with the signal's reason when aborted before. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}

// ── the object index ──────────────────────────────────────────────────────────────────────────────────────────────

/** One conditional write of a whole document at its clock. */
export interface IndexWrite extends Traced {
  readonly document: ObjectDocument;
  /** What to do when the store holds the very same clock: `accept` overwrites (external_gte), `refuse` answers `equal`. A higher stored clock always refuses. */
  readonly equalClock: 'accept' | 'refuse';
}

export type IndexWriteAnswer =
  | { readonly kind: 'written' }
  /** Refused: the store holds a higher clock. */
  | { readonly kind: 'stale' }
  /** Refused: the store holds this very clock (only where `equalClock` is `refuse`). */
  | { readonly kind: 'equal' }
  | { readonly kind: 'fault'; readonly code: FaultCode; readonly reason: string };

export interface ObjectQuery {
  /** Only this bucket; absent: all. */
  readonly bucket?: string;
  readonly key?: string;
  readonly prefix?: string;
  readonly words?: QueryWords;
  /** Lower case, without the dot. */
  readonly extension?: string;
  /** Only documents after this (bucket, key) in UTF-8 byte order. */
  readonly after?: { readonly bucket: string; readonly key: string };
  /** 1 to 1,000. */
  readonly limit: number;
}

export interface ObjectIndex {
  /**
   * Sends one request and answers each write, in order. A whole-request failure throws its fault: `index.overloaded` for
   * 429, `index.unreachable`, `index.blocked`, `index.denied`; a request too large for the server (413) is halved by the
   * adapter until it fits, a single write that does not fit is `index.rejected`. Documents are validated before: no id
   * or line that would fail the whole request can be built.
   */
  write(writes: readonly IndexWrite[], signal?: AbortSignal): Promise<readonly IndexWriteAnswer[]>;
  /** What is stored for each key, tombstones included, realtime, in order; undefined where nothing is stored. */
  getMany(bucket: string, keys: readonly string[], signal?: AbortSignal): Promise<readonly (ObjectDocument | undefined)[]>;
  /** Live documents in (bucket, key) order by UTF-8 bytes, at most one refresh behind. */
  search(query: ObjectQuery, signal?: AbortSignal): Promise<readonly ObjectDocument[]>;
  /** Makes what the bucket's documents need (index, aliases); idempotent. */
  createBucket(bucket: string, signal?: AbortSignal): Promise<void>;
  /** Deletes the bucket's documents and what holds them; idempotent. */
  removeBucket(bucket: string, signal?: AbortSignal): Promise<void>;
  /** Throws the fault that now keeps every write from succeeding (unreachable, denied, cluster-wide or flood-stage block, block on the state index); returns when there is none. */
  probe(signal?: AbortSignal): Promise<void>;
}

// ── state: the product's own records ──────────────────────────────────────────────────────────────────────────────

/** Opaque: what a compare-and-swap compares. */
export type StateVersion = string;

export interface StateEntry {
  readonly id: string;
  readonly kind: StateKind;
  /** Plain JSON; parse it with the record's schema. */
  readonly record: unknown;
  readonly version: StateVersion;
}

export interface StateStore {
  /** By id, realtime. Throws `index.state-missing` when there is no state at all. */
  get(id: string, signal?: AbortSignal): Promise<StateEntry | undefined>;
  /**
   * Writes iff the stored version is `expected` (null: iff nothing is stored). `conflict` when it is not. Durable, and
   * visible to list(), when it resolves. Ids are at most 512 bytes.
   */
  put(
    entry: { readonly id: string; readonly kind: StateKind; readonly record: unknown },
    expected: StateVersion | null,
    signal?: AbortSignal,
  ): Promise<StateEntry | 'conflict'>;
  /** Deletes iff the stored version is `expected`; an absent id counts as done. */
  remove(id: string, expected: StateVersion, signal?: AbortSignal): Promise<'removed' | 'conflict'>;
  /** Entries of one kind in id order (UTF-8 bytes), after the given id. At most `limit` (1 to 1,000). */
  list(kind: StateKind, page: { readonly after?: string; readonly limit: number }, signal?: AbortSignal): Promise<readonly StateEntry[]>;
  /** How many entries of the kind there are. */
  count(kind: StateKind, signal?: AbortSignal): Promise<number>;
}

/** Prepares the store for this version before `ingest` is ready: templates, state index, additive mapping upgrades, under a lock. Idempotent and safe to run from many workers at once. */
export interface IndexSetup {
  prepare(signal?: AbortSignal): Promise<void>;
}

/** All that a store adapter provides. */
export interface Store {
  readonly objects: ObjectIndex;
  readonly scan: ObjectScan;
  readonly state: StateStore;
  readonly setup: IndexSetup;
  readonly maintenance: ObjectMaintenance;
  /** `opensearch` or `sqlite`, for logs. */
  readonly product: 'opensearch' | 'sqlite';
  close(): Promise<void>;
}

// ── S3 ────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** One look at a key. `observedAtMs` is D: the Date header (whole seconds) minus the measured duration of the request. */
export interface Observation {
  readonly state: ObjectState;
  readonly observedAtMs: number;
}

export interface ObjectStorage extends VersionDetails {
  /**
   * The present state of a key, by HEAD; where HEAD answers 403 or 400, by ListObjectsV2 with an exact compare. 404 and
   * 404/405 with `x-amz-delete-marker` are absence **iff** the bucket itself answered HeadBucket 200 within the last
   * 60 s (asked here when needed). Throws `object.denied`, `object.undated`, `object.failed`, `bucket.missing`,
   * `s3.unavailable`, `s3.throttled`, `s3.credentials`.
   */
  observe(bucket: TracedBucket, key: string, signal?: AbortSignal): Promise<Observation>;
  /** The bucket's region, from HeadBucket. Throws `bucket.missing` when there is none. */
  regionOf(bucket: string, signal?: AbortSignal): Promise<string>;
  /** GetBucketVersioning with its D. `unknown` when it is denied. */
  versioningOf(bucket: { readonly bucket: string; readonly region: string }, signal?: AbortSignal): Promise<Versioning>;
  /** Whether S3 answers at all for this bucket: throws the shared fault that it answers with. */
  probe(bucket: { readonly bucket: string; readonly region: string }, signal?: AbortSignal): Promise<void>;
}

// ── telemetry ─────────────────────────────────────────────────────────────────────────────────────────────────────

export type SettlementKind = 'delete' | 'defer' | 'wait' | 'dead-letter' | 'give-back';

/** Facts about what happened; one adapter decides log line, counter and labels. Labels never hold keys or ids. */
export interface Telemetry extends ReindexTelemetry, CalendarTelemetry {
  recordEnded(fact: {
    /** `unknown`: the record could not even be told apart. */
    readonly dialect: Dialect | 'unknown';
    readonly outcome: OutcomeKind;
    readonly eventName: string;
    readonly fault?: FaultCode;
  }): void;
  /** Event time → its first write acknowledged, final or provisional. */
  eventLag(lagMs: number): void;
  unknownEvent(eventName: string): void;
  messageSettled(kind: SettlementKind): void;
  /** A message about the wiring was handled. */
  serviceMessage(kind: 'test-event' | 'subscription-confirmation' | 'unsubscribe-confirmation'): void;
  /** A dead letter was sent. The body is never logged. */
  deadLettered(fact: { readonly code: FaultCode; readonly reason: string; readonly messageId: string }): void;
  bulkSent(fact: {
    readonly actions: number;
    readonly sizeBytes: number;
    readonly durationMs: number;
    readonly result: 'ok' | FaultCode;
  }): void;
  bulkAnswered(kind: 'written' | 'stale' | 'equal' | 'expired' | 'fault', count: number): void;
  bulkQueue(fact: { readonly actionsQueued: number; readonly requestsInFlight: number }): void;
  headSent(fact: { readonly durationMs: number; readonly result: 'present' | 'absent' | FaultCode }): void;
  heads(fact: { readonly queued: number; readonly inFlight: number }): void;
  /** A live document was, or was not, enriched. */
  enriched(fact: EnrichFact): void;
  held(messages: number): void;
  queueDepth(
    queue: 'bucket' | 'work' | 'dead-letter',
    depth: { readonly visible: number; readonly inFlight: number; readonly delayed: number },
  ): void;
  oldestMessageAge(ageMs: number): void;
  gapsOpen(open: readonly { readonly bucket: string; readonly kind: string; readonly count: number }[]): void;
  jobs(states: Readonly<Record<string, number>>): void;
  /** A shared fault began or ended; said once each. */
  paused(code: FaultCode, reason: string): void;
  resumed(code: FaultCode, pausedMs: number): void;
  /** A bucket's records are parked, or go on. */
  bucketParked(bucket: string, code: FaultCode, reason: string): void;
  bucketResumed(bucket: string): void;
  /** Receiving is held back, by reason, or not; told first when receiving begins. */
  receiving(state: 'on' | 'held-full' | 'in-flight-cap' | 'paused' | 'no-bucket'): void;
  /** How many workers would drain the backlog in time. */
  workersWanted(workers: number): void;
  /** Whether this process can do the role now. */
  ready(role: 'ingest' | 'reindex' | 'http', isReady: boolean): void;
  requestFailed(operation: string, code: FaultCode, reason: string): void;
  bucketConnected(bucket: string, by: string): void;
  unconnected(bucket: string, count: number): void;
  gapSeen(bucket: string, kind: string, reason: string): void;
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
}
