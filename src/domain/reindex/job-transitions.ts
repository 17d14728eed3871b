/**
 * The transitions of a job. Each is one compare-and-swap of its record. The table below shows which transition each phase
 * allows; one that comes too late, because the job was cancelled meanwhile for example, is `refused` and changes nothing.
 *
 *   queued ──wait──► waiting ──compare──► comparing ──finish──► done
 *      └────────────────compare───────────────┘ │ ▲
 *                                    pause, deletion limit ▼ │ resume            fail: failed, cancel: cancelled
 *                                              paused
 *
 * The deletion limit pauses a job once all of its keys are compared, so that the number of deletions that wait is the whole one.
 *
 * Reports, and jobs that were requested with `now`, do not wait.
 */
import { omit } from '../defined.ts';
import { asleep } from './claims.ts';
import { addCounts, noCounts } from './counts.ts';
import type { JobFault, JobRecord } from './job.ts';
import { partsCut } from './parts.ts';

/** The phase of a job: what a running job is doing, otherwise its state. */
export type JobPhase = 'queued' | 'waiting' | 'comparing' | 'paused' | 'done' | 'failed' | 'cancelled';

export interface StartedJob {
  /** Number of live documents under its prefix. */
  readonly documentsAtStart: number;
  /** Where its first parts end, except the last one. */
  readonly cuts: readonly string[];
  /** Tombstones that it may write; absent: no limit, or a report. */
  readonly tombstonesMax?: number;
  /** Number of LIST requests since the last attempt to begin was stored. */
  readonly listRequests: number;
}

export type JobTransition = { readonly atMs: number } & (
  | { readonly kind: 'wait'; readonly coversBeforeMs: number; readonly beginOrder: number; readonly waitUntilMs: number }
  | ({ readonly kind: 'compare' } & StartedJob)
  | { readonly kind: 'pause' }
  /** Everything is compared. `waiting`: how many phantoms the deletion limit holds back. */
  | { readonly kind: 'deletion-limit'; readonly waiting: number }
  /** `isHeld`: deletions of its keys wait for a person, or they are no longer announced, so that it deletes only what is allowed now. */
  | { readonly kind: 'resume'; readonly allowDeletes?: number; readonly isHeld?: boolean }
  | { readonly kind: 'cancel' }
  | { readonly kind: 'finish' }
  | { readonly kind: 'fail'; readonly error: JobFault }
);
type TransitionKind = JobTransition['kind'];

/** `back`: to the phase in which the job was paused. */
type Cell = JobPhase | 'back' | 'refused';
type Row = Readonly<Record<TransitionKind, Cell>>;

const ENDED: Row = {
  wait: 'refused',
  compare: 'refused',
  pause: 'refused',
  'deletion-limit': 'refused',
  resume: 'refused',
  cancel: 'refused',
  finish: 'refused',
  fail: 'refused',
};

const table: Readonly<Record<JobPhase, Row>> = {
  queued: {
    wait: 'waiting',
    compare: 'comparing',
    pause: 'paused',
    'deletion-limit': 'refused',
    resume: 'refused',
    cancel: 'cancelled',
    finish: 'refused',
    fail: 'failed',
  },
  waiting: {
    wait: 'refused',
    compare: 'comparing',
    pause: 'paused',
    'deletion-limit': 'refused',
    resume: 'refused',
    cancel: 'cancelled',
    finish: 'refused',
    fail: 'failed',
  },
  comparing: {
    wait: 'refused',
    compare: 'refused',
    pause: 'paused',
    'deletion-limit': 'paused',
    resume: 'refused',
    cancel: 'cancelled',
    finish: 'done',
    fail: 'failed',
  },
  paused: {
    wait: 'refused',
    compare: 'refused',
    pause: 'refused',
    'deletion-limit': 'refused',
    resume: 'back',
    cancel: 'cancelled',
    // what ended a turn during the pause happens again after it
    finish: 'refused',
    fail: 'refused',
  },
  done: ENDED,
  failed: ENDED,
  cancelled: ENDED,
};

