/**
 * What a store provides. Both stores, OpenSearch and SQLite, keep the same contract (test/contracts/store-contract.ts):
 *
 *   objects       documents, written at their clocks: an older write never replaces a newer document. Reads and searches
 *   scan          a range of keys in order, to compare with an S3 listing
 *   usage         sums over a search's results
 *   maintenance   for the calendar: documents that have expired or are not settled, purges of tombstones
 *   state         Tally's own records, by compare-and-swap
 *   audit         who did what
 *
 * Adapters throw {@link FaultError} and nothing else; a function that waits takes an AbortSignal as its last parameter and
 * rejects with the signal's reason when it is aborted.
 */
import type { z } from 'zod';
import type { AuditEvent, AuditRecord } from '../base/audit.ts';
import type { Fault } from '../base/fault.ts';
import { objectDocumentSchema, type ObjectDocument } from '../ordering/document.ts';
import type { QueryWords } from '../base/words.ts';
import type { Clock } from '../process/clock.ts';
import type { Telemetry } from '../process/telemetry.ts';
import type { Position } from '../records/position.ts';
import type { StateKind } from '../records/state-kind.ts';
import type { Condition, SortField, SortOrder } from './conditions.rules.ts';
import type { UsageBy } from './groups.rules.ts';
import type { BucketPart } from './readable.rules.ts';

export interface Store {
  readonly objects: ObjectIndex;
  readonly scan: ObjectScan;
  readonly state: StateStore;
  readonly audit: AuditStore;
  readonly setup: {
    /**
     * Makes what is missing of the store (state index, file); `ingest` is ready only afterwards. Throws
     * `index.other-version` for the store of another version, which stays as it is. Idempotent, and safe to run from many workers at
     * the same time.
     */
    prepare(signal?: AbortSignal): Promise<void>;
  };
  readonly maintenance: ObjectMaintenance;
  readonly usage: SumUsage;
  /** `opensearch` or `sqlite`, for logs. */
  readonly product: 'opensearch' | 'sqlite';
  close(): Promise<void>;
}

