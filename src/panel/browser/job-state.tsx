/** How far a job is, in words. */
import type { Job } from '../../api/job.ts';
import { durationText } from './words.ts';
import { useNow } from './parts.tsx';

/** Whether nothing of the job changes any more. */
export const hasEnded = ({ state }: Job): boolean => state === 'done' || state === 'failed' || state === 'cancelled';

/** What a job does, for its title. */
export function jobTitle({ mode }: Pick<Job, 'mode'>): string {
  return mode === 'apply' ? 'Re-index' : 'Report of differences in';
}

/** Less than this says nothing of the rest. */
const PROGRESS_MIN = 0.02;

/** How long the rest takes at the speed so far; undefined: it is not known. */
export function leftText(
  { state, phase, progress = 0, comparing_at: at, paused_ms: pausedMs = 0 }: Job,
  nowMs: number,
): string | undefined {
  if (state !== 'running' || phase !== 'comparing' || at === undefined || progress < PROGRESS_MIN) return undefined;
  const workedMs = nowMs - new Date(at).getTime() - pausedMs;
  return `about ${durationText((workedMs * (1 - progress)) / progress / 1_000)} left`;
}

export function JobState({ job }: { readonly job: Job }) {
  const { state, phase, progress } = job;
  const percent = progress === undefined || state !== 'running' ? '' : `, ${Math.floor(progress * 100)} %`;
  const more = state === 'running' && phase === 'waiting' ? ', waits for late events' : percent;
  const kind = state === 'done' ? 'good' : state === 'failed' ? 'bad' : state === 'paused' ? 'notable' : 'plain';
  return (
    <span class={`state ${kind}`}>
      {state}
      {more}
    </span>
  );
}

export function JobBar({ job }: { readonly job: Job }) {
  const left = leftText(job, useNow());
  return (
    <span class="progress">
      <JobState job={job} />
      {job.state === 'running' && <progress value={job.progress} max={1} aria-label="Progress" />}
      {left !== undefined && <small class="quiet">{left}</small>}
    </span>
  );
}
