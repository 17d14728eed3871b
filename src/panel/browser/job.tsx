/** One job. */
import { useState } from 'preact/hooks';
import type { Job } from '../../api/job.ts';
import { call } from './api.ts';
import { JobBar, hasEnded, jobTitle } from './job-state.tsx';
import { useLoaded } from './load.ts';
import { Act, FormDialog } from './form.tsx';
import { announce, type Column, Details, Link, Shown, Table, Text, Time } from './parts.tsx';
import { go, hrefOf } from './place.ts';
import { may } from './session.ts';
import { durationText, numberText, plainText, sizeText, timeText, zone } from './words.ts';

/** A person who watches sees each step; a job lasts minutes to hours. */
const REFRESH_MS = 2_000;

/** The job, read again and again until it has ended. */
export function JobPage({ id }: { readonly id: string }) {
  const [isOver, setOver] = useState(false);
  async function read(signal: AbortSignal): Promise<Job> {
    const job = await call('GET /v1/jobs/{id}', { params: { id } }, signal);
    setOver(hasEnded(job));
    return job;
  }
  const loaded = useLoaded(`job ${id}`, read, { everyMs: isOver ? undefined : REFRESH_MS });
  return (
    <>
      <h1>
        {loaded.value === undefined ? (
          'Job'
        ) : (
          <>
            {jobTitle(loaded.value)} <Text>{loaded.value.bucket}</Text>
          </>
        )}
      </h1>
      <Shown loaded={loaded} isLive>
        {(job) => (
          <>
            <JobBar job={job} />
            <JobActs job={job} onChanged={loaded.reload} />
            <Fault job={job} />
            <Stages job={job} />
            <Figures job={job} />
            <details>
              <summary>More about this job</summary>
              <JobDetails job={job} />
              <Counts job={job} />
            </details>
            <Examples job={job} />
          </>
        )}
      </Shown>
    </>
  );
}

/** How many deletions a job that is done held back: a person decides about them. */
const heldBack = ({ state, mode, counts }: Job): number => (state === 'done' && mode === 'apply' ? (counts?.held ?? 0) : 0);

type Stage = readonly [name: string, state: 'done' | 'current' | 'later', more: string];

/** What is not over: it waits for late events, or it compares. */
function waitOf({ state, phase, waits_until: until }: Job): Stage {
  if (state === 'queued') return ['Wait', 'later', 'for late events'];
  if (phase !== 'waiting') return ['Wait', 'done', 'for late events'];
  return ['Wait', 'current', until === undefined ? 'for late events' : `for late events, until ${timeText(until, zone.read()).slice(11)}`];
}

/** Objects are compared, and differences written, while the listing continues. */
function stagesOf(job: Job): readonly Stage[] {
  const { state, counts = zeroCounts, mode, phase } = job;
  const begun = phase === 'comparing' ? 'current' : 'later';
  const later = state === 'done' ? 'done' : begun;
  const count = (number: number, name: string): string => (later === 'later' ? '' : `${numberText(number)} ${name}`);
  return [
    waitOf(job),
    ['List', later, count(counts.listed, 'objects')],
    ['Compare', later, count(counts.scanned, 'documents')],
    ...(mode === 'apply' ? [['Write', later, count(counts.written + counts.tombstones, 'changes')] as const] : []),
  ];
}

const zeroCounts = { listed: 0, scanned: 0, written: 0, tombstones: 0 } as const;

function Stages({ job }: { readonly job: Job }) {
  return (
    <ol class="stages">
      {stagesOf(job).map(([name, state, more]) => (
        <li key={name} class={state} aria-current={state === 'current' ? 'step' : undefined}>
          <strong>{name}</strong>
          <small>{more}</small>
        </li>
      ))}
    </ol>
  );
}

/** The five numbers that a person asks for; the rest is folded. */
function Figures({ job: { counts, mode } }: { readonly job: Job }) {
  if (counts === undefined) return null;
  const figures: readonly (readonly [string, number])[] = [
    ['compared', counts.listed],
    ['missing in the index', counts.missing],
    ['different', counts.stale],
    ['not in S3 any more', counts.phantom],
    counts.held > 0 && mode === 'apply'
      ? ['deletions held back', counts.held]
      : [mode === 'apply' ? 'written' : 'changed meanwhile', mode === 'apply' ? counts.written : counts.in_flight],
  ];
  return (
    <ul class="cards" aria-label="What it found">
      {figures.map(([name, value]) => (
        <li key={name} class="card">
          <strong class="figure">{numberText(value)}</strong>
          {name}
        </li>
      ))}
    </ul>
  );
}

interface ActsProps {
  readonly job: Job;
  readonly onChanged: (job: Job) => void;
}

function JobActs({ job, onChanged }: ActsProps) {
  const [asked, setAsked] = useState<'allow' | 'cancel'>();
  const close = () => setAsked(undefined);
  const wish = async (state: 'paused' | 'running'): Promise<void> =>
    onChanged(await call('PATCH /v1/jobs/{id}', { params: { id: job.id }, body: { state } }));
  const isHeld = heldBack(job) > 0;
  if ((hasEnded(job) && !isHeld) || !may('PATCH /v1/jobs/{id}')) return null;
  if (isHeld)
    return (
      <div class="actions">
        <button type="button" class="danger" onClick={() => setAsked('allow')}>
          Allow the deletions…
        </button>
        <Act isSecondary act={() => decline(job)}>
          Keep the documents
        </Act>
        {asked === 'allow' && <AllowDialog job={job} onClose={close} />}
      </div>
    );
  return (
    <div class="actions">
      {job.state === 'paused' ? (
        <Act act={() => wish('running')}>Resume</Act>
      ) : (
        <Act isSecondary act={() => wish('paused')}>
          Pause the job
        </Act>
      )}
      <button type="button" class="secondary outline" onClick={() => setAsked('cancel')}>
        Cancel the job…
      </button>
      {asked === 'cancel' && <CancelDialog job={job} onChanged={onChanged} onClose={close} />}
    </div>
  );
}

