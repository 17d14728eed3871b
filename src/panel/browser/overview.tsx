/** The page that stays open: how much is known to differ, what needs a person, what Tally is at, and the last day. */
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { useBuckets } from './all-buckets.ts';
import { readiness, type AnswerTo } from './api.ts';
import { JobBar, Next, Strip, StripLegend, useDay } from './at-work.tsx';
import { byUrgency, lookOf, Sentence, Status } from './bucket-act.tsx';
import { EventCharts } from './event-chart.tsx';
import { hasEnded, jobTitle, type Day } from './day.ts';
import { useLoaded } from './load.ts';
import { Advice, type Column, Link, Shown, Table, Text, Time } from './parts.tsx';
import type { Choices } from './place.ts';
import { may } from './session.ts';
import { countText, numberText, plainText } from './words.ts';

type Buckets = AnswerTo<'GET /v1/buckets'>;

/** More of them are read in the list of buckets. */
const SHOWN_MAX = 12;

export function OverviewPage({ choices }: { readonly choices: Choices }) {
  const loaded = useBuckets();
  const { value: day } = useDay();
  if ('wall' in choices) return <Shown loaded={loaded}>{(buckets) => <Wall of={buckets} day={day} />}</Shown>;
  return (
    <>
      <div class="heading">
        <h1>Overview</h1>
        <Link page="overview" choices={{ wall: '1' }}>
          As a wall
        </Link>
      </div>
      <Shown loaded={loaded} isLive>
        {(buckets) => (
          <>
            <Verdict of={buckets} />
            <You of={buckets} day={day} />
            <AtIt of={day} without={new Set(buckets.items.filter(({ status }) => status.act !== undefined).map(({ bucket }) => bucket))} />
          </>
        )}
      </Shown>
      {may('GET /v1/events') && <EventCharts />}
      <Itself />
    </>
  );
}

/** The worst of all, and what it is in a few words. */
function verdictOf(items: Buckets['items']): readonly [look: 'good' | 'notable' | 'bad', text: string] {
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
  if (items.length === 0) return <p class="sentence">No bucket is connected.</p>;
  const [look, text] = verdictOf(items);
  const good = items.filter(({ status }) => status.state === 'ok').length;
  return (
    <p class={`verdict ${look}`}>
      <strong class={`dot ${look}`}>{text}</strong>
      <span>
        {numberText(good)} of {countText(items.length, 'bucket')} {good === 1 ? 'agrees' : 'agree'} with S3
        {next !== undefined && '; there are more buckets than are counted here'}
      </span>
    </p>
  );
}

interface OfDayProps {
  readonly of: Buckets;
  readonly day: Day | undefined;
}

/** What waits for a person, each with its act and since when. */
function You({ of: { items, unconnected, activity }, day }: OfDayProps) {
  const troubled = items.filter(({ status }) => status.act !== undefined).toSorted(byUrgency);
  const paused = (day?.jobs ?? []).filter(({ state }) => state === 'paused');
  const letters = activity?.dead_letters ?? 0;
  if (troubled.length + paused.length + unconnected.length + letters === 0) return null;
  return (
    <section aria-labelledby="you-heading">
      <h2 id="you-heading">You</h2>
      <ul class="needs">
        {troubled.slice(0, SHOWN_MAX).map((each) => (
          <Row key={each.bucket} bucket={each.bucket} since={each.status.since}>
            <Status of={each} />
          </Row>
        ))}
        {letters > 0 && (
          <Row look="bad" text={`Tally could not handle ${countText(letters, 'message')}`}>
            <Link page="letters" isRow>
              Show the dead letters
            </Link>
          </Row>
        )}
        {paused.map(({ id, bucket, created_at: since }) => (
          <Row key={id} bucket={bucket} since={since} look="notable" text="A job is paused">
            <Link page="job" choices={{ id }}>
              Show the job
            </Link>
          </Row>
        ))}
        {unconnected.slice(0, SHOWN_MAX).map(({ bucket, count, first_seen_at: since }) => (
          <Row
            key={`unconnected ${bucket}`}
            bucket={bucket}
            since={since}
            look="notable"
            text={`It is not connected, and ${countText(count, 'event')} arrived`}
          >
            {may('POST /v1/buckets') && (
              <Link page="add" choices={{ bucket }}>
                Add it
              </Link>
            )}
          </Row>
        ))}
      </ul>
      {troubled.length > SHOWN_MAX && (
        <p>
          <Link page="buckets">{countText(troubled.length - SHOWN_MAX, 'more bucket')}</Link>
        </p>
      )}
    </section>
  );
}

