/**
 * Runs one turn of a claimed range:
 *
 *   turn ─► cursor, counts, examples, split and the next time in one swap ─► due again │ done │ job paused or failed
 *     └───► cursor, counts and examples in a swap every five seconds, which is what the next worker has if this one dies
 */
import { defined } from '../../domain/defined.ts';
import { addCounts, noCounts, shownCounts, type ShownCounts } from '../../domain/reindex/counts.ts';
import { compareKeys } from '../../domain/documents/key-order.ts';
import { WITHOUT_PROGRESS_MAX } from '../../domain/reindex/claims.ts';
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
  type Cut,
} from '../../domain/reindex/range-transitions.ts';
import type { JobMode, JobRecord, RangeRecord } from '../../domain/reindex/job.ts';
import { placeAfter, type ListingPlace } from '../../domain/reindex/passed-pages.ts';
import { FaultError, faultOf, type FaultCode, type Fault } from '../../domain/fault.ts';
import type { BucketListing } from '../ports/storage.ts';
import type { LabelsOf, Telemetry } from '../ports/telemetry.ts';
import type { ClaimedRange, HeldRange } from './claim-range.ts';
import type { EndsDependencies, JobEnds } from './job-ends.ts';
import { RANGES_MAX, type RangeLimits } from './range-records.ts';
import type { ReconcileTurn, TurnControls, TurnRequest } from '../compare/reconcile-turn.ts';
import type { WorkerSlot } from './worker-slots.ts';
import { givenBackTo, phaseOf, reserved } from '../../domain/reindex/job-transitions.ts';
import type { StateStore } from '../ports/state.ts';
import { refs, updateRecord } from '../records/stored.ts';
import type { BucketRecord } from '../../domain/bucket.ts';
import { cutKeys, probeListing } from './key-probes.ts';

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
  readonly limit: DeletionLimit;
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
      const turn = { slot, limit: createDeletionLimit(state, job.id), begun: range.record, progress: undefined };
      return await workOn(claimed, turn, signal);
    } finally {
      range.release();
    }
  }

  async function workOn(held: ClaimedRange, turn: Turn, signal: AbortSignal): Promise<boolean> {
    try {
      return await runTurn(held, turn, signal);
    } catch (error) {
      await turn.limit.giveBack();
      // so that the next worker need not wait for the end of the lease
      const dueAtMs = clock.nowMs() + (signal.aborted ? 0 : FAULT_WAIT_MS);
      await held.range.change((record) => givenBack(duringTurn(record, { ...turn, nowMs: clock.nowMs() }), dueAtMs)).catch(() => false);
      throw error;
    }
  }

  async function runTurn(held: ClaimedRange, turn: Turn, signal: AbortSignal): Promise<boolean> {
    const { job, range } = held;
    const { slot, limit, begun } = turn;
    const startedMs = clock.monotonicMs();
    const search = searchCuts(dependencies, { ...held, rest: () => restOf(turn), slot }, signal);
    const shouldEnd = (through: string): boolean => range.lost.aborted || slot.shouldEnd() || search.hasFoundAfter(through);
    const ended = await endOf(held, turn, { shouldEnd, signal });
    const { boundaries, requests } = await search.end();
    // in parallel with the next swap
    const limitReleased = limit.giveBack();
    const end = { ...ended, counts: addCounts(ended.counts, { listRequests: requests }) };
    const cuts = isWhole(end) && !range.lost.aborted ? await numberCuts(state, job.id, after(end.cursor, boundaries)) : [];
    const stored = (): RangeRecord => splitRange(afterTurn(begun, end, clock.nowMs()), cuts);
    const isStored = await range.change(stored, isOrdinary(end) ? 'soon' : 'now');
    await limitReleased;
    reportTurn(telemetry, {
      mode: job.mode,
      counts: shownCounts(end.counts),
      result: isStored ? outcomeOf(end) : 'lost',
      durationMs: clock.monotonicMs() - startedMs,
    });
    if (boundaries.length > 0) reportSplit(telemetry, isStored && cuts.length > 0);
    if (!isStored) return false;
    await ends.completeSplit(range.record);
    await follow(held, end);
    return cuts.length > 0 || isWhole(end);
  }

  /** Does what follows a stored turn. */
  async function follow({ job, range }: ClaimedRange, { fault, done }: TurnEnd): Promise<void> {
    if (fault !== undefined) telemetry.requestFailed('compare a range of a re-index job', new FaultError(fault.code, fault.reason));
    if (fault !== undefined && isGivenUp(fault.code, range.record)) {
      await ends.fail(job, { code: fault.code, reason: fault.reason, range: rangeName(range.record) });
    } else if (done) {
      await ends.finishIfDone(job.id);
    }
  }

  return runRange;
}

