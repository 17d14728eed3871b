/** All jobs, the newest first. */
import { useState } from 'preact/hooks';
import type { Job } from '../../api/job.ts';
import { call } from './api.ts';
import { JobBar, hasEnded, jobTitle } from './job-state.tsx';
import { useLoaded, type Loaded } from './load.ts';
import { type Column, Link, Shown, Table, Text, Time } from './parts.tsx';
import { numberText } from './words.ts';

/** While a job has not ended, and otherwise: a list of 1,000 jobs is a megabyte. */
const REFRESH_MS = { active: 5_000, idle: 30_000 };
/** The registry keeps the last 1,000 that ended; those that have not ended come on a second page at most. */
const PAGE = 1_000;
const PAGES_MAX = 2;
/** More rows than that take a browser long to draw. */
const SHOWN_MAX = 200;

async function readJobs(signal: AbortSignal): Promise<readonly Job[]> {
  const jobs: Job[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < PAGES_MAX; page++) {
    const { items, next } = await call('GET /v1/jobs', { query: { limit: PAGE, ...(cursor !== undefined && { cursor }) } }, signal);
    jobs.push(...items);
    if (next === undefined) break;
    cursor = next;
  }
  return jobs.toReversed();
}

/** All jobs, the newest first, more often while one of them has not ended. */
export function useJobs(): Loaded<readonly Job[]> {
  const [isActive, setActive] = useState(true);
  async function read(signal: AbortSignal): Promise<readonly Job[]> {
    const jobs = await readJobs(signal);
    setActive(jobs.some((job) => !hasEnded(job)));
    return jobs;
  }
  return useLoaded('jobs', read, { everyMs: REFRESH_MS[isActive ? 'active' : 'idle'] });
}

export function JobsPage({ bucket }: { readonly bucket: string }) {
  const loaded = useJobs();
  return (
    <>
      <h1>Activity</h1>
      <ActivityTabs page="jobs" bucket={bucket} />
      <Shown loaded={loaded} isLive>
        {(jobs) => <Jobs jobs={bucket === '' ? jobs : jobs.filter((job) => job.bucket === bucket)} />}
      </Shown>
    </>
  );
}

/** The two pages of what is going on, of all buckets or of one. */
export function ActivityTabs({ page, bucket }: { readonly page: 'jobs' | 'gaps'; readonly bucket: string }) {
  return (
    <nav aria-label="Activity">
      <ul class="tabs">
        <li>
          <Link page="jobs" choices={{ bucket }} isCurrent={page === 'jobs'}>
            Jobs
          </Link>
        </li>
        <li>
          <Link page="gaps" choices={{ bucket }} isCurrent={page === 'gaps'}>
            Gaps
          </Link>
        </li>
        {bucket !== '' && (
          <li>
            <Link page={page}>
              of <Text>{bucket}</Text>: show all
            </Link>
          </li>
        )}
      </ul>
    </nav>
  );
}

function Jobs({ jobs }: { readonly jobs: readonly Job[] }) {
  if (jobs.length === 0) {
    return (
      <p class="empty">
        No job. A re-index is started on the page of a <Link page="buckets">bucket</Link>.
      </p>
    );
  }
  return (
    <>
      <JobTable jobs={jobs.slice(0, SHOWN_MAX)} />
      {jobs.length > SHOWN_MAX && <p>The newest {SHOWN_MAX} are shown. The page of a bucket leads to its own jobs.</p>}
    </>
  );
}

interface TableProps {
  readonly jobs: readonly Job[];
  /** All are of one bucket. */
  readonly isOfBucket?: boolean;
}

export function JobTable({ jobs, isOfBucket }: TableProps) {
  const columns: readonly Column<Job>[] = [
    [
      'Job',
      (job) => (
        <Link page="job" choices={{ id: job.id }} isRow>
          {jobTitle(job)} {isOfBucket !== true && <Text>{job.bucket}</Text>}
          {job.prefix !== '' && [' / ', <Text key="prefix">{job.prefix}</Text>]}
        </Link>
      ),
      'row',
    ],
    ['State', (job) => <JobBar job={job} />],
    ['Missing', ({ counts }) => counts && numberText(counts.missing)],
    ['Different', ({ counts }) => counts && numberText(counts.stale)],
    ['Phantom', ({ counts }) => counts && numberText(counts.phantom)],
    ['Requested by', ({ requested_by: by }) => <Text>{by}</Text>, 'who'],
    ['Created', ({ created_at: at }) => <Time at={at} />],
  ];
  return <Table label="Jobs" columns={columns} rows={jobs} keyOf={({ id }) => id} />;
}
