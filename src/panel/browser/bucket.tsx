/** One bucket: how it stands, what it uses, what is going on, and how it is connected. */
import { useState } from 'preact/hooks';
import type { Bucket, ShownBucket } from '../../api/buckets.ts';
import { call } from './api.ts';
import { Gaps, isWhole, Status } from './bucket-act.tsx';
import { BucketActivity, RunningJob } from './bucket-activity.tsx';
import { SettingsSection } from './bucket-settings.tsx';
import { useLoaded } from './load.ts';
import { Details, type Detail, Link, Shown, Text, Time } from './parts.tsx';
import type { Choices } from './place.ts';
import { ReindexDialog } from './reindex-dialog.tsx';
import { RemoveDialog } from './remove-dialog.tsx';
import { searchOf } from './search-place.ts';
import { SeriesCharts } from './series-charts.tsx';
import { may } from './session.ts';
import { BucketUsage } from './usage.tsx';
import { Way } from './way.tsx';
import { numberText, plainText } from './words.ts';

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
            <TabContent tab={tab} bucket={bucket} choices={choices} onChanged={loaded.reload} />
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
  readonly choices: Choices;
  readonly onChanged: () => void;
}

function TabContent({ tab, bucket, choices, onChanged }: TabProps) {
  const name = bucket.bucket;
  switch (tab) {
    case 'overview':
      return <BucketOverview bucket={bucket} choices={choices} />;
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

function BucketOverview({ bucket, choices }: Pick<TabProps, 'bucket' | 'choices'>) {
  const name = bucket.bucket;
  return (
    <>
      <p class="sentence">
        <Status of={bucket} />
      </p>
      {may('GET /v1/jobs') && <RunningJob bucket={name} />}
      {isWhole(bucket) && <Way of={bucket} />}
      {isWhole(bucket) && <SeriesCharts page="bucket" choices={choices} bucket={name} />}
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
      lifecycle && (lifecycle.rules === 'unknown' ? 'may not be read' : `${numberText(lifecycle.expiring)} expire objects`),
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
