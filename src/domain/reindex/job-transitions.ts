/**
 * The steps of a job. Each is one compare-and-swap of its record; what a step may follow is the table below, and a step
 * that comes too late (the job was cancelled meanwhile) is `refused` and changes nothing.
 *
 *   queued ──wait──► waiting ──compare──► comparing ──finish──► done
 *      └────────────────compare───────────────┘ │ ▲
 *                                    pause, brake▼ │resume            fail: failed, cancel: cancelled
 *                                              paused
 *
 * A report, and a job that was asked for `now`, have nothing to wait for.
 */
import type { DifferenceExamples, ReconcileCounts } from './counts.ts';
import type { JobFault, JobRecord } from './job.ts';

/** Where a job is: its state, with a running one's phase. */
export type JobPlace = 'queued' | 'waiting' | 'comparing' | 'paused' | 'done' | 'failed' | 'cancelled';

/** What its ranges add up to when it ends: their records are removed then. */
export interface JobSums {
  readonly counts?: ReconcileCounts;
  readonly examples?: DifferenceExamples;
  readonly rangesDone?: number;
}

export interface StartedJob {
  /** Live documents under its prefix. */
  readonly documentsAtStart: number;
  /** Where its first ranges end, the last one excepted. */
  readonly cuts: readonly string[];
  /** Tombstones that it may write; absent: as many as it finds. Of a report: absent. */
  readonly tombstonesMax?: number;
  /** LIST requests made so far. */
  readonly listRequests: number;
}

export type JobStep = { readonly atMs: number } & (
  | { readonly kind: 'wait'; readonly coversBeforeMs: number; readonly waitUntilMs: number }
  | ({ readonly kind: 'compare' } & StartedJob)
  | { readonly kind: 'pause' }
  /** So many phantoms of one turn were held back. */
  /** `met`: the limit that held the turn back. */
  | { readonly kind: 'brake'; readonly waiting: number; readonly met?: number }
  | { readonly kind: 'resume'; readonly allowDeletes?: number }
  | { readonly kind: 'cancel'; readonly sums: JobSums }
  | { readonly kind: 'finish'; readonly sums: JobSums }
  | { readonly kind: 'fail'; readonly error: JobFault; readonly sums: JobSums }
);
type StepKind = JobStep['kind'];

/** `back`: to where it was paused. */
type Cell = JobPlace | 'back' | 'refused';
type Row = Readonly<Record<StepKind, Cell>>;

const table: Readonly<Record<JobPlace, Row>> = {
  queued: {
    wait: 'waiting',
    compare: 'comparing',
    pause: 'paused',
    brake: 'refused',
    resume: 'refused',
    cancel: 'cancelled',
    finish: 'refused',
    fail: 'failed',
  },
  waiting: {
    wait: 'refused',
    compare: 'comparing',
    pause: 'paused',
    brake: 'refused',
    resume: 'refused',
    cancel: 'cancelled',
    finish: 'refused',
    fail: 'failed',
  },
  comparing: {
    wait: 'refused',
    compare: 'refused',
    pause: 'paused',
    brake: 'paused',
    resume: 'refused',
    cancel: 'cancelled',
    finish: 'done',
    fail: 'failed',
  },
  paused: {
    wait: 'refused',
    compare: 'refused',
    pause: 'refused',
    // several ranges meet the brake in one moment
    brake: 'paused',
    resume: 'back',
    cancel: 'cancelled',
    // whatever else ended a turn meanwhile happens again after the pause
    finish: 'refused',
    fail: 'refused',
  },
  done: {
    wait: 'refused',
    compare: 'refused',
    pause: 'refused',
    brake: 'refused',
    resume: 'refused',
    cancel: 'refused',
    finish: 'refused',
    fail: 'refused',
  },
  failed: {
    wait: 'refused',
    compare: 'refused',
    pause: 'refused',
    brake: 'refused',
    resume: 'refused',
    cancel: 'refused',
    finish: 'refused',
    fail: 'refused',
  },
  cancelled: {
    wait: 'refused',
    compare: 'refused',
    pause: 'refused',
    brake: 'refused',
    resume: 'refused',
    cancel: 'refused',
    finish: 'refused',
    fail: 'refused',
  },
};

