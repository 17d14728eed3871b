/**
 * Runs one turn of one range, from its task to what follows the turn:
 *
 *   job runs? ─► lease ─► turn ─► cursor, counts, examples and split in one swap ─► next task │ done │ job paused or failed
 */
import type { BucketRecord } from '../../domain/bucket.ts';
import { addCounts, noCounts, type ReconcileCounts } from '../../domain/reindex/counts.ts';
import { compareKeys } from '../../domain/documents/key-order.ts';
import { phaseOf } from '../../domain/reindex/job-transitions.ts';
import { afterTurn, answerTo, FRUITLESS_MAX, givenBack, rangeName, splitRange, waitMs } from '../../domain/reindex/range-transitions.ts';
import type { JobRecord, RangeRecord } from '../../domain/reindex/job.ts';
import { placeAfter } from '../../domain/reindex/passed-pages.ts';
import { FaultError, faultOf, type FaultCode } from '../../domain/fault.ts';
import type { BucketListing } from '../ports/storage.ts';
import { readRecord, refs } from '../records/stored.ts';
import { createBrake, type Brake } from './brake.ts';
import { createTakeRange, type HeldRange } from './held-range.ts';
import type { EndsDependencies, JobEnds } from './job-ends.ts';
import { countLost } from './job-records.ts';
import type { Occupancy } from './occupancy.ts';
import type { RangeLimits } from './range-records.ts';
import type { ReconcileTurn, TurnRequest, TurnResult } from '../compare/reconcile-turn.ts';
import { showProgress } from './show-progress.ts';
import { numberCuts, searchCuts } from './split-range.ts';
import { FAULT_WAIT_S, REMOVE, type Task, type TaskEnd } from './tasks.ts';
import type { WorkerSlot } from './worker-slots.ts';

/** Turns are short, so that many jobs share the workers, yet long enough that beginning and ending them costs little. */
const TURN_PAGES_MAX = 100;
const TURN_MS_MAX = 30_000;
/** Every request of a turn has its own time-out. This one ends a turn that hangs nevertheless; answers expire after 30 s at most. */
const TURN_STUCK_MS = 180_000;
/** Wait after a fault that concerns the range alone: 5 s the first time, then 10 s. */
const RETRY_S = 5;

/** The range was lost to another worker, or its lease could not be renewed. The task comes back to find out. */
const LOST: TaskEnd = { kind: 'back', delayS: FAULT_WAIT_S };

interface RunDependencies extends EndsDependencies {
  readonly listing: BucketListing;
  readonly occupancy: Occupancy;
  readonly ends: JobEnds;
  readonly turn: ReconcileTurn;
  readonly worker: string;
  readonly limits: RangeLimits;
}

interface Held {
  readonly job: JobRecord;
  readonly bucket: BucketRecord;
  readonly range: HeldRange;
}

/** What a turn uses besides its range. `written`: what counts of it if its result cannot be stored. */
interface TurnTools {
  readonly brake: Brake;
  readonly written: { counts: ReconcileCounts };
  readonly signal: AbortSignal;
}

