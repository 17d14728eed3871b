/**
 * The reindex role: works on tasks from the work queue, a few at a time, until it is stopped.
 *
 *   stopped ──start──► receiving ──stop──► draining (turns end at their next page) ──► idle │ deadline: turns aborted
 *
 * A task is received only while a slot is free, so that other workers get the tasks that this one has no slot for.
 */
import { faultOf, type Fault } from '../../domain/fault.ts';
import { hasEnded, type JobRecord } from '../../domain/reindex/job.ts';
import { answerAtStart, waitMs } from '../../domain/reindex/range-transitions.ts';
import { createSettler } from '../queues/settler.ts';
import type { Circuits } from '../serving/circuits.ts';
import type { BucketListing } from '../ports/storage.ts';
import type { Clock } from '../ports/clock.ts';
import type { Store } from '../ports/store.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { QueueClient, QueueMessage, QueueReceiver } from '../ports/queues.ts';
import type { ReconcileTurn } from '../compare/reconcile-turn.ts';
import { endedBy } from '../serving/async.ts';
import { createReceiveFault } from '../serving/receive-fault.ts';
import { repeat } from '../serving/repeat.ts';
import { readRecord, refs, updateRecord } from '../records/stored.ts';
import { createAdvanceJob } from './advance-job.ts';
import { createJobEnds } from './job-ends.ts';
import { createOccupancy } from './occupancy.ts';
import type { RangeLimits } from './range-records.ts';
import { createRunRange } from './run-range.ts';
import { FAULT_WAIT_S, parseTask, REMOVE, type SendTask, type Task, type TaskEnd } from './tasks.ts';
import { createWorkerSlots, type WorkerSlot } from './worker-slots.ts';

/** How long a long poll may still run after a stop before it is aborted. */
const POLL_GRACE_MS = 500;
/** How long aborted turns have after the deadline to give their ranges back. */
const ABORTED_GRACE_MS = 500;
/** How often the role checks whether receiving may continue. */
const ADMIT_CHECK_MS = 100;
/** How often the jobs of the slots are read: a pause or a cancel takes effect this soon. */
const JOB_CHECK_MS = 2_000;
/** Receiving nothing for this long means that the work queue is empty. */
const QUEUE_EMPTY_MS = 1_500;
const SPLIT_CHECK_MS = 500;
/** Ranges of one worker that are compared at the same time even if the index is slow: one alone would keep a job from other workers. */
const RANGES_WHEN_SLOW = 2;
/** How often a worker without a free slot, which receives nothing, reads the queue's depth to see whether others may lack work. */
const QUEUE_CHECK_MS = 5_000;
/** Attempts to start a job whose start fails because of the job itself. */
const STARTS_MAX = 3;
const START_RETRY_S = 10;

export interface ReindexParts {
  readonly store: Pick<Store, 'state' | 'scan'>;
  readonly listing: BucketListing;
  readonly turn: ReconcileTurn;
  readonly queues: QueueClient;
  readonly workQueueUrl: string;
  readonly sendTask: SendTask;
  /** Receives from the work queue, one message at a time. */
  readonly receiver: QueueReceiver;
  readonly circuits: Pick<Circuits, 'openOf'>;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Whether the index is so slow that more ranges at the same time would only wait longer. Default: it never is. */
  readonly indexIsSlow?: () => boolean;
  /** A name that no other process has or had. */
  readonly worker: string;
  readonly limits: RangeLimits & { readonly listings: number; readonly visibilityS: number };
}

export interface ReindexRole {
  start(): void;
  /** Stops receiving and ends all turns; aborts those that still run at the deadline. Resolves within a second of it. */
  stop(deadline: AbortSignal): Promise<void>;
  /** The fault of the last receive; undefined if it succeeded. */
  receiveFault(): Fault | undefined;
}

