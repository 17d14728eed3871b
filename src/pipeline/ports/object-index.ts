/**
 * The object index: documents written, searched, compared and kept right. Adapters throw {@link FaultError} and nothing
 * else; whatever waits takes an AbortSignal last and rejects with the reason of the signal when it is aborted.
 */
import type { ObjectDocument } from '../../domain/documents/document.ts';
import type { QueryWords } from '../../domain/documents/words.ts';
import type { FaultCode } from '../../domain/fault.ts';
import type { Traced } from './tracing.ts';

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

/** What a reconcile compares of a document. */
export type ScannedDocument = Pick<
  ObjectDocument,
  'key' | 'size' | 'etag' | 'last_modified' | 'last_modified_exact' | 'storage_class' | 'clock' | 'settled'
>;

export interface ObjectScan {
  /**
   * Live documents of one bucket after `after` (exclusive), up to `upTo` (inclusive), under the prefix, in UTF-8 byte
   * order of their keys, at most `limit` (1 to 10,000), at most one refresh behind. Fewer than `limit`: there are no more.
   */
  scan(
    bucket: string,
    range: { readonly prefix: string; readonly after: string; readonly upTo?: string; readonly limit: number },
    signal?: AbortSignal,
  ): Promise<readonly ScannedDocument[]>;
  /** After it, scans and searches see every write that was answered before. */
  refresh(bucket: string, signal?: AbortSignal): Promise<void>;
  /** Live documents under the prefix, at most one refresh behind. */
  countLive(bucket: string, prefix: string, signal?: AbortSignal): Promise<number>;
}

export interface AgedPage {
  readonly prefix: string;
  readonly modifiedUntilMs: number;
  readonly sizeAbove?: number;
  readonly sizeBelow?: number;
  readonly after: string;
  readonly limit: number;
}

/** What keeps the index right when nobody asks. Of a bucket without index: nothing. At most one refresh behind; `limit` is 1 to 1,000. */
export interface ObjectMaintenance {
  /** Documents, tombstones included, with `settled: false` and a clock below; in key order after `after`, at most `limit`. */
  unsettled(
    bucket: string,
    page: { readonly clockBelow: number; readonly after: string; readonly limit: number },
    signal?: AbortSignal,
  ): Promise<readonly ObjectDocument[]>;
  /** Live documents whose expires_at is before; in key order after `after`, at most `limit`. */
  expiring(
    bucket: string,
    page: { readonly beforeMs: number; readonly after: string; readonly limit: number },
    signal?: AbortSignal,
  ): Promise<readonly ObjectDocument[]>;
  /**
   * Live documents under the prefix that a lifecycle rule may have expired by their age: last_modified at or before, or
   * not known; size within the (exclusive) bounds, or not known. In key order after `after`; `limit` bounds what one call
   * looks at, so a page may be empty and yet have a `next` to go on after.
   */
  aged(
    bucket: string,
    page: AgedPage,
    signal?: AbortSignal,
  ): Promise<{ readonly documents: readonly ObjectDocument[]; readonly next?: string }>;
  /** Tombstones with deleted_at before; in key order after `after`, at most `limit`. */
  tombstones(
    bucket: string,
    page: { readonly deletedBeforeMs: number; readonly after: string; readonly limit: number },
    signal?: AbortSignal,
  ): Promise<readonly { readonly key: string; readonly clock: number }[]>;
  /** Deletes each, at most 1,000, only if it is still the very tombstone of that clock (rule 1). Returns how many went. */
  purge(bucket: string, tombstones: readonly { readonly key: string; readonly clock: number }[], signal?: AbortSignal): Promise<number>;
}
