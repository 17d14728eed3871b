/** What is happening to buckets and what Tally does about it: day strips, timelines, jobs and gaps. */
import type { ShownBucket } from '../../registry/contract/bucket.ts';
import type { Gap } from '../../registry/contract/gaps.ts';
import type { Job } from '../../registry/contract/job.ts';
import { hasEnded, leftMs } from '../../registry/contract/job-state.ts';
import { printable, durationText } from '../../base/texts.ts';
import { call } from './api.ts';
import { bucketColumn, byUrgency, EVERY_MS, ReindexButton, Status, StatusAct, useBuckets } from './bucket-act.tsx';
import { DAY_MS, dayOf, endOf, jobTitle, requesterOf, spansOf, stateText, storyOf, type Day, type Look } from './day.ts';
import { PAGE_MAX, useLoaded, type Loaded } from './load.ts';
import { type Column, Link, Table, Text, Time } from './parts.tsx';
import { may } from './session.ts';

/** Unfinished jobs come first. More finished ones are on their bucket's page. */
const JOBS_MAX = 100;

/** The day of one bucket, or of all. */
export function useDay(bucket?: string): Loaded<Day> {
  const of = { ...(bucket !== undefined && { bucket }), limit: PAGE_MAX };
  async function read(signal: AbortSignal): Promise<Day> {
    const yesterday = new Date(Date.now() - DAY_MS).toISOString();
    const [open, closed, jobs] = await Promise.all([
      call('GET /v1/gaps', { query: of }, signal),
      call('GET /v1/gaps', { query: { ...of, state: 'closed', closed_after: yesterday } }, signal),
      call('GET /v1/jobs', { query: { ...of, limit: JOBS_MAX } }, signal),
    ]);
    return { gaps: [...open.items, ...closed.items], jobs: jobs.items };
  }
  return useLoaded(`day of ${bucket ?? 'all'}`, read, { everyMs: EVERY_MS, isWanted: may('GET /v1/gaps') });
}

/** Holds a value back until the day is known too, so that nothing already on the page moves. */
export function after<Value>({ value, problem }: Loaded<Day>, loaded: Loaded<Value>): Loaded<Value> {
  const isDue = may('GET /v1/gaps') && value === undefined && problem === undefined;
  return isDue ? { ...loaded, value: undefined } : loaded;
}

const lookTexts: Readonly<Record<Look, string>> = {
  unknown: 'never fully compared',
  agrees: 'in agreement',
  gap: 'changes may be missing',
  repairs: 'being repaired',
  differs: 'differs',
};

/** The smallest visible part of a day. */
const SEEN = 0.006;

/** A bucket's last 24 hours as a strip. */
export function Strip({ bucket, day }: { readonly bucket: ShownBucket; readonly day: Day | undefined }) {
  if (day === undefined) return null;
  const spans = spansOf(bucket, dayOf(day, bucket.bucket), Date.now());
  const looks = [...new Set(spans.map(({ look }) => look))].filter((look, _, all) => look !== 'unknown' || all.length === 1);
  const text = `Last 24 hours: ${looks.map((look) => lookTexts[look]).join(', ')}`;
  return (
    <svg class="strip" viewBox="0 0 1 1" preserveAspectRatio="none" role="img" aria-label={text}>
      <title>{text}</title>
      {spans.map(({ look, from, to }, index) => (
        // something that lasted only seconds is visible too
        <rect key={index} class={look} x={Math.min(from, 1 - SEEN)} y="0" width={Math.max(to - from, SEEN)} height="1" />
      ))}
    </svg>
  );
}

/** What the colours of a strip mean. */
function StripLegend() {
  return (
    <ul class="legend">
      {(['agrees', 'gap', 'repairs', 'differs'] as const).map((look) => (
        <li key={look} class={`dot ${look}`}>
          {lookTexts[look]}
        </li>
      ))}
    </ul>
  );
}

interface BucketsProps {
  readonly of: readonly ShownBucket[];
  readonly day: Day | undefined;
  /** Columns between the status and the day. */
  readonly more?: readonly Column<ShownBucket>[];
}

/** Buckets, worst first, each with its status and its day. */
export function BucketTable({ of, day, more = [] }: BucketsProps) {
  const columns: readonly Column<ShownBucket>[] = [
    bucketColumn,
    ['Status', (bucket) => <Status of={bucket} />],
    ...more,
    ['Last 24 hours', (bucket) => <Strip bucket={bucket} day={day} />],
  ];
  return (
    <>
      <Table label="Connected buckets" columns={columns} rows={of.toSorted(byUrgency)} keyOf={({ bucket }) => bucket} empty="No buckets." />
      {day !== undefined && <StripLegend />}
    </>
  );
}

