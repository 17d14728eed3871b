/**
 * The reindex role: tasks from the work queue, a few at once, until told to stop.
 *
 *   stopped ──start──► receiving ──stop──► draining (turns end at their next page) ──► idle │ deadline: turns broken off
 *
 * A task is received only when there is a place to work on it, so that what this worker cannot do, another one does.
 */
import type { Fault } from '../../domain/fault.ts';
import { faultOf } from '../../domain/fault.ts';
import { answerTo } from '../../domain/reindex/range-steps.ts';
import { createSettler } from '../queues/settler.ts';
import type { FaultGate } from '../serving/fault-gate.ts';
import type { BucketListing } from '../ports/storage.ts';
import type { Clock } from '../ports/clock.ts';
import type { Store } from '../ports/store.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { QueueClient, QueueMessage, QueueReceiver } from '../ports/queues.ts';
import type { ReconcileTurn } from '../compare/reconcile-turn.ts';
import { repeat } from '../serving/repeat.ts';
import { readRecord, refs } from '../records/stored.ts';
import { createAdvanceJob } from './advance-job.ts';
import { createJobEnds } from './job-ends.ts';
import { createJobSlots } from './job-slots.ts';
import { createPlaces } from './places.ts';
import type { RangeLimits } from './range-records.ts';
import { createRunRange, type TurnSlot } from './run-range.ts';
import { FAULT_WAIT_S, parseTask, type SendTask, type Task, type TaskEnd } from './tasks.ts';

/** A running long poll may end for this long before it is aborted. */
const POLL_GRACE_MS = 500;
/** After the deadline, for what was broken off to give its range back. */
const ABORTED_GRACE_MS = 500;
/** How soon what holds receiving back is looked at again. */
const LOOK_AGAIN_MS = 100;
/** A pause or a cancel is seen this soon. */
const JOB_LOOK_MS = 2_000;
/** Who receives nothing for so long has found the queue empty: what this worker has is all that there is. */
const QUEUE_EMPTY_MS = 1_500;
const SPLIT_LOOK_MS = 500;
/** A worker without a free place receives nothing; so often it asks whether others might be waiting for work. */
const QUEUE_LOOK_MS = 5_000;
/** The start of a job that fails by itself is tried so often. */
const STARTS_MAX = 3;
const START_RETRY_S = 10;

export interface ReindexParts {
  readonly store: Pick<Store, 'state' | 'scan'>;
  readonly listing: BucketListing;
  readonly turn: ReconcileTurn;
  readonly queues: QueueClient;
  readonly workQueueUrl: string;
  readonly sendTask: SendTask;
  /** Of the work queue, one message at a time. */
  readonly receiver: QueueReceiver;
  readonly gate: Pick<FaultGate, 'closedBy'>;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** A name of this process that no other has. */
  readonly worker: string;
  readonly limits: RangeLimits & { readonly listings: number; readonly visibilityS: number };
}

export interface ReindexRole {
  start(): void;
  /** Stops receiving, ends or breaks off what is in hand; all by the deadline and a second. */
  stop(deadline: AbortSignal): Promise<void>;
  /** Why the last receive failed; undefined when it did not. */
  receiveFault(): Fault | undefined;
}

