/** The ports of re-index, repair and calendar work: what they ask of the world beyond ports.ts. The same conventions hold. */
import type { LifecycleRule } from '../domain/calendar/lifecycle-rules.ts';
import type { ObjectDocument, PresentState } from '../domain/document.ts';
import type { FaultCode } from '../domain/fault.ts';
import type { GapKind, GapRecord } from '../domain/gap.ts';
import type { ReconcileCounts } from '../domain/reindex/counts.ts';
import type { JobMode, JobRecord } from '../domain/reindex/job.ts';

/** A bucket and where it is. */
export interface BucketPlace {
  readonly bucket: string;
  readonly region: string;
}

// ── S3 ────────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface ListedObject {
  readonly key: string;
  /** etag, sizeBytes, lastModifiedMs and storageClass, where the listing says them. */
  readonly state: PresentState;
}

export interface ListingPage {
  /** In UTF-8 byte order of their keys, all after `after`, all with the prefix. */
  readonly objects: readonly ListedObject[];
  /** D: the Date header minus the measured duration of the request. */
  readonly observedAtMs: number;
  /** Whether more follows. */
  readonly isTruncated: boolean;
}

export interface BucketListing {
  /**
   * One page of ListObjectsV2 from StartAfter on; `limit` is 1 to 1,000. Throws `listing.disorder` for a page that is out
   * of UTF-8 order, repeats a key, or leaves the prefix; `listing.incomplete` for one that cannot be read whole;
   * `object.denied`, `object.undated`, `bucket.missing`, `s3.unavailable`, `s3.throttled`, `s3.credentials`.
   */
  page(
    place: BucketPlace,
    range: { readonly prefix: string; readonly after: string; readonly limit: number },
    signal?: AbortSignal,
  ): Promise<ListingPage>;
}

export interface BucketLifecycle {
  /**
   * The rules of GetBucketLifecycleConfiguration, whatever they do; empty when there is none. Throws `lifecycle.denied`, and
   * else as BucketListing.page does.
   */
  rulesOf(place: BucketPlace, signal?: AbortSignal): Promise<readonly LifecycleRule[]>;
}

// ── the object index ──────────────────────────────────────────────────────────────────────────────────────────────

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

// ── telemetry ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** What became of a task of a range: taken, or why not; `invalid` for what is no task. */
export const taskResults = ['taken', 'leased', 'done', 'stale', 'poisonous', 'invalid'] as const;
export type TaskResult = (typeof taskResults)[number];

/** Facts about re-index; labels never hold keys or ids. */
export interface ReindexTelemetry {
  reindexTask(result: TaskResult): void;
  /** A turn ended: `on`, more is to do; `lost`, somebody else has the range. */
  reindexTurn(fact: {
    readonly mode: JobMode;
    readonly counts: ReconcileCounts;
    readonly result: 'on' | 'done' | 'braked' | 'lost' | FaultCode;
    readonly durationMs: number;
  }): void;
  /** A range was split, or no place was found to split it at. */
  reindexSplit(isSplit: boolean): void;
  /** Ranges in this worker's hands now. */
  reindexRanges(running: number): void;
  jobEnded(job: JobRecord): void;
}

/** Work of the calendar that looks through buckets. */
export const sweeps = ['unsettled', 'lifecycle', 'tombstones', 'full'] as const;
export type Sweep = (typeof sweeps)[number];

/** Facts about what the index does for itself; labels never hold keys or ids. */
export interface CalendarTelemetry {
  /** Gaps as they are stored now, by kind and state; what is not named is none. */
  gapStates(counts: readonly { readonly kind: GapKind; readonly state: GapRecord['state']; readonly count: number }[]): void;
  gapClosed(gap: Pick<GapRecord, 'bucket' | 'kind' | 'prefix' | 'jobId'>): void;
  /** A job did not close the gap, or could not begin. */
  gapStays(gap: Pick<GapRecord, 'bucket' | 'kind' | 'prefix' | 'waits'>): void;
  /** A sweep ended for one bucket: so many objects looked at, or tombstones purged. */
  sweepEnded(fact: { readonly sweep: Sweep; readonly bucket: string; readonly result: 'ok' | FaultCode; readonly objects: number }): void;
}
