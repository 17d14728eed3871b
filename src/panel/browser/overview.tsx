/** The page to keep open: known differences, what needs a person, what Tally is working on, and the last day. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId } from 'preact/hooks';
import type { ShownBucket } from '../../registry/contract/bucket.ts';
import { countText } from '../../base/texts.ts';
import type { AnswerTo } from './api.ts';
import { after, BucketTable, Jobs, useDay } from './at-work.tsx';
import { bucketColumn, byUrgency, lookOf, Status, type StatusLook, Told, useBuckets } from './bucket-act.tsx';
import { EventCharts } from './event-chart.tsx';
import { standingOf, type Day } from './day.ts';
import { useAnswer } from './load.ts';
import { AddLink, Advice, type Column, Link, Shown, Table, Text, Time } from './parts.tsx';
import type { Choices } from './place.ts';
import { may } from './session.ts';
import { plainText } from './words.ts';

type Buckets = AnswerTo<'GET /v1/buckets'>;

/** The list of buckets shows more. */
const SHOWN_MAX = 12;

export function OverviewPage({ choices }: { readonly choices: Choices }) {
  const loaded = useBuckets();
  const today = useDay();
  const { value: day } = today;
  if ('wall' in choices) return <Shown loaded={loaded}>{(buckets) => <Wall of={buckets} day={day} />}</Shown>;
  return (
    <>
      <div class="heading">
        <h1>Overview</h1>
        <Link page="overview" choices={{ wall: '1' }}>
          As a wall
        </Link>
      </div>
      <Shown loaded={after(today, loaded)} isLive>
        {(buckets) => (
          <>
            <Verdict of={buckets} />
            <Standing of={buckets} day={day} />
          </>
        )}
      </Shown>
      {may('GET /v1/events') && <EventCharts />}
      <Itself />
    </>
  );
}

/** The worst state of all, in a few words. */
function verdictOf(items: Buckets['items']): readonly [look: StatusLook, text: string] {
  const differing = items.reduce((sum, { status }) => sum + (status.differing ?? 0), 0);
  const doubtful = items.filter(({ status }) => status.state !== 'ok').length;
  if (doubtful === 0) return ['good', 'No known difference'];
  const look = items.some((each) => lookOf(each) === 'bad') ? 'bad' : 'notable';
  return [
    look,
    differing === 0
      ? `${countText(doubtful, 'bucket')} may differ`
      : `${countText(differing, 'object')} ${differing === 1 ? 'differs' : 'differ'}`,
  ];
}

function Verdict({ of: { items, next } }: { readonly of: Buckets }) {
  if (items.length === 0) return <Link page="add">No bucket is connected: add one</Link>;
  const [look, text] = verdictOf(items);
  const good = items.filter(({ status }) => status.state === 'ok').length;
  return (
    <p class={`verdict ${look}`}>
      <strong class={`dot ${look}`}>{text}</strong>
      <span>
        {countText(good)} of {countText(items.length, 'bucket')} {good === 1 || items.length === 1 ? 'agrees' : 'agree'} with S3
        {next !== undefined && '; not all buckets are counted here'}
      </span>
    </p>
  );
}

/** A row for every bucket that isn't green: those that wait for a person, and those that Tally repairs by itself. */
function Standing({ of: buckets, day }: { readonly of: Buckets; readonly day: Day | undefined }) {
  const { you, tally, jobs } = standingOf(buckets.items, day);
  const others = othersOf(buckets, day);
  return (
    <>
      {you.length + others.length > 0 && <Needs heading="Needs you" label="What waits for you" buckets={you} others={others} />}
      {tally.length + jobs.length > 0 && (
        <Needs heading="Tally is working on it" label="What Tally does next" buckets={tally}>
          <Jobs label="Jobs" jobs={jobs.slice(0, SHOWN_MAX)} />
        </Needs>
      )}
    </>
  );
}

/** Something to do, about a bucket or about dead letters. */
interface Need {
  readonly bucket?: string;
  /** What happened, and what can be done about it. */
  readonly what: ComponentChildren;
  readonly since?: string | undefined;
}

const needColumns: readonly Column<Need>[] = [
  ['Bucket', ({ bucket }) => (bucket === undefined ? 'Dead letters' : bucketColumn[1]({ bucket })), 'row'],
  ['What happened', ({ what }) => what],
  ['Since', ({ since }) => since !== undefined && <Time at={since} />],
];

interface NeedsProps {
  readonly heading: string;
  readonly label: string;
  readonly buckets: readonly ShownBucket[];
  readonly others?: readonly Need[];
  readonly children?: ComponentChildren;
}