/** The phase of the job. A running job whose record has no phase counts as waiting. */
export function phaseOf({ state, phase }: Pick<JobRecord, 'state' | 'phase'>): JobPhase {
  if (state !== 'running') return state;
  return phase === 'comparing' ? 'comparing' : 'waiting';
}

/** Whether the job's phase allows the transition. */
export function mayTransition(job: JobRecord, kind: TransitionKind): boolean {
  return table[phaseOf(job)][kind] !== 'refused';
}

/** The record after the transition, or `refused`. */
export function afterTransition(job: JobRecord, transition: JobTransition): JobRecord | 'refused' {
  const cell = table[phaseOf(job)][transition.kind];
  if (cell === 'refused') return 'refused';
  return inPhase(withFacts(job, transition), cell === 'back' ? phaseBefore(job) : cell);
}

/** The phase in which a paused job was paused, which its record still contains. */
function phaseBefore(job: JobRecord): JobPhase {
  return job.startedAtMs === undefined ? 'queued' : phaseOf({ ...job, state: 'running' });
}

function inPhase(job: JobRecord, phase: JobPhase): JobRecord {
  switch (phase) {
    case 'waiting':
    case 'comparing':
      return { ...job, state: 'running', phase };
    case 'queued':
      return { ...job, state: phase };
    case 'paused':
      // the process that has the lease stores what it compared last, and gives the lease back
      return { ...omit(job, 'dueAtMs'), state: phase };
    case 'done':
    case 'failed':
    case 'cancelled':
      return { ...asleep(job), state: phase };
  }
}

function withFacts(job: JobRecord, transition: JobTransition): JobRecord {
  switch (transition.kind) {
    case 'wait':
      return {
        ...omit(job, 'waits'),
        startedAtMs: transition.atMs,
        coversBeforeMs: transition.coversBeforeMs,
        beginOrder: transition.beginOrder,
        waitUntilMs: transition.waitUntilMs,
      };
    case 'compare':
      return withStart(job, transition);
    case 'pause':
      return { ...job, pausedBecause: 'requested', pausedAtMs: transition.atMs };
    case 'deletion-limit':
      return withDeletionLimit(job, transition);
    case 'resume':
      return withoutPause(job, transition);
    case 'cancel':
    case 'finish':
      return endedWith(job, transition);
    case 'fail':
      return { ...endedWith(job, transition), error: transition.error };
  }
}

function withStart(job: JobRecord, { atMs, cuts, documentsAtStart, tombstonesMax, listRequests }: StartedJob & { readonly atMs: number }) {
  const limit = tombstonesMax === undefined ? {} : { limit: tombstonesMax };
  return {
    // it was able to begin, and its parts list for themselves
    ...omit(job, 'waits', 'passed'),
    startedAtMs: job.startedAtMs ?? atMs,
    comparingAtMs: atMs,
    documentsAtStart,
    parts: partsCut(cuts),
    counts: addCounts(job.counts ?? noCounts, { listRequests }),
    ...(job.mode === 'apply' && { deletions: { ...limit, reserved: 0, waiting: 0 } }),
  };
}

function withDeletionLimit(job: JobRecord, { atMs, waiting }: { readonly atMs: number; readonly waiting: number }): JobRecord {
  const deletions = job.deletions ?? { reserved: 0, waiting: 0 };
  return {
    ...job,
    pausedBecause: 'deletion-limit',
    pausedAtMs: atMs,
    deletions: { ...deletions, waiting },
  };
}

function withoutPause(
  job: JobRecord,
  { atMs, allowDeletes, isHeld }: { readonly atMs: number; readonly allowDeletes?: number; readonly isHeld?: boolean },
): JobRecord {
  const { pausedBecause: _, pausedAtMs = atMs, ...rest } = job;
  return {
    // a process that still has the lease loses at most what it did since its last progress was stored
    ...omit(rest, 'lease'),
    dueAtMs: atMs,
    fruitless: 0,
    pausedMs: (job.pausedMs ?? 0) + (job.comparingAtMs === undefined ? 0 : atMs - pausedAtMs),
    ...(job.deletions !== undefined && { deletions: released(job.deletions, { allowDeletes, isHeld }) }),
    // the deletion limit is set when the job begins to compare
    ...(job.deletions === undefined && allowDeletes !== undefined && { allowDeletes: Math.max(job.allowDeletes ?? 0, allowDeletes) }),
  };
}

