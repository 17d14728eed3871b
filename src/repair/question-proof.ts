/**
 * A compare that finds a change of which no event came takes back the proof of the bucket's events: whatever broke without a trace
 * shows there at the latest. A change counts if nothing explains that its event is missing: it is outside every mark, no message
 * waits, and it is older than S3 and the queue take.
 */
import type { BucketRecord } from '../records/bucket.ts';
import type { DirtyMark } from '../records/dirty.ts';
import { troublesOf, type Processes } from '../observing/processes.ts';
import type { WithPorts } from '../store/store.ts';
import { readRecord, refs } from '../store/stored.ts';
import { forgetProof, gapsOf, markDirty } from '../observing/gaps.ts';

/** Notifications are seldom late by minutes. */
const LATE_MS = 20 * 60_000;
/** S3's clock is not that of this machine. */
const SLACK_MS = 5_000;

/** Called with the time of a change that a compare has found. It returns at once. */
export type QuestionProof = (bucket: BucketRecord, changedAtMs: number) => void;

interface QuestionDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly processes: Pick<Processes, 'troubles'>;
}

export function createQuestionProof(dependencies: QuestionDependencies): QuestionProof {
  const { state, clock, processes, telemetry } = dependencies;
  /** The buckets that are looked at: one change is enough. */
  const asking = new Set<string>();

  return function questionProof(bucket, changedAtMs) {
    // a first index finds millions
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

/** Whether an event of it must have come: its way was proven, and no compare has ended since. An audit trail does not report every change. */
function isSince({ source, provenAtMs = Infinity, lastComparedAtMs = 0 }: BucketRecord, changedAtMs: number): boolean {
  return source !== 'routed' && changedAtMs > Math.max(provenAtMs, lastComparedAtMs) + SLACK_MS;
}

/** When the oldest message of its queues was sent, as far as its own events show it. */
function oldestSentMs({ eventQueues = [] }: BucketRecord, nowMs: number): number {
  return Math.min(nowMs, ...eventQueues.flatMap(({ atMs, waitedMs }) => (waitedMs === undefined ? [] : [atMs - waitedMs])));
}

function covers({ sinceMs, lastSeenMs }: DirtyMark, atMs: number): boolean {
  return atMs >= sinceMs - SLACK_MS && atMs <= lastSeenMs + SLACK_MS;
}
