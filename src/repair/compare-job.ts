/**
 * Compares a held job: its parts in turns of 30 s, at most as many at a time as the process has slots, until all are compared or the
 * job is given back.
 *
 *   parts ─► turns ─► parts, counts and examples in one swap of the job's record every five seconds, from which the next
 *     ▲        │      process continues if this one dies
 *     └─ cut ──┘
 *
 * A part is cut between two of its turns; while slots stay free, its turn ends early for this. All parts are in one record, so no key
 * is ever in two parts or in none.
 */
import PQueue from 'p-queue';
import type { BucketRecord } from '../records/bucket.ts';
import { defined, omit } from '../base/defined.ts';
import { FaultError, faultOf, type Fault, type FaultCode } from '../base/fault.ts';
import { addCounts, addExamples, noCounts, type DifferenceExamples, type ReconcileCounts } from '../records/comparison.ts';
import {
  phaseOf,
  reserved,
  afterTurn,
  cutPart,
  hasProgress,
  isGivenUp,
  isPartDue,
  isStuck,
  nextPartDueMs,
  withWork,
  type TurnEnd,
  type TurnProgress,
} from './job.rules.ts';
import type { JobFault, JobRecord, Part } from '../records/job.ts';
import { FOLLOW_MS_MAX, type ReconcileTurn } from './reconcile-turn.ts';
import type { DeniedKey, LeaveKeys, Tombstones } from './settle-slice.ts';
import type { ObjectScan, WithPorts } from '../store/store.ts';
import type { BucketListing } from '../aws/storage.ts';
import { readRecord, refs } from '../store/stored.ts';
import { cancelJob, failJob, finishJob, leaveKeys, noteLast, noteStuck } from './job-ends.ts';
import type { HeldJob } from './job-lease.ts';
import { cutKeys, probeListing } from './key-probes.ts';
import type { LookForOverdue } from './lifecycle.ts';
import type { Slots } from './slots.ts';

/** Turns are short enough for jobs to share the slots, and long enough that beginning and ending them costs little. */
const TURN_MS_MAX = 30_000;
/** Each of a turn's requests has its own time-out. This one ends a turn that hangs nevertheless. */
const TURN_STUCK_MS = FOLLOW_MS_MAX + 180_000;
/** The first progress is stored within a second, so that people see a first index running. If a process dies, the counts lack what it wrote since it last stored them. */
const PROGRESS_FIRST_MS = 1_000;
const PROGRESS_MS = 5_000;
/** The most parts of one job: cutting it into more parts than its process has slots gains nothing. With the longest keys they fill 200 kB of the record. */
const PARTS_MAX = 64;
/** LIST requests of one search for boundaries: seven cuts of 17 requests at most, which make eight parts of keys that are hard to cut. */
const CUT_REQUESTS_MAX = 120;

export interface CompareDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly listing: BucketListing;
  readonly scan: Pick<ObjectScan, 'refresh'>;
  readonly turn: ReconcileTurn;
  readonly slots: Slots;
  /** Called at the end of a comparison of a whole bucket. */
  readonly lookForOverdue?: LookForOverdue;
  /** How many keys a part must have left to be cut; at most 1,000. */
  readonly cutKeysMin: number;
}

export interface CompareSignals {
  /** Aborted: turns end at their next page, and the job is given back. */
  readonly stopping: AbortSignal;
  /** Aborted: turns are aborted. */
  readonly aborting: AbortSignal;
}

/** A part while its job is held. */
interface LivePart {
  part: Part;
  /** What the running turn has done; undefined between turns and before its first slice. */
  progress: TurnProgress | undefined;
  /** Whether the attempt to cut it before the running turn failed. */
  isUncuttable: boolean;
}

/** What this process has done since it claimed the job. */
interface Hold {
  readonly held: HeldJob;
  readonly claimed: JobRecord;
  live: readonly LivePart[];
  /** The sum of the turns that have ended. */
  counts: ReconcileCounts;
  examples: DifferenceExamples;
  hasProgress: boolean;
  /** Whether anything of it is not stored. */
  isDirty: boolean;
  /** Whether turns end at their next page. */
  readonly shouldEnd: () => boolean;
  readonly leave: LeaveKeys;
}

