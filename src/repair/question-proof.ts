/**
 * If a comparison finds a change that no event reported, Tally withdraws the proof of the bucket's events: whatever broke without a trace
 * shows here at the latest. A change counts if nothing else explains why its event is missing: no gap covers it, no message waits, and it
 * is older than S3 and the queue may take to deliver.
 */
import type { BucketRecord } from '../records/bucket.ts';
import type { DirtyMark } from '../records/dirty.ts';
import { troublesOf, type Processes } from '../observing/processes.ts';
import type { WithPorts } from '../store/store.ts';
import { readRecord, refs } from '../store/stored.ts';
import { forgetProof, gapsOf, markDirty } from '../observing/gaps.ts';

/** How late events may be. Notifications are rarely late by minutes. */
const LATE_MS = 20 * 60_000;
/** S3's clock and this machine's may differ. */
const SLACK_MS = 5_000;

/** Call it with the time of a change that a comparison has found. Returns at once. */
export type QuestionProof = (bucket: BucketRecord, changedAtMs: number) => void;

interface QuestionDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly processes: Pick<Processes, 'troubles'>;
}

export function createQuestionProof(dependencies: QuestionDependencies): QuestionProof {
  const { state, clock, processes, telemetry } = dependencies;
  /** The buckets being looked at, for which one change is enough. */
  const asking = new Set<string>();

  return function questionProof(bucket, changedAtMs) {
    // decided from memory first, because a first index finds millions of changes
    if (asking.has(bucket.bucket) || !isSince(bucket, changedAtMs)) return;
    asking.add(bucket.bucket);
    question(bucket.bucket, changedAtMs)
      .catch((error: unknown) => telemetry.requestFailed('look for the event of a change that a comparison found', error))
      .finally(() => asking.delete(bucket.bucket));
  };

  async function question(bucket: string, changedAtMs: number): Promise<void> {
    const record = await readRecord(state, refs.bucket(bucket));
    const nowMs = clock.nowMs();
    if (record === undefined || !isSince(record, changedAtMs) || changedAtMs >= Math.min(nowMs - LATE_MS, oldestSentMs(record, nowMs)))
      return;
    if ((await gapsOf(state, bucket)).some((mark) => covers(mark, changedAtMs))) return;
    if (troublesOf(await processes.troubles(), record, nowMs).waitsFor !== undefined) return;
    const at = new Date(changedAtMs).toISOString();
    telemetry.warn('a comparison found a change that no event reported', { bucket, at });
    const reason = `a comparison found a change at ${at} that no event reported`;
    await markDirty(dependencies, { bucket, kind: 'connection', reason, seenAtMs: nowMs, unproven: 'events' });
    await forgetProof(dependencies, bucket);
  }
}

/** Whether the change should have had an event: it came after the connection was proven and after the last comparison. Audit trails do not report every change, and what a store posts gets lost. */
function isSince({ source, provenAtMs = Infinity, lastComparedAtMs = 0 }: BucketRecord, changedAtMs: number): boolean {
  return source !== 'routed' && source !== 'webhook' && changedAtMs > Math.max(provenAtMs, lastComparedAtMs) + SLACK_MS;
}

/** When the oldest message in the bucket's queues was sent, as far as its own events show. */
function oldestSentMs({ eventQueues = [] }: BucketRecord, nowMs: number): number {
  return Math.min(nowMs, ...eventQueues.flatMap(({ atMs, waitedMs }) => (waitedMs === undefined ? [] : [atMs - waitedMs])));
}

function covers({ sinceMs, lastSeenMs }: DirtyMark, atMs: number): boolean {
  return atMs >= sinceMs - SLACK_MS && atMs <= lastSeenMs + SLACK_MS;
}
