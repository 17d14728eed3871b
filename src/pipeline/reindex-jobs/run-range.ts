/**
 * Runs one turn of a claimed range:
 *
 *   turn ─► cursor, counts, examples, split and the next time in one swap ─► due again │ done │ job paused or failed
 *     └───► cursor, counts and examples in a swap every five seconds, which is what the next worker has if this one dies
 */
import { addCounts, noCounts, shownCounts } from '../../domain/reindex/counts.ts';
import { compareKeys } from '../../domain/documents/key-order.ts';
import { FRUITLESS_MAX } from '../../domain/reindex/claims.ts';
import {
  afterTurn,
  answerTo,
  duringTurn,
  FAULT_WAIT_MS,
  givenBack,
  rangeName,
  splitRange,
  type TurnEnd,
  type TurnProgress,
} from '../../domain/reindex/range-transitions.ts';
import type { RangeRecord } from '../../domain/reindex/job.ts';
import { placeAfter } from '../../domain/reindex/passed-pages.ts';
import { FaultError, faultOf, type FaultCode } from '../../domain/fault.ts';
import type { BucketListing } from '../ports/storage.ts';
import { createBrake, type Brake } from './brake.ts';
import type { ClaimedRange } from './claim-range.ts';
import type { HeldRange } from './held-range.ts';
import type { EndsDependencies, JobEnds } from './job-ends.ts';
import type { RangeLimits } from './range-records.ts';
import type { ReconcileTurn, TurnRequest } from '../compare/reconcile-turn.ts';
import { numberCuts, searchCuts } from './split-range.ts';
import type { WorkerSlot } from './worker-slots.ts';

/** Turns are short, so that many jobs share the workers, yet long enough that beginning and ending them costs little. */
const TURN_PAGES_MAX = 100;
const TURN_MS_MAX = 30_000;
/** Every request of a turn has its own time-out. This one ends a turn that hangs nevertheless; answers expire after 30 s at most. */
const TURN_STUCK_MS = 180_000;
/**
 * The first progress is stored within a second, so that a first index is seen to run, and shorter turns store none; then every
 * five seconds. That is one more write of its record in five seconds for each range, beside the lease's in fifteen. The counts of a
 * worker that dies lack what it wrote since.
 */
const PROGRESS_FIRST_MS = 1_000;
const PROGRESS_MS = 5_000;

interface RunDependencies extends EndsDependencies {
  readonly listing: BucketListing;
  readonly ends: JobEnds;
  readonly turn: ReconcileTurn;
  readonly limits: RangeLimits;
}

/** A turn that runs on a held range. */
interface Turn {
  readonly slot: WorkerSlot;
  readonly brake: Brake;
  /** The range as it was when the turn began. */
  readonly begun: RangeRecord;
  /** What the turn has done since; undefined before its first slice. */
  progress: TurnProgress | undefined;
}

/**
 * Creates the function that runs a turn. It throws the store's fault; the range is due again after a while then, or when its lease is
 * over. Resolves with whether the range, or a part that was split off, is due now. If it was lost to another worker, nothing is left to do.
 */
export function createRunRange(
  dependencies: RunDependencies,
): (claimed: ClaimedRange, slot: WorkerSlot, signal: AbortSignal) => Promise<boolean> {
  const { state, clock, telemetry, ends } = dependencies;
  const endOf = createEndOf(dependencies);

  async function runRange(claimed: ClaimedRange, slot: WorkerSlot, signal: AbortSignal): Promise<boolean> {
    const { job, range } = claimed;
    try {
      await ends.completeSplit(range.record);
      const turn = { slot, brake: createBrake(state, job.id), begun: range.record, progress: undefined };
      return await workOn(claimed, turn, signal);
    } finally {
      range.release();
    }
  }

  async function workOn(held: ClaimedRange, turn: Turn, signal: AbortSignal): Promise<boolean> {
    try {
      return await runTurn(held, turn, signal);
    } catch (error) {
      // so that the next worker need not wait for the end of the lease
      const dueAtMs = clock.nowMs() + (signal.aborted ? 0 : FAULT_WAIT_MS);
      await held.range.change((record) => givenBack(duringTurn(record, { ...turn, nowMs: clock.nowMs() }), dueAtMs)).catch(() => false);
      throw error;
    }
  }

  async function runTurn(held: ClaimedRange, turn: Turn, signal: AbortSignal): Promise<boolean> {
    const { job, range } = held;
    const { slot, brake, begun } = turn;
    const startedMs = clock.monotonicMs();
    const search = searchCuts(dependencies, { ...held, range: begun, slot }, signal);
    const shouldEnd = (): boolean => range.lost.aborted || slot.shouldEnd() || search.hasFound;
    const ended = await endOf(held, turn, { shouldEnd, signal });
    const { boundaries, requests } = await search.end();
    // in parallel with the next swap
    const brakeReleased = brake.giveBack();
    const end = { ...ended, counts: addCounts(ended.counts, { listRequests: requests }) };
    const cuts = isWhole(end) && !range.lost.aborted ? await numberCuts(state, job.id, after(end.cursor, boundaries)) : [];
    const stored = (): RangeRecord => splitRange(afterTurn(begun, end, clock.nowMs()), cuts);
    const isStored = await range.change(stored, isOrdinary(end) ? 'soon' : 'now');
    await brakeReleased;
    telemetry.reindexTurn({
      mode: job.mode,
      counts: shownCounts(end.counts),
      result: isStored ? outcomeOf(end) : 'lost',
      durationMs: clock.monotonicMs() - startedMs,
    });
    if (boundaries.length > 0) telemetry.reindexSplit(isStored && cuts.length > 0);
    if (!isStored) return false;
    await ends.completeSplit(range.record);
    await follow(held, end);
    return cuts.length > 0 || isWhole(end);
  }

  /** Does what follows a stored turn. */
  async function follow({ job, range }: ClaimedRange, { fault, done }: TurnEnd): Promise<void> {
    if (fault !== undefined) telemetry.requestFailed('compare a range of a re-index job', fault.code, fault.reason);
    if (fault !== undefined && isGivenUp(fault.code, range.record)) {
      await ends.fail(job, { code: fault.code, reason: fault.reason, range: rangeName(range.record) });
    } else if (done) {
      await ends.finishIfDone(job.id);
    }
  }

  return runRange;
}

