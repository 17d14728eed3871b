/** The latest writes to a bucket's index, deletions included. The list doesn't move while someone reads it. */
import type { AnswerTo } from './api.ts';
import { useAnswer } from './load.ts';
import { type Column, Link, Shown, Size, Table, Text, Time } from './parts.tsx';

/** Anyone who needs more can search for them. */
const SHOWN_MAX = 200;

type Change = AnswerTo<'GET /v1/changes'>['items'][number];

const columns: readonly Column<Change>[] = [
  [
    'Key',
    ({ bucket, key }) => (
      <Link page="object" choices={{ bucket, key }}>
        <Text>{key}</Text>
      </Link>
    ),
    'row',
  ],
  ['Change', ({ deleted }) => (deleted ? <span class="state notable">deleted</span> : 'written')],
  ['By', ({ event_name: name, source }) => <Text>{name ?? source}</Text>, 'less'],
  ['Indexed', ({ indexed_at: at }) => <Time at={at} />],
  ['Size', ({ deleted, size }) => !deleted && <Size bytes={size} />, 'number'],
];

/** A tab of the bucket's page. */
export function Changes({ bucket }: { readonly bucket: string }) {
  const loaded = useAnswer('GET /v1/changes', { query: { bucket, newest: 'true', limit: SHOWN_MAX } });
  return (
    <>
      <p>Each object’s latest change.</p>
      <Shown loaded={loaded}>
        {({ items }) => (
          <Table
            label="Changes to the index"
            columns={columns}
            rows={items}
            keyOf={({ key }) => key}
            empty="Nothing has been written yet."
          />
        )}
      </Shown>
    </>
  );
}
