/**
 * The proof that the events of a bucket arrive: one has arrived, or S3's test event, or the watch found every part in order.
 * Until then a gap stands for all that may be missing.
 */
import type { BucketRecord } from '../../domain/bucket.ts';
import { isFormOf, type Dialect } from '../../domain/events/record.ts';
import { gapId, withProof, withSighting } from '../../domain/gaps/gap.ts';
import { lastBeginOf } from '../../domain/reindex/covers.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { readRecord, refs, updateRecord } from '../records/stored.ts';

/** S3's clock, by which jobs begin, has whole seconds and is not that of this machine: a job that begins just after the proof covers it. */
const CLOCK_SLACK_MS = 5_000;

const UNKNOWN_UNTIL_NOW = 'until now it was not known whether the events of the bucket arrive';

/** Whether an event of this form that happened by this moment proves that the bucket's events arrive by its present way. S3's test event is `native`. */
export function provesWay(
  { source, waySinceMs, createdAtMs }: Pick<BucketRecord, 'source' | 'waySinceMs' | 'createdAtMs'>,
  dialect: Dialect,
  happenedMs: number,
): boolean {
  return isFormOf(source, dialect) && happenedMs >= (waySinceMs ?? createdAtMs);
}

/**
 * Stores the proof for a bucket that is connected as in this record. The gap comes first: a process that is killed in between
 * stores both again. Throws the store's fault.
 */
export async function noteProof(
  { state, clock }: { readonly state: StateStore; readonly clock: Pick<Clock, 'nowMs'> },
  { bucket, source, topicArn }: Pick<BucketRecord, 'bucket' | 'source' | 'topicArn'>,
): Promise<void> {
  const nowMs = clock.nowMs();
  const now = await readRecord(state, refs.bucket(bucket));
  // the bucket was changed meanwhile: this is the proof of another way
  if (now === undefined || now.source !== source || now.topicArn !== topicArn) return;
  await proveGap({ state, clock }, now);
  await updateRecord(state, refs.bucket(bucket), (current) => {
    const isSameWay = current?.source === source && current.topicArn === topicArn;
    return isSameWay ? { ...current, provenAtMs: current.provenAtMs ?? nowMs } : undefined;
  });
}

/**
 * What the gap of the bucket knows of the proof, by a record that was read after the proof had come. Where no gap waits for it,
 * one is opened: until now, nothing was known of the events. Throws the store's fault.
 */
export async function proveGap(
  { state, clock }: { readonly state: StateStore; readonly clock: Pick<Clock, 'nowMs'> },
  record: BucketRecord,
): Promise<void> {
  const { bucket, enrich, provenAtMs } = record;
  const nowMs = clock.nowMs();
  const atMs = nowMs - CLOCK_SLACK_MS;
  const afterBeginOrder = lastBeginOf(record);
  const sighting = { bucket, kind: 'loss', reason: UNKNOWN_UNTIL_NOW, seenAtMs: atMs } as const;
  await updateRecord(state, refs.gap(gapId(sighting)), (current) => {
    if (current?.unproven === true) return withProof(current, { atMs, afterBeginOrder });
    return provenAtMs === undefined ? withSighting(current, sighting, { count: 1, toldAtMs: nowMs, afterBeginOrder, enrich }) : current;
  });
}
