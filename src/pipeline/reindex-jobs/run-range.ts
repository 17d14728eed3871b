/**
 * Runs one turn of a claimed range:
 *
 *   turn ─► cursor, counts, examples, split and the next time in one swap ─► due again │ done │ job paused or failed
 */
import { addCounts, noCounts, type ReconcileCounts } from '../../domain/reindex/counts.ts';
import { compareKeys } from '../../domain/documents/key-order.ts';
import { FRUITLESS_MAX } from '../../domain/reindex/claims.ts';
import { afterTurn, answerTo, FAULT_WAIT_MS, givenBack, rangeName, splitRange } from '../../domain/reindex/range-transitions.ts';
import type { JobMode, RangeRecord } from '../../domain/reindex/job.ts';
import { placeAfter } from '../../domain/reindex/passed-pages.ts';
import { FaultError, faultOf, type FaultCode } from '../../domain/fault.ts';
import type { BucketListing } from '../ports/storage.ts';
import type { LabelsOf, Telemetry } from '../ports/telemetry.ts';
import { createBrake, type Brake } from './brake.ts';
import type { ClaimedRange } from './claim-range.ts';
import type { EndsDependencies, JobEnds } from './job-ends.ts';
import { countLost } from './job-records.ts';
import type { RangeLimits } from './range-records.ts';
import type { ReconcileTurn, TurnRequest, TurnResult } from '../compare/reconcile-turn.ts';
import { showProgress } from './show-progress.ts';
import { numberCuts, searchCuts } from './split-range.ts';
import type { WorkerSlot } from './worker-slots.ts';

/** Turns are short, so that many jobs share the workers, yet long enough that beginning and ending them costs little. */
const TURN_PAGES_MAX = 100;
const TURN_MS_MAX = 30_000;
/** Every request of a turn has its own time-out. This one ends a turn that hangs nevertheless; answers expire after 30 s at most. */
const TURN_STUCK_MS = 180_000;
interface RunDependencies extends EndsDependencies {
  readonly listing: BucketListing;
  readonly ends: JobEnds;
  readonly turn: ReconcileTurn;
  readonly limits: RangeLimits;
}

/** What a turn uses besides its range. `written`: what counts of it if its result cannot be stored. */
interface TurnTools {
  readonly brake: Brake;
  readonly written: { counts: ReconcileCounts };
  readonly signal: AbortSignal;
}

/**
 * Creates the function that runs a turn. It throws the store's fault; the range is due again after a while then, or when its lease is
 * over. Resolves with whether the range, or a part that was split off, is due now. If it was lost to another worker, nothing is left to do.
 */
export function createRunRange(
  dependencies: RunDependencies,
): (claimed: ClaimedRange, slot: WorkerSlot, signal: AbortSignal) => Promise<boolean> {
  const { state, clock, telemetry, ends } = dependencies;
  const turnOf = createTurnOf(dependencies);

  async function runRange(claimed: ClaimedRange, slot: WorkerSlot, signal: AbortSignal): Promise<boolean> {
    const { range } = claimed;
    try {
      return await workOn(claimed, slot, signal);
    } catch (error) {
      // so that the next worker need not wait for the end of the lease
      const waitMs = signal.aborted ? 0 : FAULT_WAIT_MS;
      await range.change((record) => givenBack(record, clock.nowMs() + waitMs)).catch(() => false);
      throw error;
    } finally {
      range.release();
    }
  }

  async function workOn(held: ClaimedRange, slot: WorkerSlot, signal: AbortSignal): Promise<boolean> {
    const { job, range } = held;
    await ends.completeSplit(range.record);
    const brake = createBrake(state, job.id);
    const startedMs = clock.monotonicMs();
    const search = searchCuts(dependencies, { ...held, range: range.record, slot }, signal);
    const turnSlot = { ...slot, shouldEnd: () => slot.shouldEnd() || search.hasFound };
    const written = { counts: noCounts };
    const ended = await turnOf(held, turnSlot, { brake, written, signal });
    const { boundaries, requests } = await search.end();
    // in parallel with the next swap
    const brakeReleased = brake.giveBack();
    if (ended === 'lost') {
      await brakeReleased;
      await countLost(state, job.id, written.counts);
      return false;
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
    reportTurn(telemetry, {
      mode: job.mode,
      counts,
      result: isStored ? outcomeOf(result) : 'lost',
      durationMs: clock.monotonicMs() - startedMs,
    });
    if (boundaries.length > 0) reportSplit(telemetry, isStored && cuts.length > 0);
    if (!isStored) {
      await countLost(state, job.id, written.counts);
      return false;
    }
    await ends.completeSplit(range.record);
    await follow(held, result);
    return cuts.length > 0 || isWhole(result);
  }

  /** Does what follows a stored turn. */
  async function follow({ job, range }: ClaimedRange, { fault, done }: TurnResult): Promise<void> {
    if (fault !== undefined) telemetry.requestFailed('compare a range of a re-index job', fault.code, fault.reason);
    if (fault !== undefined && isGivenUp(fault.code, range.record)) {
      await ends.fail(job, { code: fault.code, reason: fault.reason, range: rangeName(range.record) });
    } else if (done) {
      await ends.finishIfDone(job.id);
    }
  }

  return runRange;
}

/** Creates the function that runs the turn of a held range. */
function createTurnOf({ clock, turn }: Pick<RunDependencies, 'clock' | 'turn'>) {
  /** The turn's result, or `lost` if the range was lost. Throws the signal's reason when the worker stops. */
  return async function turnOf(
    { job, bucket, range }: ClaimedRange,
    slot: WorkerSlot,
    { brake, written, signal }: TurnTools,
  ): Promise<TurnResult | 'lost'> {
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
      if (range.lost.aborted) return 'lost';
      if (signal.aborted) {
        // so that the next worker need not wait for the end of the lease
        await range.change((record) => givenBack(record, clock.nowMs(), written.counts)).catch(() => false);
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

interface TurnFacts {
  readonly mode: JobMode;
  readonly counts: ReconcileCounts;
  /** `on`: there is more to do; `lost`: another worker has the range. */
  readonly result: LabelsOf<'tally_reindex_turns_total'>['result'];
  readonly durationMs: number;
}

/** Counts what a turn did, and logs its end. */
function reportTurn(telemetry: Telemetry, { mode, counts, result, durationMs }: TurnFacts): void {
  telemetry.count('tally_reindex_turns_total', 1, { result });
  for (const kind of ['equal', 'incomplete', 'missing', 'stale', 'phantom'] as const) {
    // the count of equal keys may be below zero for one turn
    telemetry.count('tally_reindex_objects_total', Math.max(0, counts[kind]), { mode, kind });
  }
  telemetry.count('tally_reindex_objects_total', counts.inFlight, { mode, kind: 'in-flight' });
  telemetry.count('tally_reindex_writes_total', counts.written, { kind: 'document' });
  telemetry.count('tally_reindex_writes_total', counts.tombstones, { kind: 'tombstone' });
  telemetry.count('tally_reindex_requests_total', counts.listRequests, { request: 'list' });
  telemetry.count('tally_reindex_requests_total', counts.headRequests, { request: 'head' });
  telemetry.debug('range turn ended', { mode, result, durationMs: Math.round(durationMs), listed: counts.listed });
}

/** Counts that a range was split, or that no key was found at which it could be split. */
function reportSplit(telemetry: Telemetry, isSplit: boolean): void {
  telemetry.count('tally_reindex_splits_total', 1, { result: isSplit ? 'split' : 'none' });
}
