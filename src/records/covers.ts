/**
 * What a job covers (rule 8): what was reported before it began, and happened before it began.
 *
 * Which of two came first, a report or the beginning of a job, is no question of clocks: those of two workers may differ. The
 * record of the bucket counts beginnings. A report states the latest one that its worker has read *after* it noticed the loss; a
 * job covers it only if the job's own beginning is a later one. So a loss that was noticed after a job began is never covered by
 * that job.
 *
 * A gap may also stand for changes that come after its report: records that are handed over are reported ahead of time, and AWS applies a
 * changed connection for minutes. Their times are those of workers and of SQS, and a listing's is S3's: a job covers what
 * happened before it began by the clock of S3 *and* by that of the worker which began it. Where one is wrong, a gap is closed
 * later than it could be.
 */
import type { BucketRecord } from './bucket.ts';

type Counted = Pick<BucketRecord, 'lastBeginOrder' | 'createdAtMs'>;

/** The place of the latest beginning of a job of the bucket among all of them. */
export function lastBeginOf({ lastBeginOrder, createdAtMs }: Counted): number {
  return lastBeginOrder ?? createdAtMs;
}

/**
 * The place of a job that begins now: after all others of the bucket. It is not a plain number, so that it is also later than those of
 * an earlier life of the bucket: deletions that wait for a person may outlive that.
 */
export function nextBeginOf(bucket: Counted, nowMs: number): number {
  return Math.max(lastBeginOf(bucket) + 1, nowMs);
}

/** The moment before which a job sees every change. */
export function coversBefore({
  observedAtMs,
  sentMs,
}: {
  /** D of the first page. */
  readonly observedAtMs: number;
  /** When that page was requested, by the worker's clock. */
  readonly sentMs: number;
}): number {
  return Math.min(observedAtMs, sentMs);
}