/** Creates the role from its parts; nothing runs before start(). */
export function createReindexRole(parts: ReindexParts): ReindexRole {
  const { store, queues, receiver, circuits, sendTask, clock, telemetry, limits, indexIsSlow = () => false } = parts;
  const { state, scan } = store;
  const occupancy = createOccupancy(state);
  const ends = createJobEnds({ state, scan, clock, telemetry, sendTask });
  const advance = createAdvanceJob({ ...parts, state, scan, occupancy, ends });
  const runRange = createRunRange({ ...parts, state, occupancy, ends });
  const settler = createSettler({ queues, clock, telemetry, visibilityS: limits.visibilityS });
  const stopping = new AbortController();
  const aborting = new AbortController();
  const slots = createWorkerSlots({ state, clock, telemetry, slotsMax: limits.listings, stopping: stopping.signal });
  let receivingSinceMs: number | undefined;
  const receiveFault = createReceiveFault('receive from the work queue', telemetry);
  let hasWarned = false;

  async function admit(signal: AbortSignal): Promise<void> {
    while (slots.isFull || circuits.openOf(['cluster']) !== undefined) {
      receivingSinceMs = undefined;
      await clock.sleep(ADMIT_CHECK_MS, signal);
    }
    // the start of the first of several polls that received nothing
    receivingSinceMs ??= clock.monotonicMs();
  }

  async function handle(messages: readonly QueueMessage[]): Promise<void> {
    receivingSinceMs = undefined;
    for (const message of messages) {
      settler.hold(message);
      const task = taskOf(message);
      if (task === undefined) {
        telemetry.reindexTask('invalid');
        // logged once, since there may be many
        if (!hasWarned) telemetry.warn('deleted a message that is not a task; more are only counted', { queueUrl: parts.workQueueUrl });
        hasWarned = true;
        await settler.remove(message);
      } else {
        slots.run(task, (slot) => work(message, slot));
      }
    }
  }

  /**
   * The task of a message. A message that is received again stands for the next turn, whichever it is: its worker, or the
   * store, may have failed after the turn was stored and before the next turn had a task. If that turn has its own task too,
   * one of the two finds the range leased, and later its turn over.
   */
  function taskOf({ body, receiveCount }: QueueMessage): Task | undefined {
    const task = parseTask(body);
    if (task === undefined || receiveCount <= 1) return task;
    const { turn: _, ...anyTurn } = task;
    return anyTurn;
  }

  async function work(message: QueueMessage, slot: WorkerSlot): Promise<void> {
    const { task } = slot;
    const running = task.range === undefined ? advance(task.job, aborting.signal) : runRange(slot, aborting.signal);
    const end = await running.catch((error: unknown) => endOf(message, task, error));
    await settle(message, task, end);
  }

  /** What happens to a task that ended with an exception. */
  async function endOf(message: QueueMessage, task: Task, error: unknown): Promise<TaskEnd> {
    if (aborting.signal.aborted) return { kind: 'back', delayS: 0 };
    const { code, reason } = faultOf(error);
    telemetry.requestFailed(task.range === undefined ? 'start a re-index job' : 'work on a range of a re-index job', code, reason);
    // a range that was leased counts this lease as one without progress
    if (task.range !== undefined) return { kind: 'back', delayS: FAULT_WAIT_S };
    // the store may be what fails
    return afterStart(task.job, { code, reason }, message.receiveCount).catch(() => ({ kind: 'back', delayS: FAULT_WAIT_S }));
  }

  async function afterStart(id: string, fault: Fault, receiveCount: number): Promise<TaskEnd> {
    const job = await readRecord(state, refs.job(id));
    if (job === undefined) return REMOVE;
    switch (answerAtStart(fault.code, job)) {
      case 'wait':
        return waitToStart(job, fault);
      case 'retry':
        if (receiveCount < STARTS_MAX) return { kind: 'back', delayS: START_RETRY_S };
        break;
      case 'fail':
    }
    await ends.fail(job, fault);
    return REMOVE;
  }

  /** The job keeps its place, shows why it waits, and its task comes back as a new message, so that it never becomes a dead letter. */
  async function waitToStart({ id }: JobRecord, fault: Fault): Promise<TaskEnd> {
    const nowMs = clock.nowMs();
    const job = await updateRecord(state, refs.job(id), (current) => {
      if (current === undefined || hasEnded(current)) return undefined;
      const sinceMs = current.waits?.sinceMs ?? nowMs;
      return { ...current, waits: { ...fault, sinceMs }, taskAtMs: nowMs + waitMs(sinceMs, nowMs) };
    });
    return job === undefined ? REMOVE : { kind: 'again', delayS: waitMs(job.waits.sinceMs, nowMs) / 1_000 };
  }

  async function settle(message: QueueMessage, task: Task, end: TaskEnd): Promise<unknown> {
    switch (end.kind) {
      case 'remove':
        return settler.remove(message);
      case 'back':
        return settler.hide(message, end.delayS);
      case 'again':
        // sent first: a crash in between leaves two messages, of which one will find nothing to do
        return sendTask(taskAgain(task, end.watched), end.delayS).then(
          () => settler.remove(message),
          () => settler.hide(message, end.delayS),
        );
    }
  }

  /** Splits ranges of this worker while the queue is empty and slots are free; while the index is slow, a few slots suffice. */
  async function fillOwnSlots(): Promise<void> {
    const isEmpty = receivingSinceMs !== undefined && clock.monotonicMs() - receivingSinceMs >= QUEUE_EMPTY_MS;
    const wanted = indexIsSlow() ? RANGES_WHEN_SLOW - (limits.listings - slots.free) : slots.free;
    if (isEmpty && wanted > 0) slots.wantSplits(Math.min(wanted, slots.free));
  }

  /** Splits one range for other workers while the queue is empty and no slot is free here. */
  async function feedOthers(signal: AbortSignal): Promise<void> {
    if (!slots.isFull || indexIsSlow()) return;
    const { visible, delayed } = await queues.attributes(parts.workQueueUrl, signal);
    if (visible + delayed === 0) slots.wantSplits(1);
  }

  return {
    start() {
      const signal = stopping.signal;
      repeat({ clock, telemetry }, { name: 'check the jobs being worked on', intervalMs: JOB_CHECK_MS, signal }, () => slots.watchJobs());
      repeat({ clock, telemetry }, { name: 'choose ranges to split', intervalMs: SPLIT_CHECK_MS, signal }, fillOwnSlots);
      repeat({ clock, telemetry }, { name: 'check whether other workers lack work', intervalMs: QUEUE_CHECK_MS, signal }, feedOthers);
      receiver.start({ admit, handle, polled: receiveFault.polled, failed: receiveFault.failed });
    },
    async stop(deadline) {
      stopping.abort(new Error('the process is stopping'));
      await receiver.stop(POLL_GRACE_MS);
      await endedBy(slots.idle(), deadline);
      aborting.abort(new Error('the deadline of the stop has passed'));
      await endedBy(slots.idle(), AbortSignal.timeout(ABORTED_GRACE_MS));
      if (settler.inHand > 0) await settler.giveBackAll();
      settler.close();
    },
    receiveFault: receiveFault.current,
  };
}

/** The task as it is sent again. What an earlier message watched is no longer of use. */
function taskAgain(task: Task, watched: string | undefined): Task {
  const { watched: _, ...rest } = task;
  return { ...rest, ...(watched !== undefined && { watched }) };
}
