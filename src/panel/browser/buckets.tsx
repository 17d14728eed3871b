/** All buckets. */
import { useRef, useState } from 'preact/hooks';
import type { ShownBucket, UnconnectedBucket } from '../../api/buckets.ts';
import { printable } from '../../domain/printable.ts';
import { AddBucket } from './add-bucket.tsx';
import { call, type AnswerTo } from './api.ts';
import { Gaps, Status } from './bucket-act.tsx';
import { useLoaded } from './load.ts';
import { type Column, Link, More, Shown, Table, Text, Time } from './parts.tsx';
import { may } from './session.ts';
import { numberText } from './words.ts';

/** Buckets change slowly; jobs and gaps have their own pages. */
const REFRESH_MS = 15_000;
/** With more pages shown, reading all of them again and again would cost more than it tells. */
const REFRESHED_PAGES = 3;

/** Reads the first pages of the list, each of 100 buckets. */
async function readPages(count: number, signal: AbortSignal): Promise<AnswerTo<'GET /v1/buckets'>> {
  const first = await call('GET /v1/buckets', { query: {} }, signal);
  const items = [...first.items];
  let { next } = first;
  for (let page = 1; page < count && next !== undefined; page += 1) {
    const more = await call('GET /v1/buckets', { query: { cursor: next } }, signal);
    items.push(...more.items);
    next = more.next;
  }
  return { ...first, items, next };
}

/** `add`: the name of a bucket that is to be added. */
export function BucketsPage({ add }: { readonly add: string | undefined }) {
  const pages = useRef(1);
  const everyMs = pages.current > REFRESHED_PAGES ? undefined : REFRESH_MS;
  const loaded = useLoaded('buckets', (signal) => readPages(pages.current, signal), { everyMs });
  const more = () => {
    pages.current += 1;
    loaded.reload();
  };
  const [adding, setAdding] = useState(add);
  const mayAdd = may('POST /v1/buckets');
  return (
    <>
      <div class="heading">
        <h1>Buckets</h1>
        {mayAdd && (
          <button type="button" onClick={() => setAdding('')}>
            Add bucket
          </button>
        )}
      </div>
      <Shown loaded={loaded} isLive>
        {({ items, unconnected, next }) => (
          <>
            {items.length === 0 ? (
              <NoBuckets mayAdd={mayAdd} />
            ) : (
              <Table label="Connected buckets" columns={columns} rows={items} keyOf={({ bucket }) => bucket} />
            )}
            {next !== undefined && <More key={items.length} more={more} />}
            <Unconnected buckets={unconnected} add={mayAdd ? setAdding : undefined} />
          </>
        )}
      </Shown>
      {adding !== undefined && <AddBucket name={adding} onClose={() => setAdding(undefined)} />}
    </>
  );
}

function NoBuckets({ mayAdd }: { readonly mayAdd: boolean }) {
  return (
    <p class="empty">
      {mayAdd ? 'No bucket is connected.' : 'There is no bucket of which you may read anything.'}{' '}
      {mayAdd ? 'Add one: its objects are found by search then.' : 'An administrator connects buckets.'}
    </p>
  );
}

const columns: readonly Column<ShownBucket>[] = [
  [
    'Bucket',
    ({ bucket }) => (
      <Link page="bucket" choices={{ bucket }} isRow>
        <Text>{bucket}</Text>
      </Link>
    ),
    'row',
  ],
  ['Status', (bucket) => <Status of={bucket} />],
  ['Source', ({ source }) => source, 'less'],
  ['Open gaps', (bucket) => <Gaps of={bucket} />],
  ['Last event', ({ last_event_at: at }) => <Time at={at} />],
  ['Last whole compare', ({ last_compared_at: at }) => <Time at={at} />, 'less'],
];

interface UnconnectedProps {
  readonly buckets: readonly UnconnectedBucket[];
  readonly add: ((name: string) => void) | undefined;
}

function Unconnected({ buckets, add }: UnconnectedProps) {
  if (buckets.length === 0) return null;
  const known: readonly Column<UnconnectedBucket>[] = [
    ['Bucket', ({ bucket }) => <Text>{bucket}</Text>, 'row'],
    ['Events', ({ count }) => numberText(count)],
    ['First', ({ first_seen_at: at }) => <Time at={at} />],
    ['Last', ({ last_seen_at: at }) => <Time at={at} />],
  ];
  const act: Column<UnconnectedBucket> = [
    'Actions',
    ({ bucket }) => (
      <button type="button" class="outline small" aria-label={`Add ${printable(bucket)}`} onClick={() => add?.(bucket)}>
        Add
      </button>
    ),
  ];
  return (
    <section>
      <h2>Not connected</h2>
      <p>Events of these buckets arrive, and are not indexed.</p>
      <Table
        label="Buckets that are not connected"
        columns={add === undefined ? known : [...known, act]}
        rows={buckets}
        keyOf={({ bucket }) => bucket}
      />
    </section>
  );
}
