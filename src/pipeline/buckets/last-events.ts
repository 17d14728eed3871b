/**
 * When the last event of each bucket arrived, from which queue, and how long events wait there. It is kept in memory and
 * stored now and then: it is shown to people, and the report of a loss uses it, which includes a bucket whose queue is not known.
 */
import { withEventQueue, type BucketRecord, type EventQueue } from '../../domain/bucket.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { noteProof } from '../gaps/proven-events.ts';
import { refs, updateRecord } from '../records/stored.ts';

export interface LastEvents {
  /** Notes that an event of this connected bucket arrived from this queue, to which it was sent at `sentAtMs`. It only writes to memory. */
  seen(bucket: string, queueUrl: string, sentAtMs: number): void;
  /** Stores the notes since the last call. Throws the store's fault; the notes that were not stored remain for the next call. */
  store(): Promise<void>;
}

/** A shorter wait is not told from the difference of two clocks, and from messages that were received before. */
const WAITED_MIN_MS = 10_000;

interface Note {
  atMs: number;
  /** The shortest wait of all: in a queue that is not behind, some event has waited for almost nothing. */
  waitedMs: number;
  /** When the one that was sent last was sent. */
  sentAtMs: number;
}

/** Creates the memory, which has at most one note for each connected bucket and queue. */
export function createLastEvents({ state, clock }: { readonly state: StateStore; readonly clock: Pick<Clock, 'nowMs'> }): LastEvents {
  const noted = new Map<string, Map<string, Note>>();

  async function storeOf(bucket: string, queue: EventQueue, sentAtMs: number): Promise<void> {
    const stored = await updateRecord(state, refs.bucket(bucket), (current) => current && noting(current, queue));
    // an event that was sent before belongs to an earlier life of the bucket
    if (stored !== undefined && sentAtMs >= (stored.waySinceMs ?? stored.createdAtMs)) await noteProof({ state, clock }, stored);
  }

  return {
    seen(bucket, queueUrl, sentAtMs) {
      const atMs = clock.nowMs();
      const queues = noted.get(bucket) ?? new Map<string, Note>();
      const note = queues.get(queueUrl);
      if (note === undefined) {
        noted.set(bucket, queues.set(queueUrl, { atMs, waitedMs: atMs - sentAtMs, sentAtMs }));
        return;
      }
      note.atMs = atMs;
      note.sentAtMs = Math.max(note.sentAtMs, sentAtMs);
      note.waitedMs = Math.min(note.waitedMs, atMs - sentAtMs);
    },
    async store() {
      for (const [bucket, queues] of noted) {
        for (const [queueUrl, { atMs, waitedMs, sentAtMs }] of queues) {
          await storeOf(bucket, { queueUrl, atMs, ...(waitedMs >= WAITED_MIN_MS && { waitedMs }) }, sentAtMs);
          if (queues.get(queueUrl)?.atMs === atMs) queues.delete(queueUrl);
        }
        if (queues.size === 0) noted.delete(bucket);
      }
    },
  };
}

function noting(record: BucketRecord, queue: EventQueue): BucketRecord {
  const lastEventAtMs = Math.max(queue.atMs, record.lastEventAtMs ?? 0);
  return { ...record, lastEventAtMs, eventQueues: withEventQueue(record.eventQueues, queue) };
}