/** A bucket's unfinished jobs, and its timeline: what was found, what Tally did about it, and how it ended. */
export function DayLine({ bucket, day }: { readonly bucket: ShownBucket; readonly day: Day }) {
  const steps = storyOf(bucket, day, Date.now());
  return (
    <section aria-labelledby="day-heading">
      <Jobs label="Jobs" jobs={day.jobs.filter((job) => !hasEnded(job))} />
      <h2 id="day-heading">The last 24 hours</h2>
      <Strip bucket={bucket} day={day} />
      {steps.length === 0 ? (
        <p class="quiet">No gaps and no jobs.</p>
      ) : (
        <ol class="story">
          {steps.map(({ at, text, job, isGood }, index) => (
            <li key={index}>
              <time dateTime={at} title={at}>
                {at.slice(11, 16)}
              </time>{' '}
              <span class={isGood === true ? 'state good' : undefined}>
                {job === undefined ? (
                  <Text>{text}</Text>
                ) : (
                  <Link page="job" choices={{ id: job }}>
                    {text}
                  </Link>
                )}
              </span>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}

/** A job's progress. */
export function JobBar({ job }: { readonly job: Job }) {
  const left = leftMs(job);
  const { state } = job;
  return (
    <span class="progress">
      <span class={state === 'failed' ? 'state bad' : state === 'paused' ? 'state notable' : 'state'}>{stateText(job)}</span>
      {state === 'running' && job.progress !== undefined && <progress value={job.progress} max={1} aria-label="Progress" />}
      {left !== undefined && <small class="quiet">{`about ${durationText(left)} left`}</small>}
    </span>
  );
}

const jobColumns: readonly Column<Job>[] = [
  [
    'Job',
    (job) => (
      <Link page="job" choices={{ id: job.id }}>
        {jobTitle(job)} <Text>{job.bucket}</Text>
        {job.prefix !== '' && [' / ', <Text key="prefix">{job.prefix}</Text>]}
      </Link>
    ),
    'row',
  ],
  ['State', (job) => (hasEnded(job) ? <End of={job} /> : <JobBar job={job} />)],
  ['Requested by', (job) => <Text>{requesterOf(job)}</Text>],
  ['When', ({ created_at: created, finished_at: at = created }) => <Time at={at} />],
];

/** The job's page has the whole reason, which may quote a long key. */
const REASON_LENGTH_MAX = 160;

/** What a job found and did, or why it failed. */
function End({ of: job }: { readonly of: Job }) {
  const { state, error } = job;
  return (
    <span class={state === 'failed' ? 'state bad' : undefined}>
      <Text>{error === undefined ? endOf(job) : printable(`${endOf(job)}: ${error.reason}`, REASON_LENGTH_MAX)}</Text>
    </span>
  );
}

interface JobsProps {
  readonly label: string;
  readonly jobs: readonly Job[];
  /** What to show if there is no job; absent: nothing. */
  readonly empty?: string;
}

export function Jobs({ label, jobs, empty = '' }: JobsProps) {
  return <Table label={label} columns={jobColumns} rows={jobs} keyOf={({ id }) => id} empty={empty} />;
}

interface GapsProps {
  readonly gaps: readonly Gap[];
  /** The unfinished ones. */
  readonly jobs: readonly Job[];
  readonly empty: string;
}

export function Gaps({ gaps, jobs, empty }: GapsProps) {
  const columns: readonly Column<Gap>[] = [
    bucketColumn,
    ['Keys', ({ prefix }) => (prefix === undefined ? 'all' : <Text>{prefix}</Text>)],
    ['Since', ({ since }) => <Time at={since} />],
    ['Why', ({ why }) => <Text>{why}</Text>],
    ['What happens next', (gap) => <Next of={gap} running={jobs.find(({ bucket }) => bucket === gap.bucket)} />],
  ];
  return <Table label="Gaps" columns={columns} rows={gaps} keyOf={({ id }) => id} empty={empty} />;
}

interface NextProps {
  readonly of: Gap;
  /** Its bucket's running job, beside which no other begins. */
  readonly running: Job | undefined;
}

/** What happens to a gap next and when, and what a person can do about it. */
function Next({ of: gap, running }: NextProps) {
  const job = gap.job_id ?? running?.id;
  if (job === undefined) {
    return (
      <span class="status">
        <span>
          <Text>{gap.next ?? ''}</Text>
          {Date.parse(gap.due_at ?? '') > Date.now() && [' (', <Time key="due" at={gap.due_at} />, ')']}
        </span>
        <GapAct of={gap} />
      </span>
    );
  }
  return (
    <Link page="job" choices={{ id: job }}>
      {job === gap.job_id ? 'A re-index is repairing it' : 'It waits for this job to end'}
    </Link>
  );
}

/** If the connection must be repaired first, a re-index would meet the same fault. */
function GapAct({ of: { bucket, prefix, due_at: due, held } }: Pick<NextProps, 'of'>) {
  const { act } = useBuckets().value?.items.find((each) => each.bucket === bucket)?.status ?? {};
  if (act !== undefined && act.kind !== 'jobs' && act.kind !== 'reindex') return <StatusAct bucket={bucket} act={act} />;
  if (due === undefined && held !== true) return <StatusAct bucket={bucket} act={{ kind: 'doctor' }} />;
  return (
    <ReindexButton bucket={bucket} prefix={prefix}>
      {held === true ? 'Re-index it' : 'Re-index now'}
    </ReindexButton>
  );
}
