/** One bucket: how it stands, what it uses, what is going on, and how it is connected. */
import { useState } from 'preact/hooks';
import type { Bucket, ShownBucket } from '../../api/bucket.ts';
import { call } from './api.ts';
import { Gaps, isWhole, Status, ToPage } from './bucket-act.tsx';
import { SettingsSection } from './bucket-settings.tsx';
import { useLoaded } from './load.ts';
import { Details, type Detail, Link, Shown, Text, Time, announce } from './parts.tsx';
import { type Choices, go, hrefOf } from './place.ts';
import { RemoveDialog } from './remove-dialog.tsx';
import { searchOf } from './search-place.ts';
import { may } from './session.ts';
import { BucketUsage } from './usage.tsx';
import { numberText, plainText } from './words.ts';
import { GapTable } from './gaps.tsx';
import { JobBar, hasEnded } from './job-state.tsx';
import { JobTable, useJobs } from './jobs.tsx';
import { Check, Field, FormDialog, useIsShown } from './form.tsx';

const REFRESH_MS = 15_000;

const tabs = ['overview', 'usage', 'activity', 'settings'] as const;
type Tab = (typeof tabs)[number];

const tabTexts: Readonly<Record<Tab, string>> = { overview: 'Overview', usage: 'Usage', activity: 'Activity', settings: 'Settings' };

/** What a person may see of a bucket besides its overview. */
function tabsFor(): readonly Tab[] {
  const isPermitted: Readonly<Record<Tab, boolean>> = {
    overview: true,
    usage: may('GET /v1/usage'),
    activity: may('GET /v1/jobs'),
    settings: may('POST /v1/buckets'),
  };
  return tabs.filter((tab) => isPermitted[tab]);
}

export function BucketPage({ choices }: { readonly choices: Choices }) {
  const name = choices['bucket'] ?? '';
  const tab = tabsFor().find((each) => each === choices['tab']) ?? 'overview';
  const [isReindexing, setReindexing] = useState(false);
  const read = (signal: AbortSignal) => call('GET /v1/buckets/{bucket}', { params: { bucket: name } }, signal);
  const loaded = useLoaded(`bucket ${name}`, read, { everyMs: REFRESH_MS });
  return (
    <>
      <div class="heading">
        <h1>
          Bucket <Text>{name}</Text>
        </h1>
        <div class="links">
          <Link page="search" choices={{ bucket: name }}>
            Search in this bucket
          </Link>
          {loaded.value !== undefined && may('POST /v1/buckets/{bucket}/reindex') && (
            <button type="button" onClick={() => setReindexing(true)}>
              Re-Index and Repair
            </button>
          )}
        </div>
      </div>
      <nav aria-label="Of this bucket">
        <ul class="tabs">
          {tabsFor().map((each) => (
            <li key={each}>
              <Link page="bucket" choices={{ bucket: name, tab: each === 'overview' ? '' : each }} isCurrent={each === tab}>
                {tabTexts[each]}
              </Link>
            </li>
          ))}
        </ul>
      </nav>
      <Shown loaded={loaded} isLive>
        {(bucket) => (
          <>
            <TabContent tab={tab} bucket={bucket} onChanged={loaded.reload} />
            {isWhole(bucket) && isReindexing && <ReindexDialog bucket={bucket} onClose={() => setReindexing(false)} />}
          </>
        )}
      </Shown>
    </>
  );
}

interface TabProps {
  readonly tab: Tab;
  readonly bucket: ShownBucket;
  readonly onChanged: () => void;
}

function TabContent({ tab, bucket, onChanged }: TabProps) {
  const name = bucket.bucket;
  switch (tab) {
    case 'overview':
      return <BucketOverview bucket={bucket} />;
    case 'usage':
      return <BucketUsage search={{ ...searchOf({ query: `bucket:${name}` }), view: 'folders' }} bucket={name} />;
    case 'activity':
      return <BucketActivity name={name} />;
    case 'settings':
      return (
        <>
          {isWhole(bucket) && <SettingsSection key={name} bucket={bucket} onSaved={onChanged} />}
          {may('DELETE /v1/buckets/{bucket}') && <RemoveSection name={name} />}
        </>
      );
  }
}

