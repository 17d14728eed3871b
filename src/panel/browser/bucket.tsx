/** One bucket: its status and its day, its usage, its changes, and its connection. */
import { useEffect } from 'preact/hooks';
import type { Bucket, ShownBucket } from '../../registry/contract/bucket.ts';
import type { Diagnosis } from '../../registry/contract/connections.ts';
import { countText } from '../../base/texts.ts';
import { call } from './api.ts';
import { after, DayLine, useDay } from './at-work.tsx';
import { ReindexButton, Status, useBucket } from './bucket-act.tsx';
import { Changes } from './changes.tsx';
import { EMBEDDED, SettingsSection } from './connect.tsx';
import { DisconnectSection } from './disconnect.tsx';
import { Findings } from './findings.tsx';
import { Form } from './form.tsx';
import { useAnswer, type Loaded } from './load.ts';
import { announce, Busy, Details, type Detail, Link, NOT_CONNECTED, Shown, Tabs, Text, Time } from './parts.tsx';
import { useApply } from './plan.tsx';
import type { Choices } from './place.ts';
import { clauseOf } from './query-text.ts';
import { may } from './session.ts';
import { BucketUsage } from './usage.tsx';
import { plainText } from './words.ts';

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
        {loaded.problem?.code !== NOT_CONNECTED && (
          <div class="actions">
            <Link page="search" choices={{ query: clauseOf('bucket', name) }}>
              Search in this bucket
            </Link>
            <ReindexButton bucket={name} look="">
              Re-Index and Repair
            </ReindexButton>
          </div>
        )}
      </div>
      <Shown loaded={after(day, loaded)} isLive>
        {(bucket: ShownBucket) => (
          <>
            <p class="sentence">
              <Status of={bucket} />
            </p>
            {day.value !== undefined && <DayLine bucket={bucket} day={day.value} />}
            <Tabs
              label="This bucket"
              of={permitted.map(([each, text]) => [text, 'bucket', { bucket: name, tab: each === 'usage' ? '' : each }, each === tab])}
            />
            {tab === 'usage' && <BucketUsage choices={choices} />}
            {tab === 'changes' && <Changes bucket={name} />}
            {tab === 'connection' && isWhole(bucket) && <ConnectionTab bucket={bucket} choices={choices} onChanged={loaded.reload} />}
          </>
        )}
      </Shown>
    </>
  );
}

/** Whether the person sees the whole bucket, as administrators do. */
function isWhole(bucket: ShownBucket): bucket is Bucket {
  return bucket.source !== undefined;
}

interface ConnectionProps {
  readonly bucket: Bucket;
  readonly choices: Choices;
  readonly onChanged: () => void;
}

/** How the bucket's events arrive: what the doctor finds now, what can be changed, and what is known. It only reads AWS. */
function ConnectionTab({ bucket, choices, onChanged }: ConnectionProps) {
  const name = bucket.bucket;
  const doctor = useAnswer('GET /v1/buckets/{bucket}/doctor', { params: { bucket: name } });
  const { value, problem, atMs } = doctor;
  // the check's result is stored, and the status and the plan follow from it
  useEffect(onChanged, [atMs]);
  if (value === undefined && problem === undefined) return <Busy>Reading AWS…</Busy>;
  // it needs nothing, and nothing about it can be changed
  const isEmbedded = problem?.code === EMBEDDED;
  function changed(): void {
    doctor.reload();
    onChanged();
  }
  return (
    <>
      {isEmbedded ? (
        <p class="quiet">The embedded storage sends this bucket’s events itself. There is nothing to connect.</p>
      ) : (
        <Doctor of={doctor} />
      )}
      {value?.findings.some(({ code }) => code === 'connect.paused') === true && <Resume bucket={name} onDone={changed} />}
      <Details of={factsOf(bucket)} />
      {!isEmbedded && <SettingsSection bucket={bucket} choices={choices} onSaved={changed} />}
      <DisconnectSection bucket={name} />
    </>
  );
}

function Doctor({ of }: { readonly of: Loaded<Diagnosis> }) {
  return (
    <section aria-labelledby="findings-heading">
      <h2 id="findings-heading">Events</h2>
      <Shown loaded={of} isLive>
        {({ findings }) => (
          <>
            <p>
              {findings.length === 0 ? 'No problems' : countText(findings.length, 'finding')}{' '}
              <button type="button" class="outline small" disabled={of.isLoading} onClick={of.reload}>
                Check again
              </button>
            </p>
            <Findings findings={findings} />
          </>
        )}
      </Shown>
    </section>
  );
}

/** Makes a paused notification again. */
function Resume({ bucket, onDone }: { readonly bucket: string; readonly onDone: () => void }) {
  const { follow, waiting } = useApply();
  async function resume(): Promise<void> {
    await follow(() => call('PATCH /v1/buckets/{bucket}/notification', { params: { bucket }, body: { paused: false } }));
    announce('The notification is restored. A re-index follows.');
    onDone();
  }
  return (
    <>
      {waiting}
      <Form onSubmit={resume} submit="Resume notification" />
    </>
  );
}

/** What the form below doesn't show. */
function factsOf(bucket: Bucket): readonly Detail[] {
  return [
    ['Region', bucket.region],
    ['Account', bucket.account],
    ['Versioning', plainText(bucket.versioning.status)],
    ['Last event', <Time at={bucket.last_event_at} />],
    ['Last full comparison', <Time at={bucket.last_compared_at} />],
    ['Connected', <Time at={bucket.created_at} />],
    ['Connected by', <Text>{bucket.created_by}</Text>],
  ];
}
