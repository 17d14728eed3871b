/** What Tally is doing for the buckets: running jobs, gaps with their next step, and finished jobs. */
import { Gaps, Jobs, useDay } from './at-work.tsx';
import { hasEnded } from '../../registry/contract/job-state.ts';
import { Field } from './form.tsx';
import { Shown } from './parts.tsx';
import { go, hrefOf, type Choices } from './place.ts';

export function ActivityPage({ choices: { bucket = '' } }: { readonly choices: Choices }) {
  const loaded = useDay(bucket === '' ? undefined : bucket);
  return (
    <>
      <div class="heading">
        <h1>Activity</h1>
        <Field label="Bucket" value={bucket} onChosen={(chosen) => go(hrefOf('activity', { bucket: chosen.trim() }))} />
      </div>
      <Shown loaded={loaded} isLive>
        {({ jobs, gaps }) => {
          const open = gaps.filter(({ state }) => state === 'open');
          const running = jobs.filter((job) => !hasEnded(job));
          return (
            <>
              <section aria-labelledby="running-heading">
                <h2 id="running-heading">Running</h2>
                <Jobs label="Jobs" jobs={running} empty="No job is running." />
              </section>
              <section aria-labelledby="gaps-heading">
                <h2 id="gaps-heading">Open gaps</h2>
                {open.length > 0 && <p>Changes that the index may lack until a re-index closes the gap.</p>}
                <Gaps gaps={open} jobs={running} empty="No gaps: Tally has indexed every change that it knows of." />
              </section>
              <section aria-labelledby="ended-heading">
                <h2 id="ended-heading">Ended</h2>
                <Jobs label="Ended jobs" jobs={jobs.filter((job) => hasEnded(job))} empty="No job has ended yet." />
              </section>
            </>
          );
        }}
      </Shown>
    </>
  );
}
