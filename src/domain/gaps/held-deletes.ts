/**
 * Deletions that wait for a person. What the deletion limit of a job holds back is one gap for each prefix of a job, of the kind
 * `held-deletes`. It is stored before the job stops or ends, so nothing that becomes of the job can hide it.
 *
 *   none ──a job holds deletions back──► open ──a job compares all of its keys and holds nothing back──► closed
 *                                        ▲  │
 *                                        └──┘ a job holds deletions back: it has the latest number
 *
 * While it is not closed, no job of its keys deletes more than a person allows. The other gaps of the job do not wait for the
 * decision: the job has repaired everything else. A gap of deletes whose job a person has stopped (`held`) waits in the same way, until
 * a job has compared its keys and knows their number.
 */
import { shellWords } from '../commands.ts';
import { gapId, isWithheld, withReport, type GapRecord } from './gap.ts';
import type { JobRecord } from '../reindex/job.ts';
import { omit } from '../defined.ts';

const KIND = 'held-deletes';

/** Nothing changes by itself until a person decides, but objects may have come back: four looks a day, as after failures. */
const LOOK_INTERVAL_MS = 21_600_000;

/** The ids of all such gaps of a bucket begin with this. */
export function heldIdsOf(bucket: string): string {
  return gapId({ bucket, kind: KIND });
}

/** The id of the gap of what this job holds back. */
export function heldGapId({ bucket, prefix }: Pick<JobRecord, 'bucket' | 'prefix'>): string {
  return gapId({ bucket, kind: KIND, prefix });
}

/** How many deletions the job held back when it had compared everything; 0 while it compares. */
function heldBy({ state, counts, pausedBecause, deletions }: JobRecord): number {
  if (state === 'paused') return pausedBecause === 'deletion-limit' ? (deletions?.waiting ?? 0) : 0;
  return state === 'done' ? (counts?.held ?? 0) : 0;
}

/** Whether the job has compared everything, and this is the gap of what it held back. */
export function isHeldBy(job: JobRecord, { id }: GapRecord): boolean {
  return heldBy(job) > 0 && heldGapId(job) === id;
}

/** Whether deletions of keys with this prefix may be among those that the gap holds. */
export function holdsAnyOf({ prefix: held = '' }: Pick<GapRecord, 'prefix'>, prefix: string): boolean {
  return held.startsWith(prefix) || prefix.startsWith(held);
}

/**
 * Whether the gap stands for deletions of keys with this prefix that wait for a person. Those of a job that a person stopped wait for
 * every job but that one: who resumes it consents to what it was begun for.
 */
export function awaitsConsent(gap: GapRecord, { bucket, prefix = '', gapIds = [] }: Keys): boolean {
  if (gap.state === 'closed' || !holdsAnyOf(gap, prefix)) return false;
  return gap.id.startsWith(heldIdsOf(bucket)) || (isWithheld(gap) && !gapIds.includes(gap.id));
}

/** The keys that something may delete, and for a job the gaps that it was begun for. */
export interface Keys {
  readonly bucket: string;
  readonly prefix?: string;
  readonly gapIds?: readonly string[] | undefined;
}

/** What a job holds back, as far as it knows. */
export interface HeldBack {
  readonly held: number;
  /** It has compared everything. If not, what was known before may be more. */
  readonly isWhole: boolean;
  readonly nowMs: number;
  /** The latest beginning of a job of the bucket: that of this job, unless it does not wait. */
  readonly afterBeginOrder: number;
}

/** The gap of what the job holds back. Any job that covers as much as this one closes it, this one included, once a person has released it. */
export function withHeld(current: GapRecord | undefined, job: JobRecord, { held, isWhole, nowMs, afterBeginOrder }: HeldBack): GapRecord {
  const { bucket, prefix } = job;
  const known = current === undefined || current.state === 'closed' || isWhole ? 0 : (current.heldDeletes ?? 0);
  const heldDeletes = Math.max(held, known);
  // the job does not know of changes after its floor
  const seenAtMs = job.coversBeforeMs === undefined ? nowMs : job.coversBeforeMs - 1;
  const report = { bucket, kind: KIND, reason: reasonOf(job, heldDeletes), seenAtMs, ...(prefix !== '' && { prefix }) } as const;
  const gap = withReport(current, report, {
    count: 1,
    toldAtMs: nowMs,
    // nor that it began after the report that it makes itself
    afterBeginOrder: job.beginOrder === undefined ? afterBeginOrder : job.beginOrder - 1,
    // a deletion has no tags
    enrich: 'none',
  });
  const next = { notBeforeMs: nowMs + LOOK_INTERVAL_MS, waits: { reason: releaseOf(job, heldDeletes) } };
  return { ...omit(gap, 'jobId', 'failures', 'refusedSinceMs', 'overBudget'), heldDeletes, deletedBefore: job.counts?.tombstones, ...next };
}

/** The gap after a look at the job that has compared everything and held deletions back. */
export function afterHeld(gap: GapRecord, job: JobRecord, nowMs: number): GapRecord {
  return withHeld(gap, job, { held: heldBy(job), isWhole: true, nowMs, afterBeginOrder: gap.afterBeginOrder ?? 0 });
}

function reasonOf({ id, prefix, counts }: JobRecord, held: number): string {
  const why = prefix === '' && counts?.listed === 0 ? 'because the bucket is empty' : 'more than its deletion limit allows';
  const deleted = counts?.tombstones ?? 0;
  return `${id} ${deleted === 0 ? '' : `deleted ${deleted} documents and `}held back ${held} deletions, ${why}`;
}

/** What to type for the whole number. */
function releaseOf({ id, state, bucket, prefix, deletions }: JobRecord, held: number): string {
  const ofPrefix = prefix === '' ? [] : ['--prefix', prefix];
  const command =
    state === 'paused'
      ? `tally jobs resume ${id} --allow-deletes ${held + (deletions?.reserved ?? 0)}`
      : shellWords('tally', 'reindex', bucket, '--allow-deletes', String(held), ...ofPrefix);
  return `a person decides: look at the bucket, and if it is as intended, run \`${command}\``;
}
