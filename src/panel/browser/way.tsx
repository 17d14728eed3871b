/** The way of the events of a bucket as a drawing: each part with what the watch found wrong with it. */
import type { Bucket } from '../../api/buckets.ts';
import { Link, Text, Time } from './parts.tsx';
import { may } from './session.ts';

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

export function Way({ of: bucket }: { readonly of: Bucket }) {
  const way = ways[bucket.source];
  const found = factsOf(bucket, way);
  const { wiring } = bucket;
  return (
    <section aria-labelledby="way-heading">
      <h2 id="way-heading">The way of its events</h2>
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
                  last event <Time at={bucket.last_event_at} />
                </small>
              )}
            </li>
          );
        })}
      </ol>
      <p class="links">
        <small class="quiet">
          {wiring === undefined ? (
            'The hourly watch has not looked at it yet.'
          ) : (
            <>
              As the hourly watch saw it <Time at={wiring.checked_at} />
            </>
          )}
        </small>
        {/* the status above may lead there already */}
        {bucket.status.act?.kind !== 'doctor' && may('GET /v1/buckets/{bucket}/doctor') && (
          <Link page="doctor" choices={{ bucket: bucket.bucket }}>
            Ask the doctor
          </Link>
        )}
      </p>
    </section>
  );
}
