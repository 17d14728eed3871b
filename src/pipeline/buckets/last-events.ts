/**
 * When the last event of each bucket arrived, and from which queue. It is kept in memory and stored now and then: only the
 * report of a loss uses it, and a bucket whose queue is not known is included there.
 */
import { withEventQueue, type BucketRecord } from '../../domain/bucket.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { refs, updateRecord } from '../records/stored.ts';

export interface LastEvents {
  /** Notes that an event of this connected bucket arrived from this queue. It only writes to memory. */
  seen(bucket: string, queueUrl: string): void;
  /** Stores the notes since the last call. Throws the store's fault; the notes that were not stored remain for the next call. */
  store(): Promise<void>;
}

/** Creates the memory, which has at most one note for each connected bucket and queue. */
export function createLastEvents({ state, clock }: { readonly state: StateStore; readonly clock: Pick<Clock, 'nowMs'> }): LastEvents {
  const noted = new Map<string, Map<string, number>>();

  async function storeOf(bucket: string, queueUrl: string, atMs: number): Promise<void> {
    await updateRecord(state, refs.bucket(bucket), (current) => current && noting(current, queueUrl, atMs));
  }

  return {
    seen(bucket, queueUrl) {
      const known = noted.get(bucket);
      if (known === undefined) noted.set(bucket, new Map([[queueUrl, clock.nowMs()]]));
      else known.set(queueUrl, clock.nowMs());
    },
    async store() {
      for (const [bucket, queues] of noted) {
        for (const [queueUrl, atMs] of queues) {
          await storeOf(bucket, queueUrl, atMs);
          if (queues.get(queueUrl) === atMs) queues.delete(queueUrl);
        }
        if (queues.size === 0) noted.delete(bucket);
      }
    },
  };
}

function noting(record: BucketRecord, queueUrl: string, atMs: number): BucketRecord {
  const lastEventAtMs = Math.max(atMs, record.lastEventAtMs ?? 0);
  return { ...record, lastEventAtMs, eventQueues: withEventQueue(record.eventQueues, { queueUrl, atMs }) };
}
