/** Records: one change each, as a source tells it, in one shape whatever its wrapper and dialect. */

/** How a record is written: S3's notification, S3's EventBridge event, an audit-trail event, or the synthetic Records of the routing rule. */
export type Dialect = 'native' | 'eventbridge' | 'trail' | 'synthetic';
export const dialects = ['native', 'eventbridge', 'trail', 'synthetic'] as const satisfies readonly Dialect[];

/**
 * What a record says happened. Only `created` and `marker-created` of a native or EventBridge record state the result
 * itself; all others only say that the key changed.
 */
export type Change =
  /** Put, Post or Copy. */
  | { readonly kind: 'created'; readonly copied: boolean }
  /** CompleteMultipartUpload: the upload that started last may win, so it does not say what is current. */
  | { readonly kind: 'multipart-completed' }
  /** A delete marker became current. */
  | { readonly kind: 'marker-created' }
  /** A delete without delete marker: the object of an unversioned bucket, or one version, or a marker. */
  | { readonly kind: 'deleted' }
  /** DeleteObjects of an audit trail: no key, so a gap. */
  | { readonly kind: 'bulk-deleted' }
  /** Expired by a lifecycle rule. */
  | { readonly kind: 'lifecycle-expired' }
  /** Restored, transitioned or moved between access tiers: the storage class may have changed. */
  | { readonly kind: 'storage-changed' }
  /** Tags were put or removed. */
  | { readonly kind: 'tagged' }
  /** A reduced-redundancy object was lost. */
  | { readonly kind: 'lost' }
  /** Known and of no consequence for the index (ACLs, replication, a failed call …), or not known at all. */
  | { readonly kind: 'ignored'; readonly reason: 'no-effect' | 'failed-call' | 'unknown-event' };

export interface ChangeRecord {
  readonly dialect: Dialect;
  /** Empty only for `ignored` records that name none (`ListBuckets`). */
  readonly bucket: string;
  /** Decoded. Empty only for `bulk-deleted` and for `ignored` records. */
  readonly key: string;
  /** The key's escapes were malformed: it was taken as it stands and must be observed. */
  readonly keyUncertain: boolean;
  /** The name as the source wrote it, at most 128 characters (`ObjectCreated:Put`, `Object Created`, `PutObject`). */
  readonly eventName: string;
  readonly change: Change;
  /** When the source says it happened; absent if it does not say, or says something that is no time. */
  readonly eventTimeMs?: number;
  /** The sequencer as written (hex, not yet judged). Never of audit-trail or synthetic records. */
  readonly sequencer?: string;
  readonly etag?: string;
  readonly sizeBytes?: number;
  /** Absent when the source says none (an empty string counts as none). */
  readonly versionId?: string;
}
