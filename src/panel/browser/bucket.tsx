/** One bucket: how it stands and what it went through today, what it uses, what changed, and how it is connected. */
import type { Bucket, ShownBucket } from '../../api/bucket.ts';
import type { Diagnosis } from '../../api/connections.ts';
import { call } from './api.ts';
import { DayLine, JobBar, useDay } from './at-work.tsx';
import { ReindexButton, Status, useBucket } from './bucket-act.tsx';
import { DisconnectSection, SettingsSection } from './bucket-settings.tsx';
import { Changes } from './changes.tsx';
import { hasEnded, jobTitle, type Day } from './day.ts';
import { Findings, isPlanned } from './findings.tsx';
import { useLoaded, type Loaded } from './load.ts';
import { Busy, Details, type Detail, Failure, Link, Shown, Tabs, Text, Time } from './parts.tsx';
import type { Choices } from './place.ts';
import { clauseOf } from './query-text.ts';
import { may } from './session.ts';
import { BucketUsage } from './usage.tsx';
import { countText, numberText, plainText } from './words.ts';

const tabs = [
  ['usage', 'Usage', 'GET /v1/usage'],
  ['changes', 'Changes', 'GET /v1/changes'],
  ['connection', 'Connection', 'GET /v1/buckets/{bucket}/doctor'],
] as const;

export function BucketPage({ choices }: { readonly choices: Choices }) {
  const name = choices['bucket'] ?? '';
  const permitted = tabs.filter(([, , needs]) => may(needs));
  const tab = permitted.find(([each]) => each === choices['tab'])?.[0] ?? 'usage';
  const loaded = useBucket(name);
  const day = useDay(name);
  return (
    <>
      <div class="heading">
        <h1>
          Bucket <Text>{name}</Text>
        </h1>
        <div class="links">
          <Link page="search" choices={{ query: clauseOf('bucket', name) }}>
            Search in this bucket
          </Link>
          <ReindexButton bucket={name} look="">
            Re-Index and Repair
          </ReindexButton>
        </div>
      </div>
      <Shown loaded={isDue(day) ? { ...loaded, value: undefined } : loaded} isLive>
        {(bucket: ShownBucket) => (
          <>
            <p class="sentence">
              <Status of={bucket} />
            </p>
            {day.value !== undefined && <AtWork bucket={bucket} day={day.value} />}
            <Tabs
              label="Of this bucket"
              of={permitted.map(([each, text]) => [text, 'bucket', { bucket: name, tab: each === 'usage' ? '' : each }, each === tab])}
            />
            {tab === 'usage' && <BucketUsage choices={choices} />}
            {tab === 'changes' && <Changes bucket={name} />}
            {tab === 'connection' && isWhole(bucket) && <ConnectionTab bucket={bucket} onChanged={loaded.reload} />}
          </>
        )}
      </Shown>
    </>
  );
}

/** Whether all of the bucket is shown, as to administrators. */
function isWhole(bucket: ShownBucket): bucket is Bucket {
  return bucket.source !== undefined;
}

/** What comes late must not move what is read already. */
function isDue({ value, problem }: Loaded<Day>): boolean {
  return may('GET /v1/gaps') && value === undefined && problem === undefined;
}

/** The jobs of the bucket that have not ended, and its day. */
function AtWork({ bucket, day }: { readonly bucket: ShownBucket; readonly day: Day }) {
  return (
    <>
      {day.jobs
        .filter((job) => !hasEnded(job))
        .map((job) => (
          <p key={job.id} class="running">
            <Link page="job" choices={{ id: job.id }}>
              {jobTitle(job)} <Text>{job.prefix === '' ? 'all keys' : job.prefix}</Text>
            </Link>{' '}
            <JobBar job={job} />
          </p>
        ))}
      <DayLine bucket={bucket} day={day} />
    </>
  );
}

interface ConnectionProps {
  readonly bucket: Bucket;
  readonly onChanged: () => void;
}

/** How the events of the bucket arrive: what the doctor finds now, what can be changed, and what is known. It only reads AWS. */
function ConnectionTab({ bucket, onChanged }: ConnectionProps) {
  const name = bucket.bucket;
  const doctor = useLoaded(`doctor ${name}`, (signal) => call('GET /v1/buckets/{bucket}/doctor', { params: { bucket: name } }, signal));
  const { value, problem } = doctor;
  if (value === undefined && problem === undefined) return <Busy>Reading AWS…</Busy>;
  // it needs nothing, and has nothing to change
  const isEmbedded = problem?.code === 'connect.embedded';
  return (
    <>
      {isEmbedded ? (
        <p class="quiet">The embedded storage sends the events of this bucket by itself. There is nothing to connect.</p>
      ) : (
        <Doctor of={doctor} />
      )}
      <Details of={factsOf(bucket)} />
      {!isEmbedded && <SettingsSection key={name} bucket={bucket} onSaved={onChanged} />}
      <DisconnectSection bucket={name} />
    </>
  );
}

function Doctor({ of: { value, problem, isLoading, atMs, reload } }: { readonly of: Loaded<Diagnosis> }) {
  return (
    <section aria-labelledby="findings-heading">
      <h2 id="findings-heading">Events</h2>
      <p>
        <Checked of={value} atMs={atMs} />
        <button type="button" class="outline small" disabled={isLoading} onClick={reload}>
          Check again
        </button>
      </p>
      {problem !== undefined && <Failure problem={problem} />}
      {value !== undefined && <Findings findings={value.findings} />}
      {value?.findings.some(isPlanned) === true && <p>The plan below makes what is missing.</p>}
    </section>
  );
}

function Checked({ of, atMs = 0 }: { readonly of: Diagnosis | undefined; readonly atMs: number | undefined }) {
  if (of === undefined) return <span class="quiet">Not checked. </span>;
  return (
    <>
      {of.findings.length === 0 ? 'In order' : countText(of.findings.length, 'finding')}: checked <Time at={new Date(atMs).toISOString()} />
      .{' '}
    </>
  );
}

/** What the form below does not have. */
function factsOf(bucket: Bucket): readonly Detail[] {
  const { lifecycle } = bucket;
  return [
    ['Region', bucket.region],
    ['Account', bucket.account],
    ['Versioning', plainText(bucket.versioning.status)],
    ['Last event', <Time at={bucket.last_event_at} />],
    ['Last whole compare', <Time at={bucket.last_compared_at} />],
    ['Connected', <Time at={bucket.created_at} />],
    ['Connected by', <Text>{bucket.created_by}</Text>],
    [
      'Lifecycle rules',
      lifecycle && (lifecycle.rules === 'unknown' ? 'may not be read' : `${numberText(lifecycle.expiring)} that expire objects`),
    ],
  ];
}
