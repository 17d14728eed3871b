/** What is going on with one bucket: the job that runs, its jobs with what they found, and its gaps. */
import { call } from './api.ts';
import { GapTable } from './gaps.tsx';
import { JobBar } from './job-bar.tsx';
import { JobTable, useJobs } from './jobs.tsx';
import { hasEnded } from './job-state.tsx';
import { useLoaded } from './load.ts';
import { Link, Shown } from './parts.tsx';

/** More of them are on the pages of all buckets. */
const SHOWN_MAX = 50;
const EVERY_MS = 10_000;

/** The jobs of the bucket that have not ended. */
export function RunningJob({ bucket }: { readonly bucket: string }) {
  const { value = [] } = useJobs();
  return (
    <>
      {value
        .filter((job) => job.bucket === bucket && !hasEnded(job))
        .map((job) => (
          <p key={job.id} class="running">
            <Link page="job" choices={{ id: job.id }}>
              {job.mode === 'apply' ? 'Re-index' : 'Report of differences'}
            </Link>{' '}
            <JobBar job={job} />
          </p>
        ))}
    </>
  );
}

export function BucketActivity({ name }: { readonly name: string }) {
  const jobs = useJobs();
  const gaps = useLoaded(`gaps of ${name}`, (signal) => call('GET /v1/gaps', { query: { bucket: name, limit: SHOWN_MAX } }, signal), {
    everyMs: EVERY_MS,
  });
  return (
    <>
      <section aria-labelledby="jobs-heading">
        <h2 id="jobs-heading">Its jobs, and the drift that each found</h2>
        <Shown loaded={jobs}>
          {(all) => {
            const own = all.filter(({ bucket }) => bucket === name).slice(0, SHOWN_MAX);
            return own.length === 0 ? <p class="empty">No job yet.</p> : <JobTable jobs={own} isOfBucket />;
          }}
        </Shown>
      </section>
      <section aria-labelledby="gaps-heading">
        <h2 id="gaps-heading">Its gaps</h2>
        <Shown loaded={gaps}>
          {({ items }) =>
            items.length === 0 ? <p class="empty">No gap: every change that is known of was indexed.</p> : <GapTable gaps={items} />
          }
        </Shown>
      </section>
    </>
  );
}
