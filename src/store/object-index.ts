/**
 * The object index: where documents are written, searched, compared and maintained. These conventions hold for all ports:
 * adapters throw {@link FaultError} and nothing else; a function that waits takes an AbortSignal as its last parameter and
 * rejects with the signal's reason when it is aborted.
 */
import type { z } from 'zod';
import type { BucketPart } from './readable.rules.ts';
import { objectDocumentSchema, type ObjectDocument } from '../ordering/document.ts';
import type { QueryWords } from '../ordering/words.ts';
import type { Condition, SortField, SortOrder } from './conditions.rules.ts';
import type { FaultCode } from '../base/fault.ts';

/** One conditional write of a whole document at its clock. */
export interface IndexWrite {
  readonly document: ObjectDocument;
  /** What to do when the store holds the same clock: `accept` overwrites (external_gte), `refuse` answers `equal`. A higher stored clock always refuses the write. */
  readonly equalClock: 'accept' | 'refuse';
}

export type IndexWriteAnswer =
  | { readonly kind: 'written' }
  /** Refused: the store holds a higher clock. */
  | { readonly kind: 'superseded' }
  /** Refused: the store holds the same clock (only if `equalClock` is `refuse`). */
  | { readonly kind: 'equal' }
  | { readonly kind: 'fault'; readonly code: FaultCode; readonly reason: string };

/** Which documents a search is about: all of its parts must hold. */
export interface ObjectFilter {
  /** Only documents of this bucket; absent: of all buckets. */
  readonly bucket?: string;
  readonly key?: string;
  readonly prefix?: string;
  readonly words?: QueryWords;
  /** The extension of the key, in lower case and without the dot. */
  readonly extension?: string;
  readonly where?: readonly Condition[];
  /** Tombstones instead of live documents. */
  readonly deleted?: boolean;
  /** Only documents in one of these parts, which are in order and of which none contains another: as many as PARTS_MAX at most. Absent: of every part. */
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

export interface ObjectIndex {
  /**
   * Sends one request and returns an answer for each write, in order. A failure of the whole request throws its fault:
   * `index.overloaded` for 429, `index.unreachable`, `index.blocked`, `index.denied`. The adapter halves a request that is
   * too large for the server (413) until it fits; a single write that does not fit is `index.rejected`. Documents are
   * validated earlier, so no id or line can fail the whole request.
   */
  write(writes: readonly IndexWrite[], signal?: AbortSignal): Promise<readonly IndexWriteAnswer[]>;
  /** Reads the stored document of each key in realtime, in order, tombstones included; undefined where nothing is stored. */
  getMany(bucket: string, keys: readonly string[], signal?: AbortSignal): Promise<readonly (ObjectDocument | undefined)[]>;
  /** Returns documents in the order of the query. They are at most one refresh behind. */
  search(query: ObjectQuery, signal?: AbortSignal): Promise<readonly ObjectDocument[]>;
  /** Counts the documents; `max` + 1 if there are more than `max`. */
  count(filter: ObjectFilter, max: number, signal?: AbortSignal): Promise<number>;
  /** Returns documents and tombstones of one bucket that were built after a moment, the newest first. They are at most one refresh behind. */
  changes(
    bucket: string,
    page: { readonly prefix: string; readonly within?: readonly BucketPart[]; readonly sinceMs: number; readonly limit: number },
    signal?: AbortSignal,
  ): Promise<readonly ObjectDocument[]>;
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
export type ScannedDocument = Pick<
  ObjectDocument,
  'key' | 'size' | 'etag' | 'last_modified' | 'last_modified_exact' | 'storage_class' | 'clock' | 'settled' | 'user_metadata' | 'tags'
>;

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
}) satisfies z.ZodType<ScannedDocument>;

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
  /** The buckets that have such documents, by one request for all; undefined: an index did not answer, and only each bucket itself can say. */
  unsettledBuckets(clockBelow: number, signal?: AbortSignal): Promise<ReadonlySet<string> | undefined>;
  /** Live documents whose `expires_at` is before the given moment; at most `limit`. */
  expiring(
    bucket: string,
    page: { readonly beforeMs: number; readonly after: string; readonly limit: number },
    signal?: AbortSignal,
  ): Promise<readonly ObjectDocument[]>;
  /**
   * Deletes tombstones whose `deleted_at` is before the given moment; a document that is written meanwhile stays (rule 1). Resolves
   * with how many: fewer than `limit` if there are none left, or if the next run finds them.
   */
  purge(bucket: string, page: { readonly deletedBeforeMs: number; readonly limit: number }, signal?: AbortSignal): Promise<number>;
}
