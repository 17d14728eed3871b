/** All buckets. */
import { useRef, useState } from 'preact/hooks';
import type { ShownBucket, UnconnectedBucket } from '../../api/buckets.ts';
import { printable } from '../../domain/printable.ts';
import { AddBucket } from './add-bucket.tsx';
import { call, type AnswerTo } from './api.ts';
import { Gaps, Status } from './bucket-act.tsx';
import { useLoaded } from './load.ts';
import { Link, More, Shown, Table, Text, Time } from './parts.tsx';
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
            {items.length === 0 ? <NoBuckets mayAdd={mayAdd} /> : <BucketTable buckets={items} />}
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

function BucketTable({ buckets }: { readonly buckets: readonly ShownBucket[] }) {
  return (
    <Table label="Connected buckets" heads={['Bucket', 'Status', 'Source', 'Open gaps', 'Last event', 'Last whole compare']}>
      {buckets.map((each) => (
        <tr key={each.bucket}>
          <th scope="row">
            <Link page="bucket" choices={{ bucket: each.bucket }} isRow>
              <Text>{each.bucket}</Text>
            </Link>
          </th>
          <td>
            <Status of={each} />
          </td>
          <td class="less">{each.source}</td>
          <td>
            <Gaps of={each} />
          </td>
          <td>
            <Time at={each.last_event_at} />
          </td>
          <td class="less">
            <Time at={each.last_compared_at} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

interface UnconnectedProps {
  readonly buckets: readonly UnconnectedBucket[];
  readonly add: ((name: string) => void) | undefined;
}

function Unconnected({ buckets, add }: UnconnectedProps) {
  if (buckets.length === 0) return null;
  return (
    <section>
      <h2>Not connected</h2>
      <p>Events of these buckets arrive, and are not indexed.</p>
      <Table
        label="Buckets that are not connected"
        heads={['Bucket', 'Events', 'First', 'Last', ...(add === undefined ? [] : ['Actions'])]}
      >
        {buckets.map((each) => (
          <tr key={each.bucket}>
            <th scope="row">
              <Text>{each.bucket}</Text>
            </th>
            <td>{numberText(each.count)}</td>
            <td>
              <Time at={each.first_seen_at} />
            </td>
            <td>
              <Time at={each.last_seen_at} />
            </td>
            {add !== undefined && (
              <td>
                <button type="button" class="outline small" aria-label={`Add ${printable(each.bucket)}`} onClick={() => add(each.bucket)}>
                  Add
                </button>
              </td>
            )}
          </tr>
        ))}
      </Table>
    </section>
  );
}