/** Creates the function that runs a turn. It throws the faults of the store and the work queue; the range is free when its lease ends, or before. */
export function createRunRange(dependencies: RunDependencies): (slot: WorkerSlot, signal: AbortSignal) => Promise<TaskEnd> {
  const { state, clock, telemetry, occupancy, ends, sendTask, worker } = dependencies;
  const takeAndHold = createTakeRange({ state, clock, worker });
  const turnOf = createTurnOf(dependencies);

  async function runRange(slot: WorkerSlot, signal: AbortSignal): Promise<TaskEnd> {
    const { task } = slot;
    const job = await readRecord(state, refs.job(task.job), signal);
    // if another job occupies its bucket, the calendar sends the job's own task, which pauses it
    if (job === undefined || phaseOf(job) !== 'comparing' || !(await occupancy.mayRun(job))) return REMOVE;
    const bucket = await readRecord(state, refs.bucket(job.bucket), signal);
    if (bucket === undefined) {
      await ends.cancel(job);
      return REMOVE;
    }
    const range = await take(job, task);
    if ('kind' in range) return range;
    try {
      return await workOn({ job, bucket, range }, slot, signal);
    } catch (error) {
      // so that the next worker need not wait for the end of the lease
      await range.change((record) => givenBack(record)).catch(() => false);
      throw error;
    } finally {
      range.release();
    }
  }

  /** The held range, or what happens to the task if the range could not be taken. */
  async function take(job: JobRecord, { range: number = 0, turn: taskTurn, watched }: Task): Promise<HeldRange | TaskEnd> {
    const taken = await takeAndHold(job, number, { turn: taskTurn, watched });
    telemetry.reindexTask(taken.kind);
    switch (taken.kind) {
      case 'taken':
        return taken.range;
      case 'done':
        // its worker may have died before it checked whether this was the last range
        await ends.finishIfDone(job.id);
        return REMOVE;
      case 'late':
        return REMOVE;
      case 'leased':
        return { kind: 'again', delayS: Math.ceil(taken.leftMs / 1_000), ...(taken.watched !== undefined && { watched: taken.watched }) };
      case 'poisonous':
        await ends.fail(job, taken.error);
        return REMOVE;
    }
  }

  async function workOn(held: Held, slot: WorkerSlot, signal: AbortSignal): Promise<TaskEnd> {
    const { job, range } = held;
    await ends.completeSplit(range.record, { areTasksSent: slot.task.turn !== undefined });
    const brake = createBrake(state, job.id);
    const startedMs = clock.monotonicMs();
    const search = searchCuts(dependencies, { ...held, range: range.record, slot }, signal);
    const turnSlot = { ...slot, shouldEnd: () => slot.shouldEnd() || search.hasFound };
    const written = { counts: noCounts };
    const ended = await turnOf(held, turnSlot, { brake, written, signal });
    const { boundaries, requests } = await search.end();
    // in parallel with the next swap
    const brakeReleased = brake.giveBack();
    if ('kind' in ended) {
      await brakeReleased;
      await countLost(state, job.id, written.counts);
      return ended;
    }
    const result = brake.explain(ended);
    const cuts = isWhole(result) && !range.lost.aborted ? await numberCuts(state, job.id, after(result.cursor, boundaries)) : [];
    const counts = addCounts(result.counts, { listRequests: requests });
    const { listRequests, headRequests } = counts;
    const repeated = addCounts(written.counts, { listRequests, headRequests });
    const stored = (record: RangeRecord): RangeRecord =>
      splitRange(afterTurn(record, { ...result, counts, repeated }, clock.nowMs()), cuts);
    const isStored = await range.change(stored, isOrdinary(result) ? 'soon' : 'now');
    await brakeReleased;
    telemetry.reindexTurn({
      mode: job.mode,
      counts,
      result: isStored ? outcomeOf(result) : 'lost',
      durationMs: clock.monotonicMs() - startedMs,
    });
    if (boundaries.length > 0) telemetry.reindexSplit(isStored && cuts.length > 0);
    if (!isStored) {
      await countLost(state, job.id, written.counts);
      return LOST;
    }
    await ends.completeSplit(range.record);
    return follow(held, result);
  }

  /** Does what follows a stored turn. */
  async function follow({ job, range }: Held, result: TurnResult): Promise<TaskEnd> {
    const { number, turn: next } = range.record;
    const task = { job: job.id, range: number, turn: next };
    if (result.fault !== undefined) telemetry.requestFailed('compare a range of a re-index job', result.fault.code, result.fault.reason);
    const delayS = result.fault === undefined ? 0 : delayAfter(result.fault.code, range.record, clock.nowMs());
    if (result.fault !== undefined && delayS === 'never') {
      await ends.fail(job, { code: result.fault.code, reason: result.fault.reason, range: rangeName(range.record) });
    } else if (result.done) {
      await ends.finishIfDone(job.id);
    } else if (delayS !== 'never') {
      await sendTask(task, delayS);
    }
    return REMOVE;
  }

  return runRange;
}