type DeletionLimit = NonNullable<JobRecord['deletions']>;

/**
 * The deletion limit after a release: it allows `allowDeletes` in all, unless it allows more already. Without a limit it stays without
 * one. While deletions wait for a person, it allows no more than that person does, and what is reserved already.
 */
function released(
  deletions: DeletionLimit,
  { allowDeletes = 0, isHeld = false }: { readonly allowDeletes: number | undefined; readonly isHeld: boolean | undefined },
): DeletionLimit {
  if (isHeld) return { ...deletions, limit: Math.max(deletions.reserved, allowDeletes), waiting: 0 };
  if (deletions.limit === undefined) return { ...deletions, waiting: 0 };
  return { ...deletions, limit: Math.max(deletions.limit, allowDeletes), waiting: 0 };
}

/** How many tombstones the job may still reserve. */
export function tombstonesLeft({ deletions }: Pick<JobRecord, 'deletions'>): number {
  return deletions === undefined ? 0 : Math.max(0, (deletions.limit ?? Infinity) - deletions.reserved);
}

/** The record of a job that has ended. */
function endedWith(job: JobRecord, { atMs }: { readonly atMs: number }): JobRecord {
  return { ...omit(job, 'parts', 'isCounted', 'passed', 'waits', 'fruitless'), finishedAtMs: atMs };
}

/** The most tombstones that one swap reserves ahead: enough to keep swaps rare, and few enough for a process that dies with them. */
const RESERVE_MAX = 500;
/** The share of the remaining tombstones that is reserved ahead at most. */
const AHEAD_SHARE = 1 / 64;

/**
 * The job with `count` more tombstones reserved, and the number granted. More than `count` are granted while plenty are left,
 * so that the record is not swapped for each page; fewer when the deletion limit holds; none if the job does not
 * compare now. Returns the same job object if there is nothing to store.
 */
export function reserved(job: JobRecord, count: number): { readonly job: JobRecord; readonly granted: number } {
  const { deletions } = job;
  if (phaseOf(job) !== 'comparing' || deletions === undefined) return { job, granted: 0 };
  // without a limit nothing is counted
  if (deletions.limit === undefined) return { job, granted: count };
  const left = tombstonesLeft(job);
  const granted = Math.min(left, Math.max(count, Math.min(RESERVE_MAX, Math.floor(left * AHEAD_SHARE))));
  return granted === 0
    ? { job, granted }
    : { job: { ...job, deletions: { ...deletions, reserved: deletions.reserved + granted } }, granted };
}

/** The job after `count` of its reserved tombstones were given back unused. */
export function givenBackTo(job: JobRecord, count: number): JobRecord {
  const { deletions } = job;
  if (deletions?.limit === undefined) return job;
  return { ...job, deletions: { ...deletions, reserved: Math.max(0, deletions.reserved - count) } };
}

/** The deletion limit allows a tenth of the documents to be deleted, but at least a number that people delete without much thought. */
const DELETIONS_SHARE = 0.1;
const DELETIONS_MIN = 1_000;

/**
 * How many tombstones a job may write: the larger of 1,000 and a tenth of the documents under its prefix. Undefined (no limit)
 * if they were announced. Only what the caller allows if deletions of its keys wait for a person, or if the bucket is
 * empty and the index is not: whatever the job closes, a bulk delete that names no keys consents to none of them.
 */
export function tombstoneLimit(facts: {
  readonly documentsAtStart: number;
  readonly isEmptyBucket: boolean;
  readonly areAnnounced: boolean;
  readonly allowDeletes: number | undefined;
  readonly isAnyHeld: boolean;
}): number | undefined {
  const { documentsAtStart, isEmptyBucket, areAnnounced, allowDeletes = 0, isAnyHeld } = facts;
  if (isEmptyBucket || isAnyHeld) return allowDeletes;
  if (areAnnounced) return undefined;
  return Math.max(DELETIONS_MIN, Math.floor(documentsAtStart * DELETIONS_SHARE), allowDeletes);
}
