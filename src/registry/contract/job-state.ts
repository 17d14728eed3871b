/** What follows from a job, for commands and the panel. */
import type { Job } from './job.ts';

/** Whether the job can no longer change. */
export function hasEnded({ state }: Pick<Job, 'state'>): boolean {
  return state === 'done' || state === 'failed' || state === 'cancelled';
}

/** How many of the deletions that a job held back still wait for a person's decision. */
export function heldBack({ waiting }: Job): number {
  return waiting === undefined || waiting.declined_at !== undefined ? 0 : waiting.deletions;
}

/** The share of the work from which the rest can be estimated: before it, an estimate is only a guess. */
const PROGRESS_MIN = 0.02;

/** How long the rest of a running job takes at its speed so far; undefined: not known yet. */
export function leftMs({ state, counts, progress = 0, objects_per_s: rate = 0 }: Job): number | undefined {
  if (state !== 'running' || counts === undefined || rate === 0 || progress < PROGRESS_MIN) return undefined;
  return ((counts.listed / progress) * (1 - progress) * 1_000) / rate;
}