/** Compares the job until it ends, is paused or is given back; afterwards it is not held. Throws the store's fault and the signal's reason, after giving the job back if the store answers. */
export async function compareJob(dependencies: CompareDependencies, held: HeldJob, signals: CompareSignals): Promise<void> {
  const run = createRun(dependencies, held, signals);
  const end = await run.turns();
  const { clock } = dependencies;
  if (end === 'disconnected') return cancelJob(dependencies, held, run.prepare);
  if (end !== undefined) return failJob(dependencies, held, end, run.prepare);
  if (isOver(held)) await noteLast(dependencies.state, run.prepare(held.job), clock.nowMs());
  const dueAtMs = signals.stopping.aborted ? clock.nowMs() : nextPartDueMs(run.parts(), clock.nowMs());
  if (dueAtMs !== undefined || isOver(held)) return held.release(dueAtMs ?? clock.nowMs(), run.prepare);
  const { refused } = run.prepare(held.job);
  return refused === undefined ? finishJob(dependencies, held, run.prepare) : failJob(dependencies, held, refused, run.prepare);
}

/** Creates one hold of a job, beginning with its stored parts. */
function createRun(dependencies: CompareDependencies, held: HeldJob, { stopping, aborting }: CompareSignals) {
  const { state, clock, telemetry, slots } = dependencies;
  let early: JobFault | 'disconnected' | undefined;
  let { refused } = held.job;
  /** Aborted when no more turns may begin; running turns then end at their next page. */
  const ending = new AbortController();
  const hold: Hold = {
    held,
    claimed: held.job,
    live: (held.job.parts ?? []).map(livePart),
    counts: noCounts,
    examples: {},
    hasProgress: false,
    isDirty: false,
    shouldEnd: () => ending.signal.aborted || stopping.aborted || isOver(held),
    leave,
  };
  const { shouldEnd } = hold;
  const working = new Map<LivePart, Promise<void>>();
  const tombstones = createDeletionLimit(held);

  /** The job's record with everything that was compared since it was claimed. */
  function prepare(job: JobRecord): JobRecord {
    const running = hold.live.flatMap(({ progress }) => progress ?? []);
    return withWork(job, hold.claimed, {
      parts: hold.live.map((each) => partNow(each, clock.nowMs())),
      counts: running.reduce((sum, progress) => addCounts(sum, progress.counts), hold.counts),
      examples: running.reduce((sum, progress) => addExamples(sum, progress.examples), hold.examples),
      hasProgress: hold.hasProgress,
      refused,
    });
  }

  async function leave(denied: readonly DeniedKey[]): Promise<boolean> {
    const without = await leaveKeys(dependencies, hold.claimed, denied);
    for (const { key, fault } of without ?? []) refused ??= { code: fault.code, reason: `could not compare ${key}: ${fault.reason}` };
    return without !== undefined;
  }

  async function store(): Promise<void> {
    hold.isDirty = false;
    await held.change(prepare).catch(() => {
      hold.isDirty = true;
    });
  }

  /** Stores the progress repeatedly, and ends the turns if the job may not go on. */
  async function keepProgress(ended: AbortSignal): Promise<void> {
    for (let delayMs = PROGRESS_FIRST_MS; ; delayMs = PROGRESS_MS) {
      await clock.sleep(delayMs, ended);
      if (hold.isDirty) await store();
      if (shouldEnd()) endTurns();
    }
  }

  function endTurns(): void {
    ending.abort(new Error('the job is given back'));
  }

  /** Runs turns until none is running and none may begin. Resolves with why the job ends early, if it does. */
  async function turns(): Promise<typeof early> {
    const ended = new AbortController();
    const over = AbortSignal.any([stopping, held.lost]);
    over.addEventListener('abort', endTurns, { once: true });
    if (over.aborted) endTurns();
    // rejects when the turns have ended, which is not a failure
    keepProgress(ended.signal).catch(() => undefined);
    try {
      beginDue();
      while (working.size > 0) await Promise.race(working.values());
      return early;
    } finally {
      endTurns();
      await Promise.allSettled(working.values());
      over.removeEventListener('abort', endTurns);
      ended.abort(new Error('the turns have ended'));
    }
  }

  /** Begins turns of the parts that are due and have none. */
  function beginDue(): void {
    for (const each of hold.live) {
      if (shouldEnd() || working.has(each) || !isPartDue(each.part, clock.nowMs())) continue;
      const work = workOn(each).finally(() => {
        working.delete(each);
        beginDue();
      });
      // if several fail, the first is thrown
      work.catch(() => undefined);
      working.set(each, work);
    }
  }

  async function workOn(each: LivePart): Promise<void> {
    const { id, counts } = hold.claimed;
    const isNew = (): boolean => (counts === undefined || counts.listed + counts.scanned === 0) && !hold.hasProgress;
    await slots
      .run({ jobId: id, isNew, isUncuttable: each.isUncuttable }, (slot) => turnOf(each, slot), ending.signal)
      .catch((error: unknown) => {
        // it was still waiting for its turn, or its turn was aborted
        if (!ending.signal.aborted && !aborting.aborted) throw error;
      });
  }

  async function turnOf(each: LivePart, slot: { readonly extraParts: number }): Promise<void> {
    if (shouldEnd()) return;
    const bucket = await bucketOf();
    if (bucket === undefined) return endTurns();
    const startedMs = clock.monotonicMs();
    const isTurnOver = (): boolean => slot.extraParts > 0 || clock.monotonicMs() >= startedMs + TURN_MS_MAX;
    const end = await endOf(dependencies, hold, each, { bucket, tombstones, isOver: isTurnOver, aborting });
    each.isUncuttable = false;
    fold(hold, each, end, clock.nowMs());
    telemetry.count('tally_reindex_turns_total', 1, { result: held.lost.aborted ? 'lost' : outcomeOf(end) });
    const durationMs = Math.round(clock.monotonicMs() - startedMs);
    telemetry.debug('turn of a re-index job ended', { mode: held.job.mode, durationMs, listed: end.counts.listed });
    if (end.fault !== undefined) await afterFault(each, end.fault);
    else if (slot.extraParts > 0 && !end.done)
      await cutInto(dependencies, hold, each, { bucket, parts: 1 + slot.extraParts, signal: aborting });
    if (slots.areCrowded()) endTurns();
  }

  async function afterFault(each: LivePart, { code, reason }: Fault): Promise<void> {
    const { part } = each;
    const nowMs = clock.nowMs();
    telemetry.requestFailed('compare a part of a re-index job', new FaultError(code, reason));
    const isAlone = hold.live.every((other) => other === each || isStuck(other.part, nowMs));
    // shows people at once what keeps the job from continuing
    const noted = noteStuck(state, held.job, part, nowMs);
    await noted.catch((error: unknown) => telemetry.requestFailed('report a re-index job that waits', error));
    if (!isGivenUp(part, { nowMs, isAlone })) return store();
    early ??= { code, reason, after: part.cursor };
    endTurns();
  }

  /** Reads the bucket's record; undefined if the job may not continue, because the bucket was disconnected or another apply job occupies it. */
  async function bucketOf(): Promise<BucketRecord | undefined> {
    const { id, bucket: name, mode } = held.job;
    const bucket = await readRecord(state, refs.bucket(name));
    if (bucket === undefined) early ??= 'disconnected';
    return mode === 'report' || bucket?.applyJobId === id ? bucket : undefined;
  }

  return { turns, prepare, parts: () => hold.live.map(({ part }) => part) };
}