/** Where the job is. A running one without a phase has just begun. */
export function placeOf({ state, phase }: Pick<JobRecord, 'state' | 'phase'>): JobPlace {
  if (state !== 'running') return state;
  return phase === 'comparing' ? 'comparing' : 'waiting';
}

/** Whether the step may follow now. */
export function mayStep(job: JobRecord, kind: StepKind): boolean {
  return table[placeOf(job)][kind] !== 'refused';
}

/** The record after the step, or `refused`. */
export function afterStep(job: JobRecord, step: JobStep): JobRecord | 'refused' {
  const cell = table[placeOf(job)][step.kind];
  if (cell === 'refused' || (step.kind === 'brake' && isReleasedSince(job, step.met))) return 'refused';
  return inPlace(withFacts(job, step), cell === 'back' ? placeBefore(job) : cell);
}

/** A turn may meet the brake and end only after somebody has released it: that is no second pause. */
function isReleasedSince({ brake }: JobRecord, met: number | undefined): boolean {
  return met !== undefined && (brake?.limit === undefined || brake.limit > met);
}

/** A paused job keeps its phase: whether it had begun, and how far it was. */
function placeBefore(job: JobRecord): JobPlace {
  return job.startedAtMs === undefined ? 'queued' : placeOf({ ...job, state: 'running' });
}

function inPlace(job: JobRecord, place: JobPlace): JobRecord {
  switch (place) {
    case 'waiting':
    case 'comparing':
      return { ...job, state: 'running', phase: place };
    case 'queued':
    case 'paused':
    case 'done':
    case 'failed':
    case 'cancelled':
      return { ...job, state: place };
  }
}

function withFacts(job: JobRecord, step: JobStep): JobRecord {
  switch (step.kind) {
    case 'wait':
      return { ...job, startedAtMs: step.atMs, coversBeforeMs: step.coversBeforeMs, waitUntilMs: step.waitUntilMs };
    case 'compare':
      return withStart(job, step);
    case 'pause':
      return { ...job, pausedBecause: 'requested', pausedAtMs: step.atMs };
    case 'brake':
      return withBrake(job, step);
    case 'resume':
      return withoutPause(job, step);
    case 'cancel':
      return endedWith(job, step);
    case 'finish':
      // numbers that were taken for splits which never came about are no ranges
      return { ...endedWith(job, step), ...(step.sums.rangesDone !== undefined && { rangesCut: step.sums.rangesDone }) };
    case 'fail':
      return { ...endedWith(job, step), error: step.error };
  }
}

function withStart(job: JobRecord, { atMs, cuts, documentsAtStart, tombstonesMax, listRequests }: StartedJob & { readonly atMs: number }) {
  const limit = tombstonesMax === undefined ? {} : { limit: tombstonesMax };
  return {
    ...job,
    startedAtMs: job.startedAtMs ?? atMs,
    comparingAtMs: atMs,
    documentsAtStart,
    cuts: [...cuts],
    rangesCut: cuts.length + 1,
    listRequestsAtStart: listRequests,
    ...(job.mode === 'apply' && { brake: { ...limit, reserved: 0, waiting: 0 } }),
  };
}

function withBrake(job: JobRecord, { atMs, waiting }: { readonly atMs: number; readonly waiting: number }): JobRecord {
  const brake = job.brake ?? { reserved: 0, waiting: 0 };
  return {
    ...job,
    pausedBecause: 'brake',
    pausedAtMs: job.state === 'paused' ? (job.pausedAtMs ?? atMs) : atMs,
    brake: { ...brake, waiting: (job.state === 'paused' ? brake.waiting : 0) + waiting },
  };
}

