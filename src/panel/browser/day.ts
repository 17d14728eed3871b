/** The buckets' last 24 hours, from their gaps and jobs: a strip for each bucket, and the day's timeline. */
import type { ShownBucket } from '../../registry/contract/bucket.ts';
import type { Gap } from '../../registry/contract/gaps.ts';
import type { Job } from '../../registry/contract/job.ts';
import { countText, percentText } from '../../base/texts.ts';
import { hasEnded } from '../../registry/contract/job-state.ts';
import { plainText } from './words.ts';

export const DAY_MS = 86_400_000;

export interface Day {
  /** Open gaps, and gaps closed within the day. */
  readonly gaps: readonly Gap[];
  /** Unfinished jobs, and the latest finished ones. */
  readonly jobs: readonly Job[];
}

/** One bucket's part of the day. */
export function dayOf({ gaps, jobs }: Day, bucket: string): Day {
  return { gaps: gaps.filter((gap) => gap.bucket === bucket), jobs: jobs.filter((job) => job.bucket === bucket) };
}

/**
 * Who must act on each bucket that isn't green: a person, or Tally, which has a next step planned; a job is repairing the others.
 * Every such bucket is in exactly one group, whenever the day was read.
 */
export function standingOf(items: readonly ShownBucket[], day: Day | undefined) {
  const jobs = (day?.jobs ?? []).filter((job) => !hasEnded(job) && job.state !== 'paused');
  const repaired = new Set(jobs.filter(({ mode }) => mode === 'apply').map(({ bucket }) => bucket));
  // what events wait for may need a person although no button of the panel ends it
  const isYours = ({ status: { state, act } }: ShownBucket): boolean => act !== undefined || state === 'waiting';
  return {
    you: items.filter(isYours),
    tally: items.filter((each) => each.status.state !== 'ok' && !isYours(each) && !repaired.has(each.bucket)),
    jobs,
  };
}

/** `unknown`: no known difference, but the bucket was never compared as a whole. */
export type Look = 'unknown' | 'agrees' | 'gap' | 'repairs' | 'differs';

/** A span of the day, where 0 is 24 hours ago and 1 is now. */
export interface Span {
  readonly look: Look;
  readonly from: number;
  readonly to: number;
}

/** Earlier than any day. */
const EVER = '1970-01-01T00:00:00Z';

/** The spans of a bucket's day in drawing order: later ones cover earlier ones. */
export function spansOf(
  { status, created_at: created, last_compared_at: compared }: ShownBucket,
  { gaps, jobs }: Day,
  nowMs: number,
): readonly Span[] {
  const at = (time: string | undefined): number =>
    time === undefined ? 1 : Math.min(1, Math.max(0, 1 - (nowMs - Date.parse(time)) / DAY_MS));
  const span = (look: Look, from: string | undefined, to?: string): Span => ({ look, from: at(from), to: at(to) });
  const { state, severity, since } = status;
  const trouble = severity === 'bad' ? 'differs' : 'gap';
  return [
    span('unknown', EVER),
    ...(compared === undefined ? [] : [span('agrees', created ?? EVER)]),
    ...gaps.map((gap) => span('gap', gap.since, gap.closed_at)),
    ...(state === 'ok' ? [] : [span(trouble, since)]),
    ...jobs.filter(({ mode }) => mode === 'apply').map((job) => span('repairs', job.started_at, job.finished_at)),
  ].filter(({ from, to }) => to > from);
}

/** Something that happened to a bucket. */
export interface Step {
  readonly at: string;
  readonly text: string;
  readonly job?: string | undefined;
  /** No known difference remains after it. */
  readonly isGood?: true;
}

/** More entries than a person reads at once. */
const STEPS_MAX = 12;

/** A bucket's day, earliest first: what was found, what Tally did about it, and how it ended. */
export function storyOf(
  { status: { state, since: statusSince, sentence } }: Pick<ShownBucket, 'status'>,
  { gaps, jobs }: Day,
  nowMs: number,
): readonly Step[] {
  const opened = gaps
    // the report says so itself
    .filter(({ reasons: [latest] }) => latest?.kind !== 'drift')
    .map(({ since, why }): Step => ({ at: since, text: why }));
  const closed = gaps.flatMap(({ closed_at: at }): readonly Step[] =>
    at === undefined ? [] : [{ at, text: 'in agreement', isGood: true }],
  );
  const isSaid = state === 'ok' || statusSince === undefined || gaps.some((gap) => gap.state === 'open');
  return [...opened, ...jobs.flatMap(stepsOf), ...(isSaid ? [] : [{ at: statusSince, text: sentence }]), ...closed]
    .filter(({ at }) => nowMs - Date.parse(at) < DAY_MS)
    .toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at))
    .slice(-STEPS_MAX);
}

function stepsOf(job: Job): readonly Step[] {
  const { id, mode, started_at: started, finished_at: finished } = job;
  return [
    ...(mode === 'report' || started === undefined ? [] : [{ at: started, text: 're-index', job: id }]),
    ...(finished === undefined || !hasEnded(job) ? [] : [{ at: finished, text: endOf(job), job: id }]),
  ];
}

/** What a job does, as its title. */
export function jobTitle({ mode }: Pick<Job, 'mode'>): string {
  return mode === 'apply' ? 'Re-index' : 'Report of differences in';
}

/** Who asked for a job. */
export function requesterOf({ requested_by: by }: Pick<Job, 'requested_by'>): string {
  if (by === 'gap') return 'Tally, for a gap';
  return by === 'schedule' ? 'Tally, by its calendar' : by;
}

/** A job's progress in words. */
export function stateText({ state, phase, progress }: Job): string {
  if (state === 'running' && phase === 'waiting') return 'running, waits for late events';
  return state === 'running' && progress !== undefined ? `running, ${percentText(progress)}` : plainText(state);
}

/** The number of differing objects that a job found. */
export function differencesOf({ counts }: Pick<Job, 'counts'>): number {
  return counts === undefined ? 0 : counts.missing + counts.stale + counts.phantom;
}

/** What a finished job found and did, in a few words. */
export function endOf(job: Job): string {
  const { mode, state, error } = job;
  const kind = mode === 'apply' ? 're-index' : 'report';
  if (state === 'failed') return `${kind} failed${error === undefined ? '' : `: ${error.code}`}`;
  if (state === 'cancelled') return `${kind} cancelled`;
  const found = differencesOf(job);
  return mode === 'apply' ? writtenOf(job) : `a report found ${found === 0 ? 'no difference' : countText(found, 'difference')}`;
}

function writtenOf({ counts }: Job): string {
  const written = (counts?.written ?? 0) + (counts?.tombstones ?? 0);
  const held = counts?.held ?? 0;
  return `re-index ended: ${written === 0 ? 'nothing to write' : countText(written, 'change')}${held === 0 ? '' : `, ${countText(held, 'deletion')} held back`}`;
}
