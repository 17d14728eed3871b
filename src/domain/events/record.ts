/** Records: one change each, as a source reported it, in one shape for all wrappers and dialects. */
import type { Fault } from '../fault.ts';

/** How a record is written: S3's notification, S3's EventBridge event, an audit-trail event, or the synthetic Records of the routing rule. */
export const dialects = ['native', 'eventbridge', 'trail', 'synthetic'] as const;
export type Dialect = (typeof dialects)[number];

/**
 * The change that a record reports. Only `created` and `marker-created` of a native or EventBridge record state the
 * result themselves, and `deleted` does in a bucket that never had versioning (`statedResult` in src/domain/ordering/hint.ts); all
 * others only say that the key changed.
 */
export type Change =
  /** Put, Post or Copy. */
  | { readonly kind: 'created'; readonly copied: boolean }
  /** CompleteMultipartUpload, or a creation of a kind that is not known. The upload that started last may win, so the record does not say which object is current. */
  | { readonly kind: 'multipart-completed' }
  /** A delete marker became current. */
  | { readonly kind: 'marker-created' }
  /** A delete without a delete marker: of the object of an unversioned bucket, of one version, or of a marker. */
  | { readonly kind: 'deleted' }
  /** DeleteObjects of an audit trail. It names no key, so it becomes a gap. */
  | { readonly kind: 'bulk-deleted' }
  /** A lifecycle rule expired the object. */
  | { readonly kind: 'lifecycle-expired' }
  /** The object was restored, transitioned or moved between access tiers: its storage class may have changed. */
  | { readonly kind: 'storage-changed' }
  /** Tags were put or removed. */
  | { readonly kind: 'tagged' }
  /** The object may be gone: a reduced-redundancy object was lost, or a removal has a name that is not known. */
  | { readonly kind: 'lost' }
  /** The event does not change anything that the index holds (ACLs, replication, a failed call …), or its name is unknown. */
  | { readonly kind: 'ignored'; readonly reason: 'no-effect' | 'failed-call' | 'unknown-event' };

/** Whether the record reports that its object may be gone. */
export function reportsDeletion({ kind }: Change): boolean {
  switch (kind) {
    case 'marker-created':
    case 'deleted':
    case 'bulk-deleted':
    case 'lifecycle-expired':
    case 'lost':
      return true;
    case 'created':
    case 'multipart-completed':
    case 'storage-changed':
    case 'tagged':
    case 'ignored':
      return false;
  }
}

export interface ChangeRecord {
  readonly dialect: Dialect;
  /** Empty only for `ignored` records that name no bucket (`ListBuckets`). */
  readonly bucket: string;
  /** Decoded. Empty only for `bulk-deleted` and `ignored` records. */
  readonly key: string;
  /** True when the key's escapes were malformed: `key` is then the undecoded text, and the object must be observed. */
  readonly keyUncertain: boolean;
  /** The name as the source wrote it, at most 128 characters (`ObjectCreated:Put`, `Object Created`, `PutObject`). */
  readonly eventName: string;
  readonly change: Change;
  /** When the change happened according to the source; absent when the source gives no valid time. */
  readonly eventTimeMs?: number;
  /** The sequencer as written (hex, not yet validated). Audit-trail and synthetic records never have one. */
  readonly sequencer?: string;
  readonly etag?: string;
  readonly sizeBytes?: number;
  /** Absent when the source gives none (an empty string counts as none). */
  readonly versionId?: string;
  /** Of deletes that an audit trail reports: the ID of the API request. The events of one DeleteObjects call share it. */
  readonly requestId?: string;
  /** True for an EventBridge record in an SNS envelope: S3 did not necessarily write it, because others may publish to the topic. */
  readonly throughTopic?: true;
}

/** The result of parsing one record of a message. A rejected record has its `bucket` where that is known (for the loss gap), and its `dialect` where that was recognised. */
export type RecordResult =
  | { readonly ok: true; readonly record: ChangeRecord }
  | { readonly ok: false; readonly fault: Fault; readonly bucket?: string; readonly dialect?: Dialect };