interface RowProps {
  readonly bucket?: string;
  readonly since?: string | undefined;
  readonly look?: 'notable' | 'bad';
  readonly text?: string;
  /** What is done about it. */
  readonly children: ComponentChildren;
}

/** One line: of which bucket, what happened, what is done about it, and since when. */
function Row({ bucket, since, look, text, children }: RowProps) {
  return (
    <li>
      {bucket === undefined ? (
        <span />
      ) : (
        <Link page="bucket" choices={{ bucket }} isRow>
          <Text>{bucket}</Text>
        </Link>
      )}
      {text === undefined ? (
        children
      ) : (
        <span class="status">
          <span class={`state dot ${look}`}>
            <Sentence>{text}</Sentence>
          </span>
          {children}
        </span>
      )}
      <small class="quiet">{since !== undefined && <Time at={since} />}</small>
    </li>
  );
}

/** What Tally does by itself, of the buckets `without` those that wait for a person: jobs with how far they are, and gaps with what happens next and when. */
function AtIt({ of: day, without }: { readonly of: Day | undefined; readonly without: ReadonlySet<string> }) {
  if (day === undefined) return null;
  const jobs = day.jobs.filter((job) => !hasEnded(job) && job.state !== 'paused');
  const gaps = day.gaps.filter(
    ({ bucket, state, job_id: job, due_at: due }) => state === 'open' && job === undefined && due !== undefined && !without.has(bucket),
  );
  if (jobs.length + gaps.length === 0) return null;
  return (
    <section aria-labelledby="at-it-heading">
      <h2 id="at-it-heading">Tally is at it</h2>
      <ul class="needs">
        {jobs.slice(0, SHOWN_MAX).map((job) => (
          <Row key={job.id} bucket={job.bucket} since={job.created_at}>
            <span class="status">
              <Link page="job" choices={{ id: job.id }}>
                {jobTitle(job)} <Text>{job.prefix === '' ? 'all keys' : job.prefix}</Text>
              </Link>
              <JobBar job={job} />
            </span>
          </Row>
        ))}
        {gaps.slice(0, SHOWN_MAX).map((gap) => (
          <Row key={gap.id} bucket={gap.bucket} since={gap.since} look="notable" text={`Changes may be missing: ${gap.why}`}>
            <Next of={gap} />
          </Row>
        ))}
      </ul>
    </section>
  );
}

const REFRESH_MS = 5_000;

type Check = Awaited<ReturnType<typeof readiness>>['checks'][string];

const checkColumns: readonly Column<readonly [name: string, check: Check]>[] = [
  ['Check', ([name]) => plainText(name), 'row'],
  ['Status', ([, { status }]) => <span class={status === 'ok' ? 'state' : 'state bad'}>{status}</span>],
  ['What happened', ([, { detail }]) => detail !== undefined && <Text>{detail}</Text>],
  ['What to do', ([, { advice }]) => advice !== undefined && <Advice>{advice}</Advice>],
];

/** Whether this process can do its work: its own checks, each with what to do. */
function Itself() {
  const { value } = useLoaded('health', readiness, { everyMs: REFRESH_MS, isWanted: may('GET /readyz') });
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

/** The tally strokes of the tab, on the colour of the worst. */
const TAB_COLOURS = { good: '146c2e', notable: '8a4b00', bad: 'b3201c', usual: '2a55d5' } as const;

function colourTab(look: keyof typeof TAB_COLOURS): void {
  const icon = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
  if (icon !== null) icon.href = icon.href.replace(/fill='%23[0-9a-f]{6}'/, `fill='%23${TAB_COLOURS[look]}'`);
}

/** All buckets on a screen that is seen from far: a row each, the worst first, with words only where something is wrong. */
function Wall({ of: { items }, day }: OfDayProps) {
  const [look, text] = verdictOf(items);
  useEffect(() => {
    // the frame has named the page in the same moment
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
        <StripLegend />
        <Link page="overview">Overview</Link>
      </div>
      <ul>
        {items.toSorted(byUrgency).map((each) => (
          <li key={each.bucket} class={lookOf(each)}>
            <Link page="bucket" choices={{ bucket: each.bucket }} isRow>
              <Text>{each.bucket}</Text>
            </Link>
            <Strip bucket={each} day={day} />
            {each.status.state === 'ok' ? (
              <span class="quiet">
                compared <Time at={each.last_compared_at} />
              </span>
            ) : (
              <Sentence>{each.status.sentence}</Sentence>
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}
