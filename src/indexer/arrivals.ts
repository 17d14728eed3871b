/**
 * What a process notes of the events that arrive, in memory, and stores now and then: how many there are in each hour, and when each
 * bucket's last event arrived, from which queue, and how long events wait there. People see it, and a loss in a queue is reported for the buckets that it feeds, and for those without a known queue.
 */
import { happenedByMs, withEventQueue, type BucketRecord, type EventQueue } from '../records/bucket.ts';
import { FUTURE_MS } from '../ordering/constants.ts';
import type { ChangeRecord } from '../events/record.ts';
import { familyOf, isByWay, type Arrival } from '../events/proof.ts';
import { noteArrivals } from '../observing/gaps.ts';
import { refs, updateRecord, eventHourIdOf, pagesOf } from '../store/stored.ts';
import type { WithPorts } from '../store/store.ts';
import { createHourCounts, DAY_MS, hourOf } from '../records/event-hours.ts';

export interface LastEvents {
  /** Notes that an event of a connected bucket arrived from this queue, to which it was sent at `sentAtMs`, through this topic. It only writes to memory. */
  seen(
    record: Pick<ChangeRecord, 'bucket' | 'dialect' | 'change' | 'eventTimeMs'>,
    message: { readonly queueUrl: string; readonly sentAtMs: number },
    topicArn?: string,
  ): void;
  /**
   * Stores the notes since the last call, for each bucket at most once a minute. If that fails for a bucket, its notes remain for the
   * next call, the other buckets' are stored, and the first fault is thrown.
   */
  store(): Promise<void>;
}

/** Rarely enough to be no load. A bucket's first event is shown at once. */
const STORED_EVERY_MS = 60_000;
/** A shorter wait may be only the difference of two clocks, or the time in hand of messages received before. */
const WAITED_MIN_MS = 10_000;

/** How many kinds of arrivals (dialect, family, topic) of a bucket are kept. Senders may write any topic into a message. */
const ARRIVALS_MAX = 32;

interface Note {
  atMs: number;
  /** The shortest wait of all: in a queue that is not behind, some event has waited for almost nothing. */
  waitedMs: number;
  /** When the oldest was sent. */
  sentFromMs: number;
  /** The last one of each kind. */
  readonly arrivals: Map<string, Arrival>;
}

/** Creates the memory, which has at most one note for each connected bucket and queue. */
export function createLastEvents({ state, clock }: WithPorts<'state' | 'clock'>): LastEvents {
  const notes = new Map<string, Map<string, Note>>();
  const lastStoredMs = new Map<string, number>();

  async function storeQueue(bucket: string, queue: EventQueue, arrivals: Note['arrivals']): Promise<void> {
    const stored = await updateRecord(state, refs.bucket(bucket), (current) => current && withEvents(current, queue, clock.nowMs()));
    if (stored === undefined) return;
    // other arrivals belong to an earlier life of the bucket, or came by another way
    const families = [...arrivals.values()].filter((arrival) => isByWay(stored, arrival)).map(({ family }) => family);
    if (families.length > 0) await noteArrivals({ state, clock }, stored, families);
  }

  async function storeQueues(bucket: string, queues: Map<string, Note>): Promise<void> {
    for (const [queueUrl, { atMs, waitedMs, sentFromMs, arrivals }] of queues) {
      await storeQueue(bucket, { queueUrl, atMs, sentFromMs, ...(waitedMs >= WAITED_MIN_MS && { waitedMs }) }, arrivals);
      if (queues.get(queueUrl)?.atMs === atMs) queues.delete(queueUrl);
    }
  }

  return {
    seen({ bucket, dialect, change, eventTimeMs }, { queueUrl, sentAtMs }, topicArn) {
      const atMs = clock.nowMs();
      const arrival = { dialect, family: familyOf(change), topicArn, happenedMs: happenedByMs({ sentAtMs, eventTimeMs }) };
      const queues = notes.get(bucket) ?? new Map<string, Note>();
      const note = queues.get(queueUrl) ?? { atMs, waitedMs: atMs - sentAtMs, sentFromMs: sentAtMs, arrivals: new Map<string, Arrival>() };
      note.atMs = atMs;
      note.waitedMs = Math.min(note.waitedMs, atMs - sentAtMs);
      note.sentFromMs = Math.min(note.sentFromMs, sentAtMs);
      noteArrival(note.arrivals, arrival);
      if (!queues.has(queueUrl)) notes.set(bucket, queues.set(queueUrl, note));
    },
    async store() {
      const faults: unknown[] = [];
      for (const [bucket, queues] of notes) {
        const nowMs = clock.monotonicMs();
        if (nowMs - (lastStoredMs.get(bucket) ?? -Infinity) < STORED_EVERY_MS) continue;
        await storeQueues(bucket, queues).catch((error: unknown) => faults.push(error));
        if (queues.size > 0) continue;
        notes.delete(bucket);
        lastStoredMs.set(bucket, nowMs);
      }
      if (faults.length > 0) throw faults[0];
    },
  };
}

