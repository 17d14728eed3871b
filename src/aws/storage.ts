/**
 * S3 as Tally reads it. It never writes objects.
 *
 *   HEAD of a key       resolves an event, or settles a document
 *   pages of a listing  what a re-index compares with the index
 *   lifecycle rules     which objects expire without an event
 *   versions and tags   what enrichment adds
 *
 * A key's state and a listing page carry their time by S3's clock. The conventions of store.ts apply.
 */
import type { Versioning } from '../records/bucket.ts';
import type { Overdue } from '../records/comparison.ts';
import type { LifecycleRule } from './lifecycle.rules.ts';
import type { ObjectState, PresentState } from '../ordering/document.ts';

/** A bucket and its region. */
export interface BucketLocation {
  readonly bucket: string;
  readonly region: string;
  /** The account that must own it: S3 refuses the request if another one does, because a name that was freed may be another's bucket by now. Absent: any. */
  readonly account?: string | undefined;
}

/** What one request saw at a key. `observedAtMs` is D: the Date header (whole seconds) minus the measured duration of the request. */
export interface ObservedState {
  readonly state: ObjectState;
  readonly observedAtMs: number;
}

export interface ObjectStorage extends VersionDetails {
  /**
   * Reads the present state of a key by HEAD; where HEAD answers 403 or 400, where the answer is not certainly S3's, or if
   * `byListing` is set, by ListObjectsV2 and an exact match of the key. The object is absent **only if** S3 itself answered
   * HEAD with 404, or with 405 and `x-amz-delete-marker`, at most 5 s after the bucket answered (this function asks the bucket
   * and repeats the HEAD when needed), or if a listing that names this bucket and this key as its prefix is empty. Throws `object.denied`,
   * `object.failed`, `listing.incomplete`, `bucket.missing`, `bucket.denied`, `s3.unavailable`, `s3.throttled`, `s3.credentials`.
   */
  readState(location: BucketLocation, key: string, signal?: AbortSignal, how?: { readonly byListing?: boolean }): Promise<ObservedState>;
  /** Lists one key of the bucket; undefined if it has none. Throws as {@link BucketListing.page} does. */
  firstKey(location: BucketLocation, signal?: AbortSignal): Promise<string | undefined>;
  /** Reads the bucket's region by HeadBucket. Throws `bucket.missing` if there is no such bucket. */
  regionOf(bucket: string, signal?: AbortSignal): Promise<string>;
  /** Reads GetBucketVersioning, with the D of the request. `unknown` if the request is denied, or the answer is not certainly S3's. */
  versioningOf(location: BucketLocation, signal?: AbortSignal): Promise<Versioning>;
}

/** One version of an object. */
export interface VersionName {
  readonly key: string;
  /** Absent: the present object. */
  readonly versionId?: string;
  /** The version must have this etag. */
  readonly etag?: string;
}

export interface VersionDetails {
  /**
   * Reads this version by HEAD: by its version id if there is one, else by If-Match on its etag. `gone` if S3 no longer has
   * it (404, 405, 412) or the answer has another etag. Throws `object.denied`, `object.failed`, `bucket.missing`,
   * `s3.unavailable`, `s3.throttled`, `s3.credentials`.
   */
  readVersion(location: BucketLocation, version: VersionName, signal?: AbortSignal): Promise<PresentState | 'gone'>;
  /**
   * Reads the tags of this version, or of the present object if there is no version id, by GetObjectTagging. The request
   * cannot require an etag. `gone` and faults are those of readVersion.
   */
  readTags(
    location: BucketLocation,
    version: Pick<VersionName, 'key' | 'versionId'>,
    signal?: AbortSignal,
  ): Promise<Readonly<Record<string, string>> | 'gone'>;
}

export interface ListedObject {
  readonly key: string;
  /** etag, sizeBytes, lastModifiedMs and storageClass, as far as the listing contains them. */
  readonly state: PresentState;
}

export interface ListingPage {
  /** The objects in UTF-8 byte order of their keys; all keys are after `after` and have the prefix. */
  readonly objects: readonly ListedObject[];
  /** D: the Date header minus the measured duration of the request. */
  readonly observedAtMs: number;
  /** D of the last request, if it is later: pages without keys have been passed before it, and `observedAtMs` is D of the first of them. */
  readonly answeredAtMs?: number;
  /** Whether more objects follow. */
  readonly isTruncated: boolean;
  /** How many requests the page took, if more than one: S3 may answer with pages without keys before it. */
  readonly requests?: number;
  /** When the last of several requests was sent, by the monotonic clock. */
  readonly sentMs?: number;
}

export interface BucketListing {
  /**
   * Reads one page of ListObjectsV2 that begins after `after` (StartAfter); `limit` is 1 to 1,000. Throws `listing.disorder`
   * for a page that is not in UTF-8 order, repeats a key or leaves the prefix; `listing.incomplete` for a page that cannot
   * be read as a whole, or is not certainly a page of this bucket and prefix, or whose token leads nowhere or in a circle;
   * `object.denied`, `object.failed`, `bucket.missing`, `s3.unavailable`, `s3.throttled`, `s3.credentials`.
   *
   * S3 may answer with any number of pages without keys, as it skips deleted versions. They are followed by their tokens for up to
   * `followMsMax`, then `listing.incomplete` is thrown.
   */
  page(
    location: BucketLocation,
    range: {
      readonly prefix: string;
      readonly after: string;
      readonly limit: number;
      /** Default: 10 s. 0: the call is one request, whose page may have no key although more follow. */
      readonly followMsMax?: number;
    },
    signal?: AbortSignal,
  ): Promise<ListingPage>;
}

export interface BucketLifecycle {
  /**
   * Reads all rules of GetBucketLifecycleConfiguration; empty if there are none. Throws `lifecycle.denied`, and the other
   * faults that BucketListing.page throws.
   */
  rulesOf(location: BucketLocation, signal?: AbortSignal): Promise<readonly LifecycleRule[]>;
  /** The first thousand multipart uploads that are not finished, with one request; undefined: there are none. Throws as rulesOf() does. */
  uploadsOf(location: BucketLocation, signal?: AbortSignal): Promise<Overdue['uploads']>;
}