/** The ports that most of the pipeline needs. */
interface Ports {
  readonly state: StateStore;
  /** Where actions are recorded. */
  readonly audit: Pick<AuditStore, 'append'>;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/** The ports that something needs. */
export type WithPorts<Names extends keyof Ports> = Pick<Ports, Names>;

// ── documents ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** One conditional write of a whole document at its clock. */
export interface IndexWrite {
  readonly document: ObjectDocument;
  /** What to do if the store holds the same clock: `accept` overwrites (external_gte), `refuse` answers `equal`. A higher stored clock always wins. */
  readonly equalClock: 'accept' | 'refuse';
}

/** The result of a write. */
export type WriteAnswer =
  | { readonly kind: 'written' }
  /** The store holds something newer, or the same. */
  | { readonly kind: 'superseded' }
  /** The store holds the same clock, or does not tell which higher one (only if `equalClock` is `refuse`). Of the bulk writer, which reads what is stored: other content at the same clock, a tie (rule 12). */
  | { readonly kind: 'equal' }
  /** Of the bulk writer: the write became too old before it was ever sent. Read S3 again. */
  | { readonly kind: 'expired' }
  | { readonly kind: 'fault'; readonly fault: Fault };

/** A store's answer to a write. */
export type IndexWriteAnswer = Exclude<WriteAnswer, { readonly kind: 'expired' }>;

/** The documents of a search: all parts must hold. */
export interface ObjectFilter {
  /** Only documents of this bucket; absent: of all buckets. */
  readonly bucket?: string;
  readonly key?: string;
  readonly prefix?: string;
  readonly words?: QueryWords;
  readonly where?: readonly Condition[];
  /** Tombstones instead of live documents. */
  readonly deleted?: boolean;
  /** Only documents in one of these parts: at most PARTS_MAX, in order, and none contains another. Absent: everywhere. */
  readonly within?: readonly BucketPart[];
}

export interface ObjectQuery extends ObjectFilter {
  /**
   * Default: by bucket and key in UTF-8 byte order; descending, both are. Any other order ends with bucket and key, ascending.
   * A size or a time that is absent counts as −1.
   */
  readonly sort?: { readonly by: SortField; readonly order: SortOrder };
  /** Only documents after this one in the order. `value`: the size in bytes or the time in milliseconds by which it is sorted. */
  readonly after?: { readonly value?: number; readonly bucket: string; readonly key: string };
  /** 1 to 1,000. */
  readonly limit: number;
}

export interface ChangesPage {
  readonly prefix: string;
  readonly within?: readonly BucketPart[];
  /** 1 to 1,000. */
  readonly limit: number;
}

export interface Changes {
  readonly documents: readonly ObjectDocument[];
  /** Where the next page begins. */
  readonly position: Position;
  /** Whether more had been written by then. */
  readonly more: boolean;
}

export interface ObjectIndex {
  /**
   * Sends one request and returns an answer for each write, in order. A failure of the whole request throws its fault:
   * `index.overloaded` for 429, `index.unreachable`, `index.blocked`, `index.denied`; `index.rejected` where the server refuses
   * several writes together (413, 400), of which each alone may be accepted. A single write that it refuses so is answered.
   */
  write(writes: readonly IndexWrite[], signal?: AbortSignal): Promise<readonly IndexWriteAnswer[]>;
  /** Reads the stored document of each key in realtime, in order, tombstones included; undefined where nothing is stored. */
  getMany(bucket: string, keys: readonly string[], signal?: AbortSignal): Promise<readonly (ObjectDocument | undefined)[]>;
  /** Returns documents in the query's order, at most one refresh behind. */
  search(query: ObjectQuery, signal?: AbortSignal): Promise<readonly ObjectDocument[]>;
  /** Counts the documents; `max` + 1 if there are more than `max`. */
  count(filter: ObjectFilter, max: number, signal?: AbortSignal): Promise<number>;
  /**
   * Returns what was written to the bucket's index after a position, oldest first, as it is stored by now: documents and tombstones,
   * but no tombstone of a key that the index never held, as far as the store can tell. Nothing is skipped: every write that was
   * answered before the call is on this page or after the page's position, unless it was replaced by a later one or purged.
   * `lost`: the position is none of the index's present history.
   */
  changes(bucket: string, page: ChangesPage & { readonly after: Position }, signal?: AbortSignal): Promise<Changes | 'lost'>;
  /** Returns the latest writes, tombstones too, newest first by when they were written, which no search sorts by; at most one refresh behind. */
  latest(bucket: string, page: ChangesPage, signal?: AbortSignal): Promise<readonly ObjectDocument[]>;
  /** The position after every write that was answered before the call; empty if there is no index. */
  position(bucket: string, signal?: AbortSignal): Promise<Position>;
  /** Creates what the bucket's documents need (index, aliases). Idempotent. */
  createBucket(bucket: string, signal?: AbortSignal): Promise<void>;
  /**
   * What identifies the index of each bucket, in the order of the buckets: it is another once the index was deleted and made
   * again, restored, or replaced behind its alias; undefined where there is none. One request for all of them.
   */
  identities(buckets: readonly string[], signal?: AbortSignal): Promise<readonly (string | undefined)[]>;
  /** Deletes the bucket's documents and the index that holds them. Idempotent. */
  removeBucket(bucket: string, signal?: AbortSignal): Promise<void>;
  /** Reads and swaps a record of the state. Throws the fault that makes every write fail now (unreachable, denied, a block of the cluster or of the state index, a full disk, a replaced file); resolves if there is none. */
  probe(signal?: AbortSignal): Promise<void>;
  /**
   * Throws the fault that keeps documents of this bucket from being written now (its index is missing, blocked, closed or
   * unavailable, or any that probe() throws for a write); resolves if there is none. It changes nothing that a search, a scan
   * or a purge can see.
   */
  probeBucket(bucket: string, signal?: AbortSignal): Promise<void>;
}

/** The fields of a document that a reconcile compares, and those that show whether it is enriched. */
export const scannedDocumentSchema = objectDocumentSchema.pick({
  key: true,
  size: true,
  etag: true,
  last_modified: true,
  last_modified_exact: true,
  storage_class: true,
  clock: true,
  settled: true,
  user_metadata: true,
  tags: true,
});
export type ScannedDocument = Readonly<z.infer<typeof scannedDocumentSchema>>;

export interface ObjectScan {
  /**
   * Returns live documents of one bucket after `after` (exclusive), up to `upTo` (inclusive) and under the prefix, in UTF-8
   * byte order of their keys: at most `limit` (1 to 10,000), at most one refresh behind. Fewer than `limit` means that there
   * are no more.
   */
  scan(
    bucket: string,
    range: { readonly prefix: string; readonly after: string; readonly upTo?: string; readonly limit: number },
    signal?: AbortSignal,
  ): Promise<readonly ScannedDocument[]>;
  /** Refreshes the bucket's index: scans and searches that begin afterwards see every write that was answered before. */
  refresh(bucket: string, signal?: AbortSignal): Promise<void>;
  /** Counts the live documents under the prefix, at most one refresh behind. */
  countLive(bucket: string, prefix: string, signal?: AbortSignal): Promise<number>;
}

/**
 * What the calendar's sweeps read and purge. A bucket without an index yields nothing. Results are at most one refresh
 * behind, in key order after `after`; `limit` is 1 to 1,000.
 */
export interface ObjectMaintenance {
  /** Documents, tombstones included, with `settled: false` and a clock below the given one; at most `limit`. */
  unsettled(
    bucket: string,
    page: { readonly clockBelow: number; readonly after: string; readonly limit: number },
    signal?: AbortSignal,
  ): Promise<readonly ObjectDocument[]>;
  /** The buckets that have such documents, by one request for all; undefined: an index did not answer, so each bucket must be asked. */
  unsettledBuckets(clockBelow: number, signal?: AbortSignal): Promise<ReadonlySet<string> | undefined>;
  /** Live documents whose `expires_at` is before the given moment; at most `limit`. */
  expiring(
    bucket: string,
    page: { readonly beforeMs: number; readonly after: string; readonly limit: number },
    signal?: AbortSignal,
  ): Promise<readonly ObjectDocument[]>;
  /**
   * Deletes tombstones whose `deleted_at` is before the given moment and that were written up to the position; a document that is
   * written meanwhile stays (rule 1). Resolves with how many: fewer than `limit` if there are none left, or if the next run finds them.
   */
  purge(
    bucket: string,
    page: { readonly deletedBeforeMs: number; readonly upTo: Position; readonly limit: number },
    signal?: AbortSignal,
  ): Promise<number>;
}

// ── sums over the objects that a search finds ────────────────────────────────────────────────────────────────────────

export interface UsageQuery extends ObjectFilter {
  /** Each at most once. By folder: the next folder below the prefix, which is empty or ends in a slash, and has at most seven slashes. */
  readonly by: readonly UsageBy[];
  /** The moment to which ages are relative. */
  readonly nowMs: number;
  /** The most groups of one kind, 1 to 1,000. */
  readonly limit: number;
  /** How long the store may take. */
  readonly timeLimitMs: number;
}

export interface UsageSum {
  readonly objects: number;
  /** The bytes of objects whose size is known. */
  readonly bytes: number;
}

/** `name`: the whole prefix of a folder, an extension, a class, a size, an age or a bucket; empty for objects that have none. */
export interface UsageGroup extends UsageSum {
  readonly name: string;
}

export interface UsageSums extends UsageSum {
  /**
   * The groups of each kind, in the order of `by`, those with the most objects first, then in the order of their names; sizes and ages in
   * their own order. What a store gives is exact; a group that it cannot count exactly is left out.
   */
  readonly groups: readonly (readonly UsageGroup[])[];
}

/**
 * Sums the live objects that match, and those of each group. By folder, the group with the empty name holds the objects of the folder
 * itself. Answers `too-slow` if that takes longer than the time limit, never a part. At most one refresh behind.
 */
export type SumUsage = (query: UsageQuery, signal?: AbortSignal) => Promise<UsageSums | 'too-slow'>;

// ── Tally's own records (buckets, gaps, jobs, schedules) ─────────────────────────────────────────────────────────────

/** What a compare-and-swap compares. It is opaque. */
export type StateVersion = string;

/** When list() shows a write. */
export type Listed = 'now' | 'soon';

export interface StateEntry {
  readonly id: string;
  readonly kind: StateKind;
  /** Plain JSON; parse it with the record's schema. */
  readonly record: unknown;
  readonly version: StateVersion;
}

export interface StateStore {
  /** Reads the entry with this id in realtime. Throws `index.state-missing` if the state index does not exist. */
  get(id: string, signal?: AbortSignal): Promise<StateEntry | undefined>;
  /** Reads the version alone in realtime, for a record that is large and rarely changes. Throws as get() does. */
  version(id: string, signal?: AbortSignal): Promise<StateVersion | undefined>;
  /**
   * Writes the entry if the stored version is `expected` (null: if nothing is stored), else answers `conflict`. When it
   * resolves, the entry is durable and visible to list(); with `listed: 'soon'` it is durable, and visible to list() within a
   * second, which saves a wait of up to 200 ms; a later write that waits makes it visible too. Ids have at most 512 bytes.
   */
  put(
    entry: { readonly id: string; readonly kind: StateKind; readonly record: unknown; readonly listed?: Listed },
    expected: StateVersion | null,
    signal?: AbortSignal,
  ): Promise<StateEntry | 'conflict'>;
  /**
   * Deletes the entry if the stored version is `expected`. An id that is not stored counts as removed. When it resolves, list()
   * does not show the entry any more; with `soon`, it may do so for a second.
   */
  remove(id: string, expected: StateVersion, signal?: AbortSignal, listed?: Listed): Promise<'removed' | 'conflict'>;
  /** Returns at most `limit` (1 to 1,000) entries of one kind after the given id, in id order (UTF-8 bytes). */
  list(
    kind: StateKind,
    page: { readonly after?: string | undefined; readonly limit: number },
    signal?: AbortSignal,
  ): Promise<readonly StateEntry[]>;
  /**
   * Finds the ids of at most `limit` jobs whose record has a `dueAtMs` that is at most `nowMs`, or greater than `nowMs + aheadMaxMs`,
   * in a random order. It is as late as list() is with `listed: 'soon'`.
   */
  due(
    when: { readonly nowMs: number; readonly aheadMaxMs: number; readonly limit: number },
    signal?: AbortSignal,
  ): Promise<readonly string[]>;
  /** Counts the entries of one kind. */
  count(kind: StateKind, signal?: AbortSignal): Promise<number>;
}

// ── the audit ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Which records to list. Times are the ids' times, in ms since 1970. */
export interface AuditQuery {
  /** Inclusive. */
  readonly fromMs?: number;
  /** Exclusive. */
  readonly toMs?: number;
  readonly email?: string;
  readonly event?: AuditEvent;
  /** The name or the fingerprint of an API key. */
  readonly key?: string;
  /** Only records whose ids are before this one. */
  readonly before?: string;
  /** 1 to 1,000. */
  readonly limit: number;
}

export interface AuditStore {
  /**
   * Stores the record. When it resolves, the record is durable; it is visible to list() within a second. The same id is stored
   * once, and a second time changes nothing. Whatever the record needs (an index of its month) is created, but only in a store
   * that was prepared; else it throws `index.state-missing`.
   */
  append(record: AuditRecord, signal?: AbortSignal): Promise<void>;
  /** Returns matching records, newest first: in descending order of their ids. */
  list(query: AuditQuery, signal?: AbortSignal): Promise<readonly AuditRecord[]>;
  /**
   * Deletes the oldest of the records from before this moment, in one bounded request; on OpenSearch whole months, and a month
   * only after all of it has passed. `more`: it deleted some, and there may be others.
   */
  purge(beforeMs: number, signal?: AbortSignal): Promise<'more' | 'none'>;
}
