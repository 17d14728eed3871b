/**
 * The transitions of a job, and its deletion limit. Each transition is one compare-and-swap of its record. One that comes too late,
 * because the job was cancelled meanwhile for example, is `refused` and changes nothing.
 *
 *   queued ──wait──► waiting ──compare──► comparing ──finish──► done
 *      └────────────────compare───────────────┘
 *
 * From these three it may be paused, and is there again once it is resumed. Reports, and jobs that were requested with `now`, do not
 * wait. The deletion limit neither stops a job nor ends it early: what it does not allow waits for a person
 * (src/records/waiting-deletes.ts).
 */
import { omit } from '../base/defined.ts';
import { asleep } from '../records/claims.ts';
import { addCounts, noCounts } from '../records/counts.ts';
import type { JobFault, JobRecord, JobState } from '../records/job.ts';
import { partsCut } from './parts.rules.ts';

/** The phase of a job: what a running job is doing, otherwise its state. */
export type JobPhase = Exclude<JobState, 'running'> | 'waiting' | 'comparing';

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
  /** `isHeld`: deletions of its keys wait for a person, or they are no longer announced, so that it deletes only what was allowed to it. `isSettled`: what it held back does not wait any more. */
  | { readonly kind: 'resume'; readonly isHeld?: boolean; readonly isSettled?: boolean }
  | { readonly kind: 'cancel' }
  | { readonly kind: 'finish' }
  | { readonly kind: 'fail'; readonly error: JobFault }
);
type TransitionKind = JobTransition['kind'];

/** The phases that allow each transition. What ended a turn during a pause happens again after it. */
const allowed: Readonly<Record<TransitionKind, readonly JobPhase[]>> = {
  wait: ['queued'],
  compare: ['queued', 'waiting'],
  pause: ['queued', 'waiting', 'comparing'],
  resume: ['paused'],
  cancel: ['queued', 'waiting', 'comparing', 'paused'],
  finish: ['comparing'],
  fail: ['queued', 'waiting', 'comparing'],
};

/** The phase of the job. */
export function phaseOf({ state, comparingAtMs }: Pick<JobRecord, 'state' | 'comparingAtMs'>): JobPhase {
  if (state !== 'running') return state;
  return comparingAtMs === undefined ? 'waiting' : 'comparing';
}

/** Whether the job's phase allows the transition. */
export function mayTransition(job: JobRecord, kind: TransitionKind): boolean {
  return allowed[kind].includes(phaseOf(job));
}

/** The record after the transition, or `refused`. */
export function afterTransition(job: JobRecord, transition: JobTransition): JobRecord | 'refused' {
  if (!mayTransition(job, transition.kind)) return 'refused';
  switch (transition.kind) {
    case 'wait': {
      const { atMs, coversBeforeMs, beginOrder, waitUntilMs } = transition;
      return { ...omit(job, 'waits'), state: 'running', startedAtMs: atMs, coversBeforeMs, beginOrder, waitUntilMs };
    }
    case 'compare':
      return withStart(job, transition);
    case 'pause':
      // the process that has the lease stores what it compared last, and gives the lease back
      return { ...omit(job, 'dueAtMs'), state: 'paused', pausedAtMs: transition.atMs };
    case 'resume':
      return withoutPause(job, transition);
    case 'cancel':
      return endedAs('cancelled', job, transition.atMs);
    case 'finish':
      return endedAs('done', job, transition.atMs);
    case 'fail':
      return { ...endedAs('failed', job, transition.atMs), error: transition.error };
  }
}

function withStart(
  job: JobRecord,
  { atMs, cuts, documentsAtStart, tombstonesMax, listRequests }: StartedJob & { readonly atMs: number },
): JobRecord {
  const limit = tombstonesMax === undefined ? {} : { limit: tombstonesMax };
  return {
    // it was able to begin, and its parts list for themselves
    ...omit(job, 'waits'),
    state: 'running',
    startedAtMs: job.startedAtMs ?? atMs,
    comparingAtMs: atMs,
    documentsAtStart,
    parts: partsCut(cuts),
    counts: addCounts(job.counts ?? noCounts, { listRequests }),
    ...(job.mode === 'apply' && { deletions: { ...limit, reserved: 0 } }),
  };
}

/** A job whose deletions wait, or are announced no more, deletes no more than was allowed to it, and what it has reserved already. */
function withoutPause(
  job: JobRecord,
  { atMs, isHeld, isSettled }: { readonly atMs: number; readonly isHeld?: boolean; readonly isSettled?: boolean },
): JobRecord {
  const { pausedAtMs = atMs, deletions, ...rest } = job;
  return {
    // a process that still has the lease loses at most what it did since its last progress was stored
    ...omit(rest, 'lease'),
    state: job.startedAtMs === undefined ? 'queued' : 'running',
    dueAtMs: atMs,
    fruitless: 0,
    ...(isSettled === true && withoutHeld(job)),
    pausedMs: (job.pausedMs ?? 0) + (job.comparingAtMs === undefined ? 0 : atMs - pausedAtMs),
    ...(deletions && {
      deletions: isHeld === true ? { ...deletions, limit: Math.max(deletions.reserved, job.allowDeletes ?? 0) } : deletions,
    }),
  };
}

/** What a later job has settled, this one holds back no more. */
function withoutHeld({ counts }: JobRecord): Pick<JobRecord, 'counts'> {
  return counts === undefined ? {} : { counts: { ...counts, held: 0 } };
}

/** The record of a job that has ended. */
function endedAs(state: JobState, job: JobRecord, atMs: number): JobRecord {
  return { ...omit(asleep(job), 'parts', 'waits', 'fruitless'), state, finishedAtMs: atMs };
}

/**
 * The job with `count` more tombstones reserved, and the number granted: fewer when the deletion limit holds; none if the job does not
 * compare now. Returns the same job object if there is nothing to store.
 */
export function reserved(job: JobRecord, count: number): { readonly job: JobRecord; readonly granted: number } {
  const { deletions } = job;
  if (phaseOf(job) !== 'comparing' || deletions === undefined) return { job, granted: 0 };
  // without a limit nothing is counted
  if (deletions.limit === undefined) return { job, granted: count };
  const granted = Math.min(count, Math.max(0, deletions.limit - deletions.reserved));
  return { job: granted === 0 ? job : { ...job, deletions: { ...deletions, reserved: deletions.reserved + granted } }, granted };
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
 * if they were announced. Only what a person has allowed if deletions of its keys wait for one, or if the bucket is
 * empty and the index is not: whatever the job closes, a bulk delete that names no keys consents to none of them.
 */
export function tombstoneLimit(facts: {
  readonly documentsAtStart: number;
  readonly isEmptyBucket: boolean;
  readonly areAnnounced: boolean;
  readonly allowDeletes: number | undefined;
  readonly isAnyHeld: boolean;
}): number | undefined {
  const { documentsAtStart, isEmptyBucket, areAnnounced, allowDeletes, isAnyHeld } = facts;
  if (isEmptyBucket || isAnyHeld || allowDeletes !== undefined) return allowDeletes ?? 0;
  return areAnnounced ? undefined : Math.max(DELETIONS_MIN, Math.floor(documentsAtStart * DELETIONS_SHARE));
}