/** Creates the function that runs the turn of a held range. */
function createTurnOf({ clock, turn }: Pick<RunDependencies, 'clock' | 'turn'>) {
  /** The turn's result, or what happens to the task if the range was lost. Throws the signal's reason when the worker stops. */
  return async function turnOf(
    { job, bucket, range }: Held,
    slot: WorkerSlot,
    { brake, written, signal }: TurnTools,
  ): Promise<TurnResult | TaskEnd> {
    const stuck = new AbortController();
    const ended = new AbortController();
    clock.sleep(TURN_STUCK_MS, ended.signal).then(
      () => stuck.abort(new FaultError('internal.unexpected', `the turn did not end within ${TURN_STUCK_MS} ms`)),
      () => undefined,
    );
    slot.isRunning(true);
    let counted: ReconcileCounts | undefined;
    void showProgress({ clock, range, counted: () => counted }, ended.signal);
    try {
      return await turn(
        requestOf({ job, bucket, range }),
        {
          reserve: brake.reserve,
          holdsBack: brake.holdsBack,
          shouldEnd: () => range.lost.aborted || slot.shouldEnd(),
          upTo: () => range.record.to,
          pagesMax: TURN_PAGES_MAX,
          durationMaxMs: TURN_MS_MAX,
          wrote: (counts) => {
            written.counts = addCounts(written.counts, counts);
          },
          progressed: (counts) => {
            counted = counts;
          },
        },
        AbortSignal.any([signal, range.lost, stuck.signal]),
      );
    } catch (error) {
      if (range.lost.aborted) return LOST;
      if (signal.aborted) {
        // so that the next worker need not wait for the end of the lease
        await range.change((record) => givenBack(record, written.counts)).catch(() => false);
        signal.throwIfAborted();
      }
      // the turn hung or threw, which is treated like any other fault of its range
      return { cursor: range.record.cursor, done: false, counts: written.counts, examples: {}, fault: faultOf(error) };
    } finally {
      ended.abort(new Error('the turn has ended'));
      slot.isRunning(false);
    }
  };
}

function requestOf({ job, bucket, range }: Held): TurnRequest {
  const { cursor, to, passed, readsFirst = false } = range.record;
  const place = placeAfter(passed, cursor);
  const options = { mode: job.mode, readsFirst, fill: job.fill === true, tags: job.tags === true };
  const part = { after: cursor, ...(place !== undefined && { place }), ...(to !== undefined && { upTo: to }) };
  return { bucket, prefix: job.prefix, ...part, ...options };
}

/** How long the range waits after a fault; `never`: the job fails. */
function delayAfter(code: FaultCode, { fruitless, waitingSinceMs }: RangeRecord, nowMs: number): number | 'never' {
  switch (answerTo(code)) {
    case 'wait':
      return waitMs(waitingSinceMs ?? nowMs, nowMs) / 1_000;
    case 'retry':
      return fruitless >= FRUITLESS_MAX ? 'never' : RETRY_S * Math.max(1, fruitless);
    case 'fail':
      return 'never';
  }
}

/** The boundaries that the turn has not passed. */
function after(cursor: string, boundaries: readonly string[]): readonly string[] {
  return boundaries.filter((boundary) => compareKeys(boundary, cursor) > 0);
}

function isWhole({ done, fault }: TurnResult): boolean {
  return !done && fault === undefined;
}

/** Whether nothing stopped the turn. Lists show at once what became of another one, because a person may look at its job now. */
function isOrdinary({ fault, heldBack }: TurnResult): boolean {
  return fault === undefined && heldBack === undefined;
}

function outcomeOf({ done, fault, heldBack }: TurnResult): 'done' | 'on' | 'braked' | FaultCode {
  if (fault !== undefined) return fault.code;
  if (heldBack !== undefined) return 'braked';
  return done ? 'done' : 'on';
}