function BucketOverview({ bucket }: Pick<TabProps, 'bucket'>) {
  const name = bucket.bucket;
  return (
    <>
      <p class="sentence">
        <Status of={bucket} />
      </p>
      {may('GET /v1/jobs') && <RunningJob bucket={name} />}
      {isWhole(bucket) && <Way of={bucket} />}
      <section aria-label="Details">
        <h2>Details</h2>
        <Details
          of={[...(isWhole(bucket) ? wholeDetails(bucket) : timesOf(bucket)), ['Open gaps', bucket.gaps > 0 && <Gaps of={bucket} />]]}
        />
      </section>
    </>
  );
}

function RemoveSection({ name }: { readonly name: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <section>
      <h2>Disconnect</h2>
      <p>
        What Tally made in AWS and the documents in the index are deleted, unless they are to stay. The bucket and its objects are not
        touched.
      </p>
      <button type="button" class="danger outline" onClick={() => setOpen(true)}>
        Disconnect…
      </button>
      {isOpen && <RemoveDialog name={name} onClose={() => setOpen(false)} />}
    </section>
  );
}

/** What administrators are shown of a bucket. */
function wholeDetails(bucket: Bucket): readonly Detail[] {
  const { lifecycle } = bucket;
  return [
    ['Source', bucket.source],
    ['Topic identifier', bucket.topic_arn !== undefined && <Text>{bucket.topic_arn}</Text>],
    ['Enrichment', bucket.enrich],
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

/** A person who reads a part of the bucket is not shown when the rest of it changed. */
function timesOf({ last_event_at: event, last_compared_at: compared }: ShownBucket): readonly Detail[] {
  return [
    ['Last event', event !== undefined && <Time at={event} />],
    ['Last whole compare', compared !== undefined && <Time at={compared} />],
  ];
}

/** What is going on with one bucket: the job that runs, its jobs with what they found, and its gaps. */

/** More of them are on the pages of all buckets. */
const SHOWN_MAX = 50;
const EVERY_MS = 10_000;

/** The jobs of the bucket that have not ended. */
function RunningJob({ bucket }: { readonly bucket: string }) {
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

function BucketActivity({ name }: { readonly name: string }) {
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

/** The way of the events of a bucket as a drawing: each part with what the watch found wrong with it. */

type Part = 'S3' | 'Notification' | 'Trail' | 'Rule' | 'Topic' | 'Queue' | 'Worker' | 'Index';

const ways: Readonly<Record<Bucket['source'], readonly Part[]>> = {
  notification: ['S3', 'Notification', 'Topic', 'Queue', 'Worker', 'Index'],
  topic: ['S3', 'Notification', 'Topic', 'Queue', 'Worker', 'Index'],
  eventbridge: ['S3', 'Rule', 'Queue', 'Worker', 'Index'],
  routed: ['S3', 'Trail', 'Rule', 'Topic', 'Queue', 'Worker', 'Index'],
};

/** The part that a finding is about, by the beginning of its code. */
const codes: readonly (readonly [begin: string, part: Part])[] = [
  ['connect.trail', 'Trail'],
  ['connect.rule', 'Rule'],
  ['connect.target', 'Rule'],
  ['connect.eventbridge', 'Rule'],
  ['connect.topic', 'Topic'],
  ['connect.subscription', 'Topic'],
  ['connect.queue', 'Queue'],
  ['connect.no-queue', 'Queue'],
  ['connect.redrive', 'Queue'],
  ['connect.notification', 'Notification'],
  ['connect.overlap', 'Notification'],
  ['connect.destination', 'Notification'],
  ['connect.paused', 'Notification'],
];

function partOf(code: string, way: readonly Part[]): Part {
  const part = codes.find(([begin]) => code.startsWith(begin))?.[1];
  return part !== undefined && way.includes(part) ? part : 'S3';
}

interface Fact {
  readonly part: Part;
  readonly text: string;
}

function factsOf({ wiring, status }: Bucket, way: readonly Part[]): readonly Fact[] {
  const found = (wiring?.findings ?? []).map(({ code, what }) => ({ part: partOf(code, way), text: what }));
  const doubts: Partial<Record<Bucket['status']['state'], Part>> = {
    waiting: 'Worker',
    deletions_held: 'Index',
    differs: 'Index',
    gap_open: 'Index',
    never_compared: 'Index',
    overdue: 'Index',
    events_lost: 'S3',
    events_unproven: 'S3',
  };
  const part = doubts[status.state];
  // what the watch found says it already
  return part === undefined || found.some((each) => each.part === part) || (part === 'S3' && found.length > 0)
    ? found
    : [...found, { part, text: status.sentence }];
}

function Way({ of: bucket }: { readonly of: Bucket }) {
  const way = ways[bucket.source];
  const found = factsOf(bucket, way);
  const { wiring } = bucket;
  return (
    <section aria-labelledby="way-heading">
      <h2 id="way-heading">Event path</h2>
      <ol class="way">
        {way.map((part) => {
          const wrong = found.filter((each) => each.part === part);
          return (
            <li key={part} class={wrong.length > 0 ? 'wrong' : undefined}>
              <strong class={`state dot ${wrong.length > 0 ? 'bad' : 'good'}`}>{part}</strong>
              {wrong.map(({ text }) => (
                <small key={text}>
                  <Text>{text}</Text>
                </small>
              ))}
              {part === 'S3' && wrong.length === 0 && (
                <small class="quiet">
                  {bucket.last_event_at === undefined ? (
                    'no event yet'
                  ) : (
                    <>
                      last event <Time at={bucket.last_event_at} />
                    </>
                  )}
                </small>
              )}
            </li>
          );
        })}
      </ol>
      <p class="links">
        <small class="quiet">
          {wiring === undefined ? (
            'The hourly watch has not checked it yet.'
          ) : (
            <>
              As the hourly watch saw it <Time at={wiring.checked_at} />
            </>
          )}
        </small>
        {/* the status above may lead there already */}
        {bucket.status.act?.kind !== 'doctor' && <ToPage page="doctor" bucket={bucket.bucket} />}
      </p>
    </section>
  );
}

/** Why Repair cannot be chosen; undefined: it can. */
function repairRefusal(source: Bucket['source']): string | undefined {
  if (source === 'notification') return undefined;
  return `Not possible: the events of this bucket come by ${source}, and repair would create a storage event notification, which would clash with that.`;
}

/** The dialog is created at each opening, so that Repair is never checked from before. */
function ReindexDialog({ bucket: { bucket, source }, onClose }: { readonly bucket: Bucket; readonly onClose: () => void }) {
  const [prefix, setPrefix] = useState('');
  const [isRepair, setRepair] = useState(false);
  const [isReport, setReport] = useState(false);
  const [isFill, setFill] = useState(false);
  const refusal = repairRefusal(source);
  // the source may have changed since the box was checked
  const isRepaired = isRepair && refusal === undefined;
  const isShown = useIsShown();
  async function start(): Promise<void> {
    const job = await call('POST /v1/buckets/{bucket}/reindex', {
      params: { bucket },
      body: { prefix, mode: isReport ? 'report' : 'apply', repair: isRepaired, fill: isFill },
    });
    if (isShown()) go(hrefOf('job', { id: job.id }));
    else announce(`The re-index of ${bucket} has begun.`);
  }
  return (
    <FormDialog
      title={`Re-index ${bucket}`}
      onClose={onClose}
      submit={isReport ? 'Start the report' : 'Start the re-index'}
      onSubmit={start}
    >
      <p>Every object of the bucket is compared with the index, and what differs is corrected. Searches work meanwhile.</p>
      <Check
        label="Repair"
        isChecked={isRepaired}
        onChange={setRepair}
        isDisabled={refusal !== undefined}
        hint={
          refusal ??
          'Creates the storage event notification of the bucket again first. Leave it unchecked if another way delivers its events.'
        }
      />
      <Field label="Prefix" value={prefix} onChange={setPrefix} hint="Only keys that begin with this. Empty: all keys." />
      <Check label="Only report differences" isChecked={isReport} onChange={setReport} hint="Nothing is written." />
      <Check
        label="Fill in missing fields"
        isChecked={isFill}
        onChange={setFill}
        hint="Writes documents too that lack a field which a listing gives, or the enrichment."
      />
    </FormDialog>
  );
}
