/** How far a job is: the same bar on its page, in lists and on the page of its bucket. */
import type { Job } from '../../api/jobs.ts';
import { JobState, leftText } from './job-state.tsx';
import { useNow } from './parts.tsx';

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
