/**
 * What proves that a bucket's events arrive: since the connection's last change, an event of the bucket, or S3's test event, has
 * arrived through its source (and its topic, if it has one). If a person decides what is sent, both a created and a removed event
 * must have arrived, unless Tally has read a configuration that sends all events of both kinds.
 */
import type { BucketRecord } from '../records/bucket.ts';
import { isFormOf, type Change, type Dialect } from './record.ts';

type Family = NonNullable<BucketRecord['arrived']>[number];

/** An event that arrived, or S3's test event, which is `native` and `other`. */
export interface Arrival {
  readonly dialect: Dialect;
  readonly family: Family;
  /** The topic that sent it to the queue. */
  readonly topicArn?: string | undefined;
  /** The latest moment at which it can have happened. */
  readonly happenedMs: number;
}

export function familyOf({ kind }: Change): Family {
  switch (kind) {
    case 'created':
    case 'multipart-completed':
      return 'created';
    case 'deleted':
    case 'marker-created':
    case 'bulk-deleted':
      return 'removed';
    case 'lifecycle-expired':
    case 'storage-changed':
    case 'tagged':
    case 'lost':
    case 'unknown':
    case 'ignored':
      return 'other';
  }
}

/** Whether the event came through the bucket's present connection. */
export function isByWay(
  { source, topicArn, waySinceMs, createdAtMs }: Pick<BucketRecord, 'source' | 'topicArn' | 'waySinceMs' | 'createdAtMs'>,
  arrival: Arrival,
): boolean {
  return (
    isFormOf(source, arrival.dialect) &&
    arrival.happenedMs >= (waySinceMs ?? createdAtMs) &&
    (topicArn === undefined || topicArn === arrival.topicArn)
  );
}

/** Whether the events that have arrived prove the connection. */
export function isProvenBy(record: BucketRecord): boolean {
  const { arrived = [], source, connection } = record;
  if (arrived.length === 0) return false;
  if (connection?.byHand !== true && source !== 'topic') return true;
  return passesBoth(record) || (arrived.includes('created') && arrived.includes('removed'));
}

/** Whether a check since the last change has seen that the configuration sends both families of events. */
function passesBoth({ connectionCheck: check, waySinceMs, createdAtMs }: BucketRecord): boolean {
  return check?.passesBoth === true && check.atMs >= (waySinceMs ?? createdAtMs);
}