/** What the turn has not compared yet of its range. */
interface Rest extends Pick<RangeRecord, 'cursor' | 'to'> {
  /** Where the listing after the cursor continues, if pages without keys were passed there. */
  readonly place: ListingPlace | undefined;
}

function restOf({ begun, progress }: Turn): Rest {
  if (progress === undefined) return { cursor: begun.cursor, to: begun.to, place: placeAfter(begun.passed, begun.cursor) };
  return { cursor: progress.cursor, to: begun.to, place: progress.place };
}

interface TurnStops {
  readonly shouldEnd: TurnControls['shouldEnd'];
  readonly signal: AbortSignal;
}

/** Creates the function that runs the turn of a held range, and stores its progress while it runs. */
function createEndOf({ clock, turn: run }: Pick<RunDependencies, 'clock' | 'turn'>) {
  /** How the turn ended. Throws the signal's reason when the worker stops. */
  async function endOf(held: ClaimedRange, turn: Turn, { shouldEnd, signal }: TurnStops): Promise<TurnEnd> {
    const { range } = held;
    const { slot, limit, begun } = turn;
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
          reserve: limit.reserve,
          holdsBack: limit.holdsBack,
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
      const fault = end.fault ?? (end.done ? undefined : limit.fault());
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
  const part = { after: cursor, ...defined({ place, upTo: to }) };
  return { bucket, prefix: job.prefix, ...part, ...options };
}

/** Whether the job fails because of this fault of the range. */
function isGivenUp(code: FaultCode, { fruitless }: RangeRecord): boolean {
  const answer = answerTo(code);
  return answer === 'fail' || (answer === 'retry' && fruitless >= WITHOUT_PROGRESS_MAX);
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

function outcomeOf({ done, fault, heldBack }: TurnEnd): 'done' | 'on' | 'held-back' | FaultCode {
  if (fault !== undefined) return fault.code;
  if (heldBack !== undefined) return 'held-back';
  return done ? 'done' : 'on';
}

interface TurnFacts {
  readonly mode: JobMode;
  readonly counts: ShownCounts;
  /** `on`: there is more to do; `lost`: another worker has the range. */
  readonly result: LabelsOf<'tally_reindex_turns_total'>['result'];
  readonly durationMs: number;
}

/** Counts the end of a turn, and logs it. */
function reportTurn(telemetry: Telemetry, { mode, counts, result, durationMs }: TurnFacts): void {
  telemetry.count('tally_reindex_turns_total', 1, { result });
  telemetry.debug('range turn ended', { mode, result, durationMs: Math.round(durationMs), listed: counts.listed });
}

/** Counts that a range was split, or that no key was found at which it could be split. */
function reportSplit(telemetry: Telemetry, isSplit: boolean): void {
  telemetry.count('tally_reindex_splits_total', 1, { result: isSplit ? 'split' : 'none' });
}

/*
 * A job's deletion limit as one turn of one range uses it. Tombstones are reserved in the job's record before they are written, some
 * of them ahead of need, and the unused ones are given back when the turn has ended. The reservations of a worker that dies
 * are lost.
 */

interface DeletionLimit {
  /** Reserves up to `count` tombstones; resolves with how many, which is 0 if the store fails. Never rejects. One call at a time. */
  readonly reserve: (count: number) => Promise<number>;
  /** Whether the last reservation was refused by the limit alone. A pause or a fault of the store is no reason to hold deletions back. */
  readonly holdsBack: () => boolean;
  /** Gives back the unused reservations; they stay reserved if the store fails. Never rejects. */
  readonly giveBack: () => Promise<void>;
  /** The fault of the store that ended the turn; undefined if nothing was granted because the job does not compare now. */
  readonly fault: () => Fault | undefined;
}

/** Creates the deletion limit of one turn. */
export function createDeletionLimit(state: StateStore, jobId: string): DeletionLimit {
  let fault: Fault | undefined;
  let isLimitMet = false;
  /** Tombstones reserved and not used yet. */
  let ahead = 0;

  async function reserveMore(wanted: number): Promise<void> {
    let granted = 0;
    isLimitMet = false;
    const reserve = (job: JobRecord | undefined): JobRecord | undefined => {
      if (job === undefined) return undefined;
      const reservation = reserved(job, wanted);
      ({ granted } = reservation);
      isLimitMet = granted < wanted && phaseOf(job) === 'comparing';
      return reservation.job;
    };
    // other ranges read the record by its id, and a slice waits for this
    await updateRecord(state, refs.job(jobId), reserve, 'soon');
    ahead += granted;
  }

  return {
    async reserve(count) {
      if (count > ahead) {
        await reserveMore(count - ahead).catch((error: unknown) => {
          fault = faultOf(error);
        });
      }
      const granted = Math.min(count, ahead);
      ahead -= granted;
      return granted;
    },
    holdsBack: () => isLimitMet,
    async giveBack() {
      const unused = ahead;
      if (unused === 0) return;
      ahead = 0;
      await updateRecord(state, refs.job(jobId), (job) => job && givenBackTo(job, unused), 'soon').catch(() => undefined);
    },
    fault: () => fault,
  };
}

/*
 * Splits a held range. Boundaries are searched while its turn runs. The swap that stores the turn also shortens the range and
 * stores what was split off; the records of the new ranges are created from that. So a crash loses nothing, and no key is ever
 * in two ranges.
 */

/** LIST requests of one search. Eight parts take about fifty; the bound ends a search among keys that are hard to cut. */
const REQUESTS_MAX = 100;

interface Splittable {
  readonly job: JobRecord;
  readonly bucket: BucketRecord;
  readonly rest: () => Rest;
  readonly slot: Pick<WorkerSlot, 'splitWanted' | 'partsWanted' | 'notSplit'>;
}

/** The search for boundaries of a range, which runs beside its turn. */
interface CutSearch {
  /** Whether boundaries were found after this key, so that a turn that ends there is split. */
  readonly hasFoundAfter: (through: string) => boolean;
  /** Ends the search. Resolves with the boundaries in key order, and with the number of LIST requests. Throws unexpected errors only. */
  end(): Promise<{ readonly boundaries: readonly string[]; readonly requests: number }>;
}

/** Creates the search, which begins once a split is wanted. A fault of the listing ends it silently: the turn reports such faults. */
function searchCuts(
  { listing, limits }: { readonly listing: BucketListing; readonly limits: Pick<RangeLimits, 'splitKeysMin'> },
  { job, bucket, rest, slot }: Splittable,
  stopped: AbortSignal,
): CutSearch {
  const ending = new AbortController();
  const signal = AbortSignal.any([stopped, ending.signal]);
  const isWanted = (): boolean => !signal.aborted && slot.partsWanted() > 1;
  const isAllowed = (): boolean => isWanted() && probe.requests() < REQUESTS_MAX;
  const probe = probeListing({ listing, location: bucket, prefix: job.prefix, keysMin: limits.splitKeysMin, isWanted: isAllowed }, signal);
  let boundaries: readonly string[] = [];
  let searching: Promise<void> | undefined;

  async function search(): Promise<void> {
    try {
      // pages without keys follow the cursor: the search would pass them as the turn does, and find no key either
      const { place, ...left } = rest();
      if (place === undefined) boundaries = await cutKeys(left, slot.partsWanted(), probe);
    } catch (error) {
      if (!(error instanceof FaultError) && !signal.aborted) throw error;
    }
    if (boundaries.length === 0 && isWanted()) slot.notSplit();
  }

  void slot.splitWanted.then(() => {
    if (!isWanted()) return;
    searching = search();
    // end() throws it
    searching.catch(() => undefined);
  });

  return {
    // the turn continues while boundaries are searched; a range that ends without a split waits for the next look
    hasFoundAfter: (through) => after(through, boundaries).length > 0,
    async end() {
      ending.abort(new Error('the turn has ended'));
      await searching;
      return { boundaries, requests: probe.requests() };
    },
  };
}

/**
 * Reserves a range number for each boundary, as far as RANGES_MAX allows. Resolves with none if the job no longer compares or
 * the store fails.
 */
async function numberCuts(state: StateStore, jobId: string, boundaries: readonly string[]): Promise<readonly Cut[]> {
  if (boundaries.length === 0) return [];
  let first = 0;
  let count = 0;
  const job = await updateRecord(state, refs.job(jobId), (current) => {
    if (current?.rangesCut === undefined || phaseOf(current) !== 'comparing') return undefined;
    first = current.rangesCut;
    count = Math.min(boundaries.length, RANGES_MAX - first);
    return count <= 0 ? undefined : { ...current, rangesCut: first + count };
  }).catch((error: unknown) => {
    if (error instanceof FaultError) return undefined;
    throw error;
  });
  return job === undefined ? [] : boundaries.slice(0, count).map((boundary, index) => ({ boundary, number: first + index }));
}