function noteArrival(arrivals: Note['arrivals'], arrival: Arrival): void {
  const kind = `${arrival.dialect} ${arrival.family} ${arrival.topicArn ?? ''}`;
  const happenedMs = arrivals.get(kind)?.happenedMs ?? -Infinity;
  if (arrival.happenedMs > happenedMs && (arrivals.has(kind) || arrivals.size < ARRIVALS_MAX)) arrivals.set(kind, arrival);
}

function withEvents(record: BucketRecord, queue: EventQueue, nowMs: number): BucketRecord {
  // a time in the future was noted by a fast clock
  const beforeMs = record.lastEventAtMs === undefined || record.lastEventAtMs > nowMs + FUTURE_MS ? undefined : record.lastEventAtMs;
  const eventQueues = record.eventQueues?.filter(({ atMs }) => atMs <= nowMs + FUTURE_MS);
  return { ...record, lastEventAtMs: Math.max(queue.atMs, beforeMs ?? 0), eventQueues: withEventQueue(eventQueues, queue) };
}

// ── how many events arrive in each hour ────────────────────────────────────────────────────────────────────────────

/** Records read by one request, of at most a few kilobytes each. */
const PAGE = 200;
/** The present hour, and the one before while the store does not answer. */
const HOURS_MAX = 2;

export interface EventCounter {
  /** Counts an event, in memory only. `lagMs`: how long it took until a search found it, if that is known. */
  event(lagMs?: number): void;
  /** Stores the counts. Throws the store's fault; the next call then stores them. */
  store(signal?: AbortSignal): Promise<void>;
}

/** Creates a process's counter. When the process ends, counts that were not stored are lost: a minute's at most. */
export function createEventCounter({
  state,
  clock,
  worker,
}: WithPorts<'state' | 'clock'> & { /** No other process has or had this name. */ readonly worker: string }): EventCounter {
  const hours = new Map<number, ReturnType<typeof createHourCounts>>();

  function countsAt(nowMs: number): ReturnType<typeof createHourCounts> {
    const hourMs = hourOf(nowMs);
    let counts = hours.get(hourMs);
    if (counts === undefined) hours.set(hourMs, (counts = createHourCounts(hourMs)));
    const [oldest] = hours.keys();
    if (hours.size > HOURS_MAX && oldest !== undefined) hours.delete(oldest);
    return counts;
  }

  /** Deletes the records of all processes that are older than a day. */
  async function purge(nowMs: number, signal: AbortSignal | undefined): Promise<void> {
    const firstKept = eventHourIdOf(hourOf(nowMs - DAY_MS));
    for await (const entries of pagesOf(state, 'event-hour', { limit: PAGE, signal })) {
      const old = entries.filter(({ id }) => id < firstKept);
      for (const { id, version } of old) await state.remove(id, version, signal, 'soon');
      if (old.length < PAGE) return;
    }
  }

  return {
    event(lagMs) {
      const nowMs = clock.nowMs();
      countsAt(nowMs).event(nowMs, lagMs);
    },
    async store(signal) {
      const nowMs = clock.nowMs();
      countsAt(nowMs).seen(nowMs);
      for (const [hourMs, counts] of hours) {
        await updateRecord(state, refs.eventHour(hourMs, worker), () => counts.record(worker), 'soon');
        if (hourMs === hourOf(nowMs)) continue;
        hours.delete(hourMs);
        await purge(nowMs, signal);
      }
    },
  };
}
