/**
 * One turn of one range, from its task to what becomes of it:
 *
 *   job runs? ─► lease ─► turn ─► cursor, counts, examples and split in one swap ─► next task │ done │ job paused or failed
 */
import type { BucketRecord } from '../../domain/bucket.ts';
import { addCounts, noCounts } from '../../domain/reindex/counts.ts';
import { compareKeys } from '../../domain/documents/key-order.ts';
import { placeOf, type JobStep } from '../../domain/reindex/job-steps.ts';
import { afterTurn, answerTo, FRUITLESS_MAX, givenBack, rangeName, splitRange } from '../../domain/reindex/range-steps.ts';
import type { JobRecord } from '../../domain/reindex/job.ts';
import { FaultError, faultOf, type FaultCode } from '../../domain/fault.ts';
import type { JobSlots } from './job-slots.ts';
import type { BucketListing } from '../ports/storage.ts';
import { readRecord, refs } from '../records/stored.ts';
import { createBrake, type Brake } from './brake.ts';
import { createTakeRange, type HeldRange } from './held-range.ts';
import type { EndsDependencies, JobEnds } from './job-ends.ts';
import { stepJob } from './job-records.ts';
import type { RangeLimits } from './range-records.ts';
import type { ReconcileTurn, TurnResult } from '../compare/reconcile-turn.ts';
import { numberCuts, searchCuts } from './split-range.ts';
import { FAULT_WAIT_S, REMOVE, type Task, type TaskEnd } from './tasks.ts';

/** A turn is so short that many jobs get theirs, and so long that its beginning and end cost nothing. */
const TURN_PAGES_MAX = 100;
const TURN_MS_MAX = 30_000;
/** Whatever a turn waits for has a time-out of its own; if one is missing, this ends it. Answers that it still has live for 30 s. */
const TURN_STUCK_MS = 180_000;
/** A range's own fault may pass: 5, then 10 seconds. */
const RETRY_S = 5;

/** Perhaps to another worker, perhaps to nobody: a lease that could not be renewed. Whichever it was is seen when the task comes back. */
const LOST: TaskEnd = { kind: 'back', delayS: FAULT_WAIT_S };

/** One place of this worker in which a task is worked on. */
export interface TurnSlot {
  readonly task: Task;
  /** Asked between pages. */
  readonly shouldEnd: () => boolean;
  /** Into how many parts this range is to be split, since other places are free; 1: not at all, or not any more. */
  readonly partsWanted: () => number;
  /** Resolves when it is to be split, if that ever comes. */
  readonly splitWanted: Promise<void>;
  /** The turn has begun, or ended. */
  readonly isRunning: (isRunning: boolean) => void;
  /** A place to split it at was looked for in vain. */
  readonly notSplit: () => void;
}

export type RunRange = (slot: TurnSlot, signal: AbortSignal) => Promise<TaskEnd>;

interface RunDependencies extends EndsDependencies {
  readonly listing: BucketListing;
  readonly slots: JobSlots;
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

/** Creates the run. It throws the faults of the store and the work queue; the range is free again after its lease at the latest. */
export function createRunRange(dependencies: RunDependencies): RunRange {
  const { state, clock, telemetry, slots, ends, turn, sendTask, worker } = dependencies;
  const takeAndHold = createTakeRange({ state, clock, worker });

  async function runRange(slot: TurnSlot, signal: AbortSignal): Promise<TaskEnd> {
    const { task } = slot;
    const job = await readRecord(state, refs.job(task.job), signal);
    // an apply job without its slot has lost its bucket to another: the calendar sorts it out
    if (job === undefined || placeOf(job) !== 'comparing' || !(job.mode === 'report' || (await slots.isOf(job)))) return REMOVE;
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
      // whoever takes it next need not wait for the lease
      await range.change(givenBack).catch(() => false);
      throw error;
    } finally {
      range.release();
    }
  }

  /** The range in hand, or what becomes of a task that does not get it. */
  async function take(job: JobRecord, { range: number = 0, turn: taskTurn }: Task): Promise<HeldRange | TaskEnd> {
    const taken = await takeAndHold(job, number, taskTurn);
    telemetry.reindexTask(taken.kind);
    switch (taken.kind) {
      case 'taken':
        return taken.range;
      case 'done':
        // its worker may have died before it looked whether this was the last one
        await ends.finishIfDone(job.id);
        return REMOVE;
      case 'stale':
        return REMOVE;
      case 'leased':
        return { kind: 'again', delayS: Math.ceil(taken.leftMs / 1_000) };
      case 'poisonous':
        await ends.fail(job, taken.error);
        return REMOVE;
    }
  }