function CancelDialog({ job, onChanged, onClose }: ActsProps & { readonly onClose: () => void }) {
  async function cancel(): Promise<void> {
    onChanged(await call('PATCH /v1/jobs/{id}', { params: { id: job.id }, body: { state: 'cancelled' } }));
    announce('The job is cancelled. What it has written stays.');
    onClose();
  }
  return (
    <FormDialog title="Cancel the job?" onClose={onClose} submit="Cancel the job" onSubmit={cancel} cancelText="Keep the job">
      <p>The job ends and cannot be resumed. What it has written stays.</p>
    </FormDialog>
  );
}

async function decline({ id }: Job): Promise<void> {
  await call('PATCH /v1/jobs/{id}', { params: { id }, body: { deletions: 'declined' } });
  announce('The documents stay. The next job that finds them asks again.');
}

/** A new job may delete exactly as many as the person has seen. */
function AllowDialog({ job, onClose }: { readonly job: Job; readonly onClose: () => void }) {
  async function allow(): Promise<void> {
    const { id } = await call('PATCH /v1/jobs/{id}', { params: { id: job.id }, body: { deletions: 'allowed' } });
    onClose();
    go(hrefOf('job', { id }));
  }
  const count = numberText(heldBack(job));
  return (
    <FormDialog title="Allow the deletions?" onClose={onClose} submit={`Delete ${count} documents`} onSubmit={allow} isDanger>
      <p>
        {count} deletions wait: documents of <Text>{job.bucket}</Text> whose objects the bucket does not show. A new job makes them. Check
        that the bucket is as it should be.
      </p>
    </FormDialog>
  );
}

const timeOf = (at: string | undefined) => at !== undefined && <Time at={at} />;
const textOf = (text: string | undefined) => text !== undefined && text !== '' && <Text>{text}</Text>;
const positive = (value: number | undefined, show: (value: number) => string = numberText) =>
  value !== undefined && value > 0 && show(value);

/** Why it failed, or what it meets now. */
function Fault({ job: { error, last_fault: last } }: { readonly job: Job }) {
  const fault = error ?? last;
  if (fault === undefined) return null;
  return (
    <p class={error === undefined ? 'advice' : 'failure'}>
      {error === undefined ? 'It meets a fault, and tries again: ' : 'It failed: '}
      <Text>{`${fault.reason} (${fault.code})`}</Text>
    </p>
  );
}

function JobDetails({ job }: { readonly job: Job }) {
  const { phase } = job;
  return (
    <Details
      of={[
        ['Job', <code>{job.id}</code>],
        [
          'Bucket',
          <Link page="bucket" choices={{ bucket: job.bucket }}>
            <Text>{job.bucket}</Text>
          </Link>,
        ],
        ['Prefix', textOf(job.prefix)],
        ['Kind', job.mode === 'apply' ? 're-index' : 'report of differences'],
        ['Requested by', textOf(job.requested_by)],
        ['Created', timeOf(job.created_at)],
        ['Started', timeOf(job.started_at)],
        ['Ended', timeOf(job.finished_at)],
        ['Waits until', phase === 'waiting' && timeOf(job.waits_until)],
        ['Covers changes before', timeOf(job.covers_before)],
        ['Speed', positive(job.objects_per_s, (value) => `${numberText(Math.round(value))} objects/s`)],
        ['Paused for', positive(job.paused_ms, (ms) => durationText(ms / 1_000))],
        ['Compared up to', textOf(job.cursor)],
        ['Cost of S3 requests', positive(job.cost_usd, (usd) => `about $${usd.toFixed(4)}`)],
      ]}
    />
  );
}

function Counts({ job: { counts } }: { readonly job: Job }) {
  if (counts === undefined) return null;
  const { bytes_listed: bytes, ...numbers } = counts;
  return (
    <section>
      <h2>Counts</h2>
      <Details
        of={[
          ...Object.entries(numbers).map(([name, value]) => [plainText(name), numberText(value)] as const),
          ['bytes listed', sizeText(bytes)],
        ]}
      />
    </section>
  );
}

function Examples({ job: { examples = {}, bucket } }: { readonly job: Job }) {
  const rows = Object.entries(examples).flatMap(([kind, alike]) => (alike ?? []).map((each) => ({ kind, ...each })));
  if (rows.length === 0) return null;
  const columns: readonly Column<(typeof rows)[number]>[] = [
    ['Difference', ({ kind }) => plainText(kind)],
    [
      'Key',
      ({ key }) => (
        <Link page="object" choices={{ bucket, key }} isRow>
          <Text>{key}</Text>
        </Link>
      ),
    ],
    ['Fields', ({ fields = [], reason }) => (reason === undefined ? fields.join(', ') : <Text>{reason}</Text>)],
  ];
  return (
    <section>
      <h2>Examples</h2>
      <Table label="Examples of differences" columns={columns} rows={rows} keyOf={({ kind, key }) => `${kind} ${key}`} />
    </section>
  );
}
