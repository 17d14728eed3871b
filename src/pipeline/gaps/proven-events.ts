/**
 * The proof that the events of a bucket arrive: one has arrived, or S3's test event, or the watch found every part in order.
 * Until then a gap stands for all that may be missing.
 */
import type { BucketRecord } from '../../domain/bucket.ts';
import { gapId, withProof } from '../../domain/gaps/gap.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { readRecord, refs, updateRecord } from '../records/stored.ts';

/**
 * S3's clock, by which jobs begin, has whole seconds. A job that begins within this time before the proof covers it all the same:
 * it lists a minute after it has begun.
 */
const CLOCK_SLACK_MS = 5_000;

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
  await proveGap({ state, clock }, bucket);
  await updateRecord(state, refs.bucket(bucket), (current) => {
    const isSameWay = current?.source === source && current.topicArn === topicArn;
    return isSameWay ? { ...current, provenAtMs: current.provenAtMs ?? nowMs } : undefined;
  });
}

/** What the gap of the bucket knows of the proof. Throws the store's fault. */
export async function proveGap(
  { state, clock }: { readonly state: StateStore; readonly clock: Pick<Clock, 'nowMs'> },
  bucket: string,
): Promise<void> {
  const atMs = clock.nowMs() - CLOCK_SLACK_MS;
  await updateRecord(state, refs.gap(gapId({ bucket, kind: 'loss' })), (current) => current && withProof(current, atMs));
}