interface TurnStops {
  /** Whether the turn ends after its next slice. */
  readonly shouldEnd: () => boolean;
  readonly signal: AbortSignal;
}

/** Creates the function that runs the turn of a held range, and stores its progress while it runs. */
function createEndOf({ clock, turn: run }: Pick<RunDependencies, 'clock' | 'turn'>) {
  /** How the turn ended. Throws the signal's reason when the worker stops. */
  async function endOf(held: ClaimedRange, turn: Turn, { shouldEnd, signal }: TurnStops): Promise<TurnEnd> {
    const { range } = held;
    const { slot, brake, begun } = turn;
    const stuck = new AbortController();
    const ended = new AbortController();
    clock.sleep(TURN_STUCK_MS, ended.signal).then(
      () => stuck.abort(new FaultError('internal.unexpected', `the turn did not end within ${TURN_STUCK_MS} ms`)),
      () => undefined,
    );
    slot.isRunning(true);
    void keepProgress(range, turn, ended.signal);
    try {
      const end = await run(
        requestOf(held),
        {
          reserve: brake.reserve,
          holdsBack: brake.holdsBack,
          shouldEnd,
          upTo: () => begun.to,
          pagesMax: TURN_PAGES_MAX,
          durationMaxMs: TURN_MS_MAX,
          progressed: (progress) => {
            turn.progress = progress;
          },
        },
        AbortSignal.any([signal, range.lost, stuck.signal]),
      );
      const fault = end.fault ?? (end.done ? undefined : brake.fault());
      return { ...end, ...(fault !== undefined && { fault }) };
    } catch (error) {
      signal.throwIfAborted();
      // the turn hung or threw, which is treated like any other fault of its range, or it has lost the range
      return { cursor: begun.cursor, counts: noCounts, examples: {}, ...turn.progress, done: false, fault: faultOf(error) };
    } finally {
      ended.abort(new Error('the turn has ended'));
      slot.isRunning(false);
    }
  }

  /** Stores the progress again and again until the turn has ended. Never rejects: a failure costs what a death costs. */
  async function keepProgress(range: HeldRange, turn: Turn, ended: AbortSignal): Promise<void> {
    const sleep = (delayMs: number): Promise<boolean> =>
      clock.sleep(delayMs, ended).then(
        () => true,
        () => false,
      );
    let stored: TurnProgress | undefined;
    while (await sleep(stored === undefined ? PROGRESS_FIRST_MS : PROGRESS_MS)) {
      if (turn.progress === stored) continue;
      stored = turn.progress;
      await range.change((record) => duringTurn(record, { ...turn, nowMs: clock.nowMs() })).catch(() => false);
    }
  }

  return endOf;
}

function requestOf({ job, bucket, range }: ClaimedRange): TurnRequest {
  const { cursor, to, passed, readsFirst = false } = range.record;
  const place = placeAfter(passed, cursor);
  const options = { mode: job.mode, readsFirst, fill: job.fill === true, tags: job.tags === true };
  const part = { after: cursor, ...(place !== undefined && { place }), ...(to !== undefined && { upTo: to }) };
  return { bucket, prefix: job.prefix, ...part, ...options };
}

/** Whether the job fails because of this fault of the range. */
function isGivenUp(code: FaultCode, { fruitless }: RangeRecord): boolean {
  const answer = answerTo(code);
  return answer === 'fail' || (answer === 'retry' && fruitless >= FRUITLESS_MAX);
}

/** The boundaries that the turn has not passed. */
function after(cursor: string, boundaries: readonly string[]): readonly string[] {
  return boundaries.filter((boundary) => compareKeys(boundary, cursor) > 0);
}

function isWhole({ done, fault }: TurnEnd): boolean {
  return !done && fault === undefined;
}

/** Whether nothing stopped the turn. Lists show at once what became of another one, because a person may look at its job now. */
function isOrdinary({ fault, heldBack }: TurnEnd): boolean {
  return fault === undefined && heldBack === undefined;
}

function outcomeOf({ done, fault, heldBack }: TurnEnd): 'done' | 'on' | 'braked' | FaultCode {
  if (fault !== undefined) return fault.code;
  if (heldBack !== undefined) return 'braked';
  return done ? 'done' : 'on';
}