/** Whether the job is lost, or is not comparing any more. */
function isOver(held: HeldJob): boolean {
  return held.lost.aborted || phaseOf(held.job) !== 'comparing';
}

function partNow({ part, progress }: LivePart, nowMs: number): Part {
  return progress === undefined ? part : afterTurn(part, progress, nowMs);
}

/** Adds an ended turn to the hold. */
function fold(hold: Hold, each: LivePart, end: TurnEnd, nowMs: number): void {
  hold.counts = addCounts(hold.counts, end.counts);
  hold.examples = addExamples(hold.examples, end.examples);
  hold.hasProgress ||= hasProgress(each.part, end);
  hold.isDirty = true;
  each.progress = undefined;
  if (end.done) hold.live = hold.live.filter((other) => other !== each);
  else each.part = afterTurn(each.part, end, nowMs);
}

interface TurnParts {
  readonly bucket: BucketRecord;
  readonly tombstones: Tombstones;
  readonly isOver: () => boolean;
  readonly aborting: AbortSignal;
}

/** Runs a part's turn, and resolves with how it ended. Never rejects. */
async function endOf(
  { clock, turn }: CompareDependencies,
  hold: Hold,
  each: LivePart,
  { bucket, tombstones, isOver: isTurnOver, aborting }: TurnParts,
): Promise<TurnEnd> {
  const { held, claimed } = hold;
  const { part } = each;
  const { cursor, readsFirst = false } = part;
  const { prefix, mode, fill = false, tags = false } = claimed;
  const stuck = new AbortController();
  const ended = new AbortController();
  clock.sleep(TURN_STUCK_MS, ended.signal).then(
    () => stuck.abort(new FaultError('internal.unexpected', `the turn did not end within ${TURN_STUCK_MS} ms`)),
    () => undefined,
  );
  try {
    const end = await turn(
      { bucket, prefix, after: cursor, ...defined({ upTo: part.to }), mode, readsFirst, fill, tags },
      {
        tombstones,
        leave: hold.leave,
        shouldEnd: hold.shouldEnd,
        isOver: isTurnOver,
        progressed: (progress) => {
          each.progress = progress;
          hold.hasProgress ||= hasProgress(part, progress);
          hold.isDirty = true;
        },
      },
      AbortSignal.any([aborting, held.lost, stuck.signal]),
    );
    // if the job is not comparing any more, its faults mean nothing: it was only granted no tombstones
    return isOver(held) ? omit(end, 'fault') : end;
  } catch (error) {
    const sofar = { cursor, counts: noCounts, examples: {}, ...each.progress, done: false };
    // a turn that hung or threw is treated like any other fault of its part
    return aborting.aborted || held.lost.aborted ? sofar : { ...sofar, fault: faultOf(error) };
  } finally {
    ended.abort(new Error('the turn has ended'));
  }
}