/** Joins the parts; nothing runs before start(). */
export function createReindexRole(parts: ReindexParts): ReindexRole {
  const { store, queues, receiver, gate, sendTask, clock, telemetry, limits } = parts;
  const { state, scan } = store;
  const slots = createJobSlots({ state });
  const ends = createJobEnds({ state, scan, clock, telemetry, sendTask });
  const advance = createAdvanceJob({ ...parts, state, scan, slots, ends });
  const runRange = createRunRange({ ...parts, state, slots, ends });
  const settler = createSettler({ queues, clock, telemetry, visibilityS: limits.visibilityS });
  const stopping = new AbortController();
  const aborting = new AbortController();
  const places = createPlaces({ state, clock, telemetry, placesMax: limits.listings, stopping: stopping.signal });
  let receivingSinceMs: number | undefined;
  let lastFault: Fault | undefined;
  let hasForeign = false;

  async function admit(signal: AbortSignal): Promise<void> {
    while (places.isFull || gate.closedBy().has('index')) {
      receivingSinceMs = undefined;
      await clock.sleep(LOOK_AGAIN_MS, signal);
    }
    // short polls that find nothing are one long one
    receivingSinceMs ??= clock.monotonicMs();
  }

  async function handle(messages: readonly QueueMessage[]): Promise<void> {
    receivingSinceMs = undefined;
    for (const message of messages) {
      settler.hold(message);
      const task = taskOf(message);
      if (task === undefined) {
        telemetry.reindexTask('invalid');
        // they may be many
        if (!hasForeign) telemetry.warn('what is no task was deleted; more are only counted', { queueUrl: parts.workQueueUrl });
        hasForeign = true;
        await settler.remove(message);
      } else {
        places.occupy(task, (slot) => work(message, slot));
      }
    }
  }

  /**
   * Of a message that comes again without its turn: its worker, or the store, may have failed after it stored the turn and
   * before the next one had a task, so it stands for whichever turn is next. Where that has a task of its own, one of the
   * two finds the range leased, and its turn over after that.
   */
  function taskOf({ body, receiveCount }: QueueMessage): Task | undefined {
    const task = parseTask(body);
    if (task === undefined || receiveCount <= 1) return task;
    const { turn: _, ...anyTurn } = task;
    return anyTurn;
  }

  async function work(message: QueueMessage, slot: TurnSlot): Promise<void> {
    const { task } = slot;
    const running = task.range === undefined ? advance(task.job, aborting.signal) : runRange(slot, aborting.signal);
    const end = await running.catch((error: unknown) => endOf(message, task, error));
    await settle(message, task, end);
  }

  /** What becomes of a task that ended in an exception. */
  async function endOf(message: QueueMessage, task: Task, error: unknown): Promise<TaskEnd> {
    if (aborting.signal.aborted) return { kind: 'back', delayS: 0 };
    const { code, reason } = faultOf(error);
    telemetry.requestFailed(task.range === undefined ? 'start a job' : 'work on a range', code, reason);
    // the lease of a range is over by then, and counted as one without progress where it was taken
    if (answerTo(code) === 'wait' || task.range !== undefined) return { kind: 'back', delayS: FAULT_WAIT_S };
    if (answerTo(code) === 'retry' && message.receiveCount < STARTS_MAX) return { kind: 'back', delayS: START_RETRY_S };
    return failStart(task.job, { code, reason });
  }

  async function failStart(id: string, fault: Fault): Promise<TaskEnd> {
    try {
      const job = await readRecord(state, refs.job(id));
      if (job !== undefined) await ends.fail(job, fault);
      return { kind: 'remove' };
    } catch {
      return { kind: 'back', delayS: FAULT_WAIT_S };
    }
  }

  async function settle(message: QueueMessage, task: Task, end: TaskEnd): Promise<void> {
    switch (end.kind) {
      case 'remove':
        return settler.remove(message);
      case 'back':
        return settler.hide(message, end.delayS);
      case 'again':
        // sent first: a crash in between leaves two, of which one will find nothing to do
        return sendTask(task, end.delayS).then(
          () => settler.remove(message),
          () => settler.hide(message, end.delayS),
        );
    }
  }

  /** While the queue is empty and places are free, ranges in hand are split. */
  async function fillOwnPlaces(): Promise<void> {
    const isEmpty = receivingSinceMs !== undefined && clock.monotonicMs() - receivingSinceMs >= QUEUE_EMPTY_MS;
    if (isEmpty) places.wantSplits(places.free);
  }

  /** While nothing waits in the queue and no place is free here, a part of one range is left to whoever has one. */
  async function feedOthers(signal: AbortSignal): Promise<void> {
    if (!places.isFull) return;
    const { visible, delayed } = await queues.attributes(parts.workQueueUrl, signal);
    if (visible + delayed === 0) places.wantSplits(1);
  }

  async function idleBy(signal: AbortSignal): Promise<void> {
    const aborted = new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    await Promise.race([places.idle(), aborted]);
  }

  return {
    start() {
      const signal = stopping.signal;
      repeat({ clock, telemetry }, { name: 'look at the jobs in hand', intervalMs: JOB_LOOK_MS, signal }, () => places.watchJobs());
      repeat({ clock, telemetry }, { name: 'look for ranges to split', intervalMs: SPLIT_LOOK_MS, signal }, fillOwnPlaces);
      repeat({ clock, telemetry }, { name: 'look whether others wait for work', intervalMs: QUEUE_LOOK_MS, signal }, feedOthers);
      receiver.start({
        admit,
        handle,
        polled: () => {
          lastFault = undefined;
        },
        failed: (fault) => {
          if (lastFault?.reason !== fault.reason) telemetry.requestFailed('receive tasks', fault.code, fault.reason);
          lastFault = { code: fault.code, reason: fault.reason };
        },
      });
    },
    async stop(deadline) {
      stopping.abort(new Error('the process stops'));
      await receiver.stop(POLL_GRACE_MS);
      await idleBy(deadline);
      aborting.abort(new Error('the stop’s deadline has passed'));
      await idleBy(AbortSignal.timeout(ABORTED_GRACE_MS));
      if (settler.inHand > 0) await settler.giveBackAll();
      settler.close();
    },
    receiveFault: () => lastFault,
  };
}
