/**
 * Notices that messages wait in a bucket queue from which no worker receives, in every process that serves: where none has the role
 * ingest, no worker could say so. It is stored like an open circuit, so that the status of each bucket has it.
 */
import type { CircuitRecord } from '../../domain/circuit-record.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { readRecord, refs, removeRecord, updateRecord } from '../records/stored.ts';
import type { QueueWatch } from './watch.ts';

const MINUTE_MS = 60_000;
/** A worker that receives says so once a minute. One that starts again, or is replaced, needs some minutes. */
const SILENT_MS = 10 * MINUTE_MS;
/** After a start of everything the workers need some time until they have said that they receive. */
const FIRST_MS = 2 * MINUTE_MS;

interface UnreceivedDependencies {
  readonly state: StateStore;
  readonly clock: Pick<Clock, 'nowMs' | 'monotonicMs'>;
  readonly queueWatch: Pick<QueueWatch, 'visibleIn'>;
  readonly bucketQueueUrls: readonly string[];
}

/** Creates the look at all bucket queues, to be repeated as often as open circuits are stored. Throws the store's fault. */
export function createUnreceived({ state, clock, queueWatch, bucketQueueUrls }: UnreceivedDependencies): () => Promise<void> {
  const [startedMs, startedAtMs] = [clock.monotonicMs(), clock.nowMs()];
  const stored = new Set<string>();

  /** Since when no worker has received although messages wait; undefined if that is not so. */
  async function silentSince(queueUrl: string): Promise<number | undefined> {
    if (queueWatch.visibleIn(queueUrl) === 0 || clock.monotonicMs() - startedMs < FIRST_MS) return undefined;
    const { receivedAtMs = startedAtMs } = (await readRecord(state, refs.queue(queueUrl))) ?? {};
    return clock.nowMs() - receivedAtMs > SILENT_MS ? receivedAtMs : undefined;
  }

  function recordOf(queueUrl: string, sinceMs: number): CircuitRecord {
    const [nowMs, count] = [clock.nowMs(), queueWatch.visibleIn(queueUrl)];
    return {
      level: 'queue',
      name: queueUrl,
      code: 'queue.not-received',
      reason: `${count === 1 ? '1 message waits' : `${count} messages wait`} in the bucket queue, and no worker has received for ${Math.floor((nowMs - sinceMs) / MINUTE_MS)} minutes`,
      sinceMs,
      seenAtMs: nowMs,
      otherQueues: bucketQueueUrls.filter((url) => url !== queueUrl),
    };
  }

  return async function lookAtQueues() {
    for (const queueUrl of bucketQueueUrls) {
      const sinceMs = await silentSince(queueUrl);
      const ref = refs.circuit('queue', queueUrl);
      if (sinceMs !== undefined) {
        await updateRecord(state, ref, () => recordOf(queueUrl, sinceMs));
        stored.add(queueUrl);
      } else if (stored.delete(queueUrl)) await removeRecord(state, ref.id);
    }
  };
}
