/** One job: its progress, what it found, and what a person can do about it. */
import { useState } from 'preact/hooks';
import type { Job } from '../../registry/contract/job.ts';
import { hasEnded, heldBack } from '../../registry/contract/job-state.ts';
import { countText } from '../../base/texts.ts';
import { call } from './api.ts';
import { JobBar } from './at-work.tsx';
import { ReindexButton } from './bucket-act.tsx';
import { differencesOf, jobTitle, requesterOf } from './day.ts';
import { AskedAct, Form } from './form.tsx';
import { useLoaded } from './load.ts';
import { announce, type Column, type Detail, Details, Link, Shown, Table, Text, Time } from './parts.tsx';
import { go, hrefOf, type Choices } from './place.ts';
import { may } from './session.ts';
import { plainText } from './words.ts';

/** Often enough to watch a job, which lasts minutes to hours. */
const REFRESH_MS = 2_000;

/** The job, read repeatedly until it has ended. */
export function JobPage({ choices: { id = '' } }: { readonly choices: Choices }) {
  const [isOver, setOver] = useState(false);
  async function read(signal: AbortSignal): Promise<Job> {
    const job = await call('GET /v1/jobs/{id}', { params: { id } }, signal);
    setOver(hasEnded(job));
    return job;
  }
  const loaded = useLoaded(`job ${id}`, read, { everyMs: isOver ? undefined : REFRESH_MS });
  const { value } = loaded;
  return (
    <>
      <h1>
        {value === undefined ? 'Job' : jobTitle(value)}{' '}
        {value !== undefined && (
          <Link page="bucket" choices={{ bucket: value.bucket }}>
            <Text>{value.bucket}</Text>
          </Link>
        )}
      </h1>
      <Shown loaded={loaded} isLive>
        {(job) => (
          <>
            <JobBar job={job} />
            <JobActs job={job} onChanged={loaded.reload} />
            <Fault job={job} />
            <JobDetails job={job} />
            <Examples job={job} />
          </>
        )}
      </Shown>
    </>
  );
}

/** Why it failed, or the fault that it meets now. */
function Fault({ job: { error, last_fault: last } }: { readonly job: Job }) {
  const fault = error ?? last;
  if (fault === undefined) return null;
  return (
    <p class={error === undefined ? 'advice' : 'failure'}>
      {error === undefined ? 'A request failed, and the job is retrying it: ' : 'The job failed: '}
      <Text>{`${fault.reason} (${fault.code})`}</Text>
    </p>
  );
}

interface ActsProps {
  readonly job: Job;
  readonly onChanged: () => void;
}

function JobActs({ job, onChanged }: ActsProps) {
  if (!may('PATCH /v1/jobs/{id}')) return null;
  const again = againText(job);
  return (
    <>
      {heldBack(job) > 0 && <HeldActs job={job} onChanged={onChanged} />}
      {!hasEnded(job) && <RunningActs job={job} onChanged={onChanged} />}
      {again !== undefined && (
        <ReindexButton bucket={job.bucket} prefix={job.prefix}>
          {again}
        </ReindexButton>
      )}
    </>
  );
}

/** What can be done about what a finished job left. */
function againText(job: Job): string | undefined {
  if (!hasEnded(job) || heldBack(job) > 0) return undefined;
  if (job.mode === 'report' && differencesOf(job) > 0) return 'Re-index it';
  return job.state === 'done' && (job.counts?.refused ?? 0) === 0 ? undefined : 'Re-index again';
}

function RunningActs({ job: { id, state: now }, onChanged }: ActsProps) {
  async function to(state: 'paused' | 'running' | 'cancelled'): Promise<void> {
    await call('PATCH /v1/jobs/{id}', { params: { id }, body: { state } });
    if (state === 'cancelled') announce('The job is cancelled. What it has written stays.');
    onChanged();
  }
  return (
    <div class="actions">
      {now === 'paused' ? (
        <Form submit="Resume" onSubmit={() => to('running')} />
      ) : (
        <Form submit="Pause the job" look="outline" onSubmit={() => to('paused')} />
      )}
      <AskedAct text="Cancel the job…" look="outline" title="Cancel the job?" cancelText="Keep the job" act={() => to('cancelled')}>
        <p>The job ends and cannot be resumed. What it has written stays.</p>
      </AskedAct>
    </div>
  );
}

/** A new job may delete exactly as many documents as the person was shown. */
function HeldActs({ job, onChanged }: ActsProps) {
  const decide = (deletions: 'allowed' | 'declined') => call('PATCH /v1/jobs/{id}', { params: { id: job.id }, body: { deletions } });
  async function decline(): Promise<void> {
    await decide('declined');
    announce('The documents stay, and Tally cancels any job that was allowed to delete them. The next job that finds them asks again.');
    onChanged();
  }
  const count = countText(heldBack(job), 'document');
  return (
    <div class="actions">
      <AskedAct
        text="Allow the deletions…"
        look="danger"
        title="Allow the deletions?"
        submit={`Delete ${count}`}
        act={() => decide('allowed').then(({ id }) => go(hrefOf('job', { id })))}
      >
        <p>
          In <Text>{job.bucket}</Text>, S3 has no object for {count}. Check that the bucket is as it should be. A new job deletes that many,
          and no more.
        </p>
      </AskedAct>
      <Form look="outline" onSubmit={decline} submit="Keep the documents" />
    </div>
  );
}

function JobDetails({ job }: { readonly job: Job }) {
  const { id, prefix, created_at: created, finished_at: finished } = job;
  return (
    <Details
      of={[
        ...numbersOf(job),
        ['Prefix', prefix !== '' && <Text>{prefix}</Text>],
        ['Requested by', <Text>{requesterOf(job)}</Text>],
        ['Created', <Time at={created} />],
        ['Ended', finished !== undefined && <Time at={finished} />],
        ['Job', <code>{id}</code>],
      ]}
    />
  );
}

function numbersOf({ counts, mode }: Job): readonly Detail[] {
  if (counts === undefined) return [];
  const number = (value: number) => <strong>{countText(value)}</strong>;
  return [
    ['Compared', number(counts.listed)],
    ['Missing', number(counts.missing)],
    ['Outdated', number(counts.stale)],
    ['Not in S3', number(counts.phantom)],
    mode === 'report' ? ['Changed meanwhile', number(counts.in_flight)] : ['Changes written', number(counts.written + counts.tombstones)],
    ['Deletions held back', counts.held > 0 && number(counts.held)],
  ];
}

function Examples({ job: { examples = {}, bucket } }: { readonly job: Job }) {
  const rows = Object.entries(examples).flatMap(([kind, alike]) => (alike ?? []).map((each) => ({ kind, ...each })));
  if (rows.length === 0) return null;
  const columns: readonly Column<(typeof rows)[number]>[] = [
    [
      'Key',
      ({ key }) => (
        <Link page="object" choices={{ bucket, key }}>
          <Text>{key}</Text>
        </Link>
      ),
      'row',
    ],
    ['Difference', ({ kind }) => kindTexts.get(kind) ?? plainText(kind)],
    ['Fields', ({ fields = [], reason }) => (reason === undefined ? fields.join(', ') : <Text>{reason}</Text>)],
  ];
  return (
    <section>
      <h2>Examples</h2>
      <Table label="Examples of differences" columns={columns} rows={rows} keyOf={({ kind, key }) => `${kind} ${key}`} />
    </section>
  );
}

/** The names of the numbers above. */
const kindTexts: ReadonlyMap<string, string> = new Map([
  ['stale', 'outdated'],
  ['phantom', 'not in S3'],
]);
