/** All buckets. */
import { useState } from 'preact/hooks';
import type { Bucket, UnconnectedBucket } from '../../api/buckets.ts';
import type { Gap } from '../../api/gaps.ts';
import { printable } from '../../domain/printable.ts';
import { AddBucket } from './add-bucket.tsx';
import { call } from './api.ts';
import { Wiring } from './connection.tsx';
import { useLoaded } from './load.ts';
import { Link, Shown, Table, Text, Time } from './parts.tsx';
import { may } from './session.ts';
import { numberText, plainText } from './words.ts';

/** Buckets change slowly; jobs and gaps have their own pages. */
const REFRESH_MS = 15_000;
/** The longest page. More open gaps of all buckets than this are not counted here; the page of the gaps has them. */
const GAPS_MAX = 1_000;

async function readBuckets(signal: AbortSignal) {
  const [buckets, gaps] = await Promise.all([
    call('GET /v1/buckets', {}, signal),
    call('GET /v1/gaps', { query: { state: 'open', limit: GAPS_MAX } }, signal),
  ]);
  return { ...buckets, gaps: gaps.items };
}

export function BucketsPage() {
  const [isPaused, setPaused] = useState(false);
  const loaded = useLoaded('buckets', readBuckets, { everyMs: isPaused ? undefined : REFRESH_MS });
  const [adding, setAdding] = useState<string>();
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
      <Shown loaded={loaded} live={{ isPaused, onPause: setPaused }}>
        {({ items, unconnected, gaps }) => (
          <>
            {items.length === 0 ? <NoBuckets mayAdd={mayAdd} /> : <BucketTable buckets={items} gaps={gaps} />}
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
      No bucket is connected. {mayAdd ? 'Add one: its objects are found by search then.' : 'An administrator connects buckets.'}
    </p>
  );
}

function BucketTable({ buckets, gaps }: { readonly buckets: readonly Bucket[]; readonly gaps: readonly Gap[] }) {
  const openOf = (name: string): number => gaps.filter(({ bucket }) => bucket === name).length;
  // the embedded bucket is not in AWS
  const hasWiring = buckets.some(({ wiring }) => wiring !== undefined);
  const inAws = hasWiring ? ['In AWS'] : [];
  return (
    <Table label="Connected buckets" heads={['Bucket', 'Source', 'Status', ...inAws, 'Open gaps', 'Last event', 'Last whole compare']}>
      {buckets.map((each) => (
        <tr key={each.bucket}>
          <th scope="row">
            <Link page="bucket" choices={{ bucket: each.bucket }} isRow>
              <Text>{each.bucket}</Text>
            </Link>
          </th>
          <td>{each.source}</td>
          <td>
            <Status of={each} />
          </td>
          {hasWiring && (
            <td>
              <Wiring of={each} />
            </td>
          )}
          <td>
            {openOf(each.bucket) === 0 ? (
              '0'
            ) : (
              <Link page="gaps" choices={{ bucket: each.bucket, state: 'open' }}>
                {numberText(openOf(each.bucket))}
              </Link>
            )}
          </td>
          <td>
            <Time at={each.last_event_at} />
          </td>
          <td>
            <Time at={each.last_reindex_at} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** Whether the index of a bucket can be relied on, and why not. */
export function Status({ of: { status } }: { readonly of: Pick<Bucket, 'status'> }) {
  return (
    <>
      <span class={`state ${status.state === 'ok' ? 'good' : 'notable'}`}>{plainText(status.state)}</span>
      {status.reason !== undefined && (
        <small>
          <br />
          <Text>{status.reason}</Text>
        </small>
      )}
    </>
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
