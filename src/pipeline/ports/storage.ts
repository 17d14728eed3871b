/** S3: looks at objects, listings, lifecycle rules, and what enrichment reads. The conventions of object-index.ts hold. */
import type { Versioning } from '../../domain/bucket.ts';
import type { LifecycleRule } from '../../domain/calendar/lifecycle-rules.ts';
import type { ObjectState, PresentState } from '../../domain/documents/document.ts';
import type { TracedBucket } from './tracing.ts';

/** A bucket and where it is. */
export interface BucketPlace {
  readonly bucket: string;
  readonly region: string;
}

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

/** One version of an object. */
export interface VersionName {
  readonly key: string;
  /** Absent: the present object. */
  readonly versionId?: string;
  /** It must have this etag. */
  readonly etag?: string;
}

export interface VersionDetails {
  /**
   * What S3 says of this version, by HEAD: by its version id where there is one, else by If-Match on its etag. `gone` when
   * S3 has it no longer (404, 405, 412), or what it answered has another etag. Throws `object.denied`, `object.failed`,
   * `bucket.missing`, `s3.unavailable`, `s3.throttled`, `s3.credentials`.
   */
  readVersion(
    place: { readonly bucket: string; readonly region: string },
    version: VersionName,
    signal?: AbortSignal,
  ): Promise<PresentState | 'gone'>;
  /** The tags of this version, else of the object that is there now, by GetObjectTagging. Its etag cannot be asked for. `gone` and faults as above. */
  readTags(
    place: { readonly bucket: string; readonly region: string },
    version: Pick<VersionName, 'key' | 'versionId'>,
    signal?: AbortSignal,
  ): Promise<Readonly<Record<string, string>> | 'gone'>;
}

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