function withoutPause(job: JobRecord, { atMs, allowDeletes }: { readonly atMs: number; readonly allowDeletes?: number }): JobRecord {
  const { pausedBecause: _, pausedAtMs = atMs, ...rest } = job;
  return {
    ...rest,
    pausedMs: (job.pausedMs ?? 0) + (job.comparingAtMs === undefined ? 0 : atMs - pausedAtMs),
    ...(job.brake !== undefined && { brake: released(job.brake, allowDeletes) }),
    // before it compares there is no brake yet
    ...(job.brake === undefined && allowDeletes !== undefined && { allowDeletes: Math.max(job.allowDeletes ?? 0, allowDeletes) }),
  };
}

type Brake = NonNullable<JobRecord['brake']>;

/** So many more than are reserved already, if that is more than are left. Without a limit nothing changes. */
function released(brake: Brake, allowDeletes = 0): Brake {
  if (brake.limit === undefined) return { ...brake, waiting: 0 };
  return { ...brake, limit: Math.max(brake.limit, brake.reserved + allowDeletes), waiting: 0 };
}

/** What is kept of a job that has ended. Its examples are not: they have a record of their own. */
function endedWith(job: JobRecord, { atMs, sums }: { readonly atMs: number; readonly sums: JobSums }): JobRecord {
  const { cuts: _, ...kept } = job;
  const { counts, rangesDone } = sums;
  return { ...kept, finishedAtMs: atMs, ...(counts !== undefined && { counts }), ...(rangesDone !== undefined && { rangesDone }) };
}

/** Of one swap: large enough to be rare, small enough to leave some to the other ranges. */
const RESERVE_MAX = 500;
/** A range may hold this part of what is left, unused, while another one finds nothing left. */
const AHEAD_SHARE = 1 / 64;

/**
 * The job with `count` tombstones more reserved, if so many are left, and how many were: some ahead of their need while
 * plenty are left, since hundreds of ranges must not swap one record for each page; fewer than `count` while the brake
 * holds, and none for a job that does not compare now. The very job where there is nothing to store.
 */
export function reserved(job: JobRecord, count: number): { readonly job: JobRecord; readonly granted: number } {
  const { brake } = job;
  if (placeOf(job) !== 'comparing' || brake === undefined) return { job, granted: 0 };
  // nothing to count: as many as it finds
  if (brake.limit === undefined) return { job, granted: count };
  const left = Math.max(0, brake.limit - brake.reserved);
  const granted = Math.min(left, Math.max(count, Math.min(RESERVE_MAX, Math.floor(left * AHEAD_SHARE))));
  return granted === 0 ? { job, granted } : { job: { ...job, brake: { ...brake, reserved: brake.reserved + granted } }, granted };
}

/** The job with `count` of its reserved tombstones given back, unused. */
export function givenBackTo(job: JobRecord, count: number): JobRecord {
  const { brake } = job;
  if (brake?.limit === undefined) return job;
  return { ...job, brake: { ...brake, reserved: Math.max(0, brake.reserved - count) } };
}

/** A tenth of the documents, yet no fewer than people delete in one go without a thought. */
const BRAKE_SHARE = 0.1;
const BRAKE_MIN = 1_000;

/**
 * How many tombstones a job may write: max(1,000, a tenth of the documents under its prefix); no limit (undefined) where it
 * closes a gap of deletes that were not told; none where the bucket is empty and the index is not. What the
 * caller allowed raises any of them.
 */
export function tombstoneLimit(facts: {
  readonly documentsAtStart: number;
  readonly isEmptyBucket: boolean;
  readonly closesDeletes: boolean;
  readonly allowDeletes: number | undefined;
}): number | undefined {
  const { documentsAtStart, isEmptyBucket, closesDeletes, allowDeletes = 0 } = facts;
  if (isEmptyBucket) return allowDeletes;
  if (closesDeletes) return undefined;
  return Math.max(BRAKE_MIN, Math.floor(documentsAtStart * BRAKE_SHARE), allowDeletes);
}
