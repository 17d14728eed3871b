/** The page that stays open: whether the index is right, in one sentence, what needs a person, and the last day. */
import type { ShownBucket } from '../../api/bucket.ts';
import { useBuckets } from './all-buckets.ts';
import type { AnswerTo } from './api.ts';
import { Status } from './bucket-act.tsx';
import { EventCharts } from './event-chart.tsx';
import { Link, Shown, Text } from './parts.tsx';
import { may } from './session.ts';
import { countText, numberText } from './words.ts';

type Buckets = AnswerTo<'GET /v1/buckets'>;
type State = ShownBucket['status']['state'];

/** More of them are read in the list of buckets. */
const SHOWN_MAX = 12;

/** What a number of buckets does or is, for one and for several; the worst first. */
const phrases: readonly (readonly [state: State, one: string, several: string])[] = [
  ['events_lost', 'loses events', 'lose events'],
  ['paused', 'is paused', 'are paused'],
  ['waiting', 'waits', 'wait'],
  ['deletions_held', 'holds deletions back', 'hold deletions back'],
  ['differs', 'differs', 'differ'],
  ['events_unproven', 'has had no event yet', 'have had no event yet'],
  ['never_compared', 'was never compared', 'were never compared'],
  ['gap_open', 'has an open gap', 'have open gaps'],
  ['quiet', 'is quieter than usual', 'are quieter than usual'],
  ['overdue', 'was not compared for long', 'were not compared for long'],
  ['degraded', 'has a degraded connection', 'have degraded connections'],
  ['unchecked', 'could not be checked', 'could not be checked'],
];

const places = new Map<string, number>(phrases.map(([state], place) => [state, place]));

export function OverviewPage() {
  const loaded = useBuckets();
  return (
    <>
      <h1>Overview</h1>
      <Shown loaded={loaded} isLive>
        {(buckets) => (
          <>
            <Verdict of={buckets} />
            <NeedsYou of={buckets} />
          </>
        )}
      </Shown>
      {may('GET /v1/events') && <EventCharts />}
    </>
  );
}

function Verdict({ of: { items, next } }: { readonly of: Buckets }) {
  if (items.length === 0) return <p class="sentence">No bucket is connected.</p>;
  const good = items.filter(({ status }) => status.state === 'ok').length;
  const others = phrases.flatMap(([state, one, several]) => {
    const count = items.filter(({ status }) => status.state === state).length;
    return count === 0 ? [] : [`${numberText(count)} ${count === 1 ? one : several}`];
  });
  const isBad = items.some(({ status }) => status.severity === 'bad');
  const look = good === items.length ? 'good' : isBad ? 'bad' : 'notable';
  return (
    <p class={`verdict ${look}`}>
      <strong>
        <span class={`dot ${look}`} />
        {numberText(good)} of {countText(items.length, 'bucket')}: no known difference
      </strong>
      {others.length > 0 && `; ${others.join(', ')}`}
      {next !== undefined && '. There are more buckets than are counted here'}
    </p>
  );
}

function byUrgency({ status: a }: ShownBucket, { status: b }: ShownBucket): number {
  return (places.get(a.state) ?? phrases.length) - (places.get(b.state) ?? phrases.length);
}

function NeedsYou({ of: { items, unconnected, activity } }: { readonly of: Buckets }) {
  const troubled = items.filter(({ status }) => status.state !== 'ok').toSorted(byUrgency);
  const letters = activity?.dead_letters ?? 0;
  if (troubled.length === 0 && unconnected.length === 0 && letters === 0) return null;
  return (
    <section aria-labelledby="needs-heading">
      <h2 id="needs-heading">Needs attention</h2>
      <ul class="needs">
        {troubled.slice(0, SHOWN_MAX).map((each) => (
          <li key={each.bucket}>
            <Link page="bucket" choices={{ bucket: each.bucket }} isRow>
              <Text>{each.bucket}</Text>
            </Link>
            <Status of={each} />
          </li>
        ))}
        {letters > 0 && (
          <li>
            <Link page="letters" isRow>
              Dead letters
            </Link>
            <span class="status">
              <span class="state dot bad">{countText(letters, 'message')} could not be handled</span> <Link page="letters">Show them</Link>
            </span>
          </li>
        )}
        {unconnected.slice(0, SHOWN_MAX).map(({ bucket, count }) => (
          <li key={`unconnected ${bucket}`}>
            <span>
              <Text>{bucket}</Text>
            </span>
            <span class="status">
              <span class="state dot notable">{countText(count, 'event')} arrived, and it is not connected</span>{' '}
              {may('POST /v1/buckets') && (
                <Link page="buckets" choices={{ add: bucket }}>
                  Add it
                </Link>
              )}
            </span>
          </li>
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