  async function workOn(held: Held, slot: TurnSlot, signal: AbortSignal): Promise<TaskEnd> {
    const { job, range } = held;
    await ends.completeSplit(range.record, { isTold: slot.task.turn !== undefined });
    const brake = createBrake(state, job.id);
    const startedMs = clock.monotonicMs();
    const search = searchCuts(dependencies, { ...held, range: range.record, slot }, signal);
    const turnSlot = { ...slot, shouldEnd: () => slot.shouldEnd() || search.hasFound };
    const ended = await turnOf(held, turnSlot, { brake, signal });
    const { boundaries, requests } = await search.end();
    // beside what else is stored: each swap waits until it can be listed
    const brakeReleased = brake.giveBack();
    if ('kind' in ended) {
      await brakeReleased;
      return ended;
    }
    const result = brake.blame(ended);
    const cuts = isWhole(result) && !range.lost.aborted ? await numberCuts(state, job.id, after(result.cursor, boundaries)) : [];
    const counts = addCounts(result.counts, { listRequests: requests });
    const isStored = await range.change((record) => splitRange(afterTurn(record, { ...result, counts }, clock.nowMs()), cuts));
    await brakeReleased;
    telemetry.reindexTurn({
      mode: job.mode,
      counts,
      result: isStored ? outcomeOf(result) : 'lost',
      durationMs: clock.monotonicMs() - startedMs,
    });
    if (boundaries.length > 0) telemetry.reindexSplit(isStored && cuts.length > 0);
    if (!isStored) return LOST;
    await ends.completeSplit(range.record);
    return follow(held, result, brake.met);
  }

  /** The turn's result; or what becomes of the task when it was broken off: by a stop, or because the range is lost. */
  async function turnOf(
    { job, bucket, range }: Held,
    slot: TurnSlot,
    { brake, signal }: { readonly brake: Brake; readonly signal: AbortSignal },
  ): Promise<TurnResult | TaskEnd> {
    const { cursor, to } = range.record;
    const stuck = new AbortController();
    const ended = new AbortController();
    clock.sleep(TURN_STUCK_MS, ended.signal).then(
      () => stuck.abort(new FaultError('internal.unexpected', `the turn did not end within ${TURN_STUCK_MS} ms`)),
      () => undefined,
    );
    slot.isRunning(true);
    try {
      return await turn(
        { bucket, prefix: job.prefix, after: cursor, ...(to !== undefined && { upTo: to }), mode: job.mode, fill: job.fill === true },
        {
          reserve: brake.reserve,
          shouldEnd: () => range.lost.aborted || slot.shouldEnd(),
          upTo: () => range.record.to,
          pagesMax: TURN_PAGES_MAX,
          durationMaxMs: TURN_MS_MAX,
        },
        AbortSignal.any([signal, range.lost, stuck.signal]),
      );
    } catch (error) {
      if (range.lost.aborted) return LOST;
      signal.throwIfAborted();
      // it was stuck, or threw what no turn may: like any other fault of its range
      return { cursor, done: false, counts: noCounts, examples: {}, fault: faultOf(error) };
    } finally {
      ended.abort(new Error('the turn has ended'));
      slot.isRunning(false);
    }
  }

  /** What comes after a turn that was stored. `met`: the limit of tombstones that it met. */
  async function follow({ job, range }: Held, result: TurnResult, met: number | undefined): Promise<TaskEnd> {
    const { number, turn: next, fruitless } = range.record;
    const task = { job: job.id, range: number, turn: next };
    if (result.braked !== undefined) {
      // released meanwhile: it goes on
      if ((await stepJob(state, job.id, brakeStep(clock.nowMs(), result.braked, met))) === 'refused') await sendTask(task);
      return REMOVE;
    }
    if (result.fault !== undefined) telemetry.requestFailed('compare a range', result.fault.code, result.fault.reason);
    const delayS = result.fault === undefined ? 0 : delayAfter(result.fault.code, fruitless);
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

/** How long a range is left alone after a fault; `never`: the job fails. */
function delayAfter(code: FaultCode, fruitless: number): number | 'never' {
  switch (answerTo(code)) {
    case 'wait':
      return FAULT_WAIT_S;
    case 'retry':
      return fruitless >= FRUITLESS_MAX ? 'never' : RETRY_S * Math.max(1, fruitless);
    case 'fail':
      return 'never';
  }
}

function brakeStep(atMs: number, waiting: number, met: number | undefined): JobStep {
  return { kind: 'brake', atMs, waiting, ...(met !== undefined && { met }) };
}

/** Boundaries that the turn has not passed. */
function after(cursor: string, boundaries: readonly string[]): readonly string[] {
  return boundaries.filter((boundary) => compareKeys(boundary, cursor) > 0);
}

function isWhole({ done, fault, braked }: TurnResult): boolean {
  return !done && fault === undefined && braked === undefined;
}

function outcomeOf({ done, fault, braked }: TurnResult): 'done' | 'on' | 'braked' | FaultCode {
  if (fault !== undefined) return fault.code;
  if (braked !== undefined) return 'braked';
  return done ? 'done' : 'on';
}