/** Buckets, worst first, then everything else, each with what happened, since when, and what can be done about it. */
function Needs({ heading, label, buckets, others = [], children }: NeedsProps) {
  const id = useId();
  const first = buckets.toSorted(byUrgency).slice(0, SHOWN_MAX);
  const needs: readonly Need[] = [
    ...first.map((each) => ({
      bucket: each.bucket,
      what: <Status of={each} offersReindex={each.status.state !== 'waiting'} />,
      since: each.status.since,
    })),
    ...others,
  ];
  return (
    <section class="needs" aria-labelledby={id}>
      <h2 id={id}>{heading}</h2>
      {children}
      <Table label={label} columns={needColumns} rows={needs} keyOf={(need) => needs.indexOf(need)} empty="" />
      {buckets.length > SHOWN_MAX && (
        <p>
          <Link page="buckets">{countText(buckets.length - SHOWN_MAX, 'more bucket')}</Link>
        </p>
      )}
    </section>
  );
}

/** What waits for a person, apart from connected buckets. */
function othersOf({ unconnected, activity }: Buckets, day: Day | undefined): readonly Need[] {
  const letters = activity?.dead_letters ?? 0;
  const act = <Link page="letters">Show the letters</Link>;
  const what = <Told look="bad" text={`Tally could not process ${countText(letters, 'message')}`} children={act} />;
  return [
    ...(letters === 0 ? [] : [{ what }]),
    ...(day?.jobs ?? [])
      .filter(({ state }) => state === 'paused')
      .map(({ id, bucket, created_at: since }) => ({
        bucket,
        since,
        what: (
          <Told look="notable" text="A job is paused">
            <Link page="job" choices={{ id }}>
              Show the job
            </Link>
          </Told>
        ),
      })),
    ...unconnected.slice(0, SHOWN_MAX).map(({ bucket, count, first_seen_at: since }) => ({
      bucket,
      since,
      what: (
        <Told look="notable" text={`It is not connected, but ${countText(count, 'event')} arrived`}>
          <AddLink bucket={bucket} />
        </Told>
      ),
    })),
  ];
}

const REFRESH_MS = 5_000;

type Check = AnswerTo<'GET /readyz'>['checks'][string];

const checkColumns: readonly Column<readonly [name: string, check: Check]>[] = [
  ['Check', ([name]) => plainText(name), 'row'],
  ['Status', ([, { status }]) => <span class={status === 'ok' ? 'state' : 'state bad'}>{status}</span>],
  ['What happened', ([, { detail }]) => detail !== undefined && <Text>{detail}</Text>],
  ['What to do', ([, { advice }]) => advice !== undefined && <Advice>{advice}</Advice>],
];

/** Whether this process can do its work: its own checks, each with what to do. */
function Itself() {
  const { value } = useAnswer('GET /readyz', {}, { everyMs: REFRESH_MS, isWanted: may('GET /readyz') });
  if (value === undefined) return null;
  const waiting = Object.entries(value.roles).flatMap(([role, { ready }]) => (ready ? [] : [role]));
  return (
    <details class="itself">
      <summary>
        Tally itself: <span class={value.ready ? 'state' : 'state bad'}>{value.ready ? 'ready' : `not ready (${waiting.join(', ')})`}</span>
      </summary>
      <Table label="Checks" columns={checkColumns} rows={Object.entries(value.checks)} keyOf={([name]) => name} />
    </details>
  );
}

/** The tab's icon: tally strokes on the colour of the worst state. */
const TAB_COLOURS = { good: '146c2e', notable: '8a4b00', bad: 'b3201c', usual: '2a55d5' } as const;

function colourTab(look: keyof typeof TAB_COLOURS): void {
  const icon = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
  if (icon !== null) icon.href = icon.href.replace(/fill='%23[0-9a-f]{6}'/, `fill='%23${TAB_COLOURS[look]}'`);
}

/** All buckets, for a wall screen. The tab's icon shows the worst state. */
function Wall({ of: { items, unconnected }, day }: { readonly of: Buckets; readonly day: Day | undefined }) {
  const [look, text] = verdictOf(items);
  useEffect(() => {
    // the frame sets the page's title at the same moment
    const timer = setTimeout(() => {
      document.title = `${look === 'good' ? '' : '● '}${text} · Tally`;
      colourTab(look);
    });
    return () => clearTimeout(timer);
  }, [look, text]);
  useEffect(() => () => colourTab('usual'), []);
  return (
    <div class="wall">
      <div class="heading">
        <h1 class={`state ${look}`}>{text}</h1>
        <Link page="overview">Overview</Link>
      </div>
      <BucketTable of={items} day={day} />
      {unconnected.length > 0 && (
        <p class="state dot notable">
          Not connected: <Text>{unconnected.map(({ bucket }) => bucket).join(', ')}</Text>
        </p>
      )}
    </div>
  );
}