/**
 * Cuts a part that has no running turn into the given number of parts, or fewer if not enough boundaries are found. A fault of the
 * listing ends the search silently, because the next turn reports it. Never rejects.
 */
async function cutInto(
  { listing, cutKeysMin, telemetry }: CompareDependencies,
  hold: Hold,
  each: LivePart,
  wanted: { readonly bucket: BucketRecord; readonly parts: number; readonly signal: AbortSignal },
): Promise<void> {
  const { bucket, signal } = wanted;
  const parts = Math.min(wanted.parts, 1 + PARTS_MAX - hold.live.length);
  const isWanted = (): boolean => !hold.shouldEnd() && probe.requests() < CUT_REQUESTS_MAX;
  const { prefix } = hold.claimed;
  const probe = probeListing({ listing, location: bucket, prefix, keysMin: cutKeysMin, isWanted }, signal);
  const boundaries = await cutKeys(each.part, parts, probe).catch((error: unknown) => {
    if (!(error instanceof FaultError) && !signal.aborted) telemetry.requestFailed('cut a part of a re-index job', error);
    return [];
  });
  hold.counts = addCounts(hold.counts, { list_requests: probe.requests() });
  hold.isDirty = true;
  const [first = each.part, ...behind] = cutPart(each.part, boundaries);
  each.part = first;
  each.isUncuttable = behind.length === 0;
  hold.live = [...hold.live, ...behind.map(livePart)];
}

function livePart(part: Part): LivePart {
  return { part, progress: undefined, isUncuttable: false };
}

function outcomeOf({ done, fault }: TurnEnd): 'done' | 'on' | FaultCode {
  if (fault !== undefined) return fault.code;
  return done ? 'done' : 'on';
}

/**
 * The deletion limit of a held job. Tombstones are reserved in its record before they are written. Reservations that the index did not
 * need are used for other keys; what is left of them with the job is spent.
 */
export function createDeletionLimit(held: Pick<HeldJob, 'job' | 'change'>): Tombstones {
  /** Tombstones that are reserved but not used. */
  let spare = 0;
  let isMet = false;
  /** One at a time, because each uses what the one before it left. */
  const reservations = new PQueue({ concurrency: 1 });

  async function reserve(count: number): Promise<number> {
    if (count > spare) spare += await reserveMore(count - spare);
    const granted = Math.min(count, spare);
    spare -= granted;
    isMet = granted < count;
    return granted;
  }

  async function reserveMore(wanted: number): Promise<number> {
    let granted = 0;
    let isComparing = false;
    const isHeld = await held.change((job) => {
      const reservation = reserved(job, wanted);
      ({ granted } = reservation);
      isComparing = phaseOf(job) === 'comparing';
      return reservation.job;
    });
    if (!isHeld || !isComparing) throw new Error('the job does not compare now');
    return granted;
  }

  return {
    reserve: (count) => reservations.add(() => reserve(count)),
    giveBack(count) {
      spare += count;
    },
    isUsedUp: () => isMet && spare === 0,
  };
}
