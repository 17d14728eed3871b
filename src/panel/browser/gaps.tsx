/** Gaps: changes that may be missing. */
import type { Gap } from '../../api/gaps.ts';
import { call } from './api.ts';
import { facts } from './facts.ts';
import { ActivityTabs } from './jobs.tsx';
import { useLoaded } from './load.ts';
import { Chosen, Select } from './form.tsx';
import { type Column, Link, Shown, Table, Text, Time } from './parts.tsx';
import { go, hrefOf, type Choices } from './place.ts';
import { bucketColumn, ToPage } from './bucket-act.tsx';

const REFRESH_MS = 10_000;
/** More rows are not read one by one; the filters narrow them. */
const SHOWN_MAX = 200;

export function GapsPage({ choices: { bucket = '', state = '' } }: { readonly choices: Choices }) {
  const inState = facts.gapStates.find((each) => each === state);
  const query = { ...(bucket !== '' && { bucket }), ...(inState !== undefined && { state: inState }), limit: SHOWN_MAX };
  const loaded = useLoaded(`gaps ${bucket} ${state}`, (signal) => call('GET /v1/gaps', { query }, signal), {
    everyMs: REFRESH_MS,
  });
  return (
    <>
      <h1>Activity</h1>
      <ActivityTabs page="gaps" bucket={bucket} />
      <p>Changes of a bucket that may be missing. Until a re-index closes a gap, the index may differ from the bucket.</p>
      <GapFilter bucket={bucket} state={state} />
      <Shown loaded={loaded} isLive>
        {({ items, next }) => (
          <>
            {items.length === 0 ? <p class="empty">No gap: every change that is known of was indexed.</p> : <GapTable gaps={items} />}
            {next !== undefined && <p>The first {SHOWN_MAX} are shown. Choose a bucket to see fewer.</p>}
          </>
        )}
      </Shown>
    </>
  );
}

function GapFilter({ bucket, state }: { readonly bucket: string; readonly state: string }) {
  return (
    <div class="filters">
      <Chosen label="Bucket" value={bucket} onChosen={(chosen) => go(hrefOf('gaps', { bucket: chosen, state }))} />
      <Select
        label="State"
        value={state}
        onChange={(chosen) => go(hrefOf('gaps', { bucket, state: chosen }))}
        choices={facts.gapStates.map((each) => [each === 'open' ? '' : each, each === 'closed' ? 'closed within 30 days' : each] as const)}
      />
    </div>
  );
}

const columns: readonly Column<Gap>[] = [
  bucketColumn,
  ['Prefix', ({ prefix }) => (prefix === undefined ? 'whole bucket' : <Text>{prefix}</Text>)],
  ['Since', ({ since }) => <Time at={since} />],
  ['Why', ({ why }) => <Text>{why}</Text>],
  [
    'What happens next',
    ({ state, next = '', due_at: due, closed_at: closed }) => (
      <div>
        <span class={`state ${state === 'closed' ? 'good' : 'notable'}`}>{state}</span>{' '}
        {closed === undefined ? <Text>{next}</Text> : <Time at={closed} />}
        {due !== undefined && (
          <small>
            <br />
            <Time at={due} />
          </small>
        )}
      </div>
    ),
  ],
  ['What to do', (gap) => <GapAct of={gap} />],
];

export function GapTable({ gaps }: { readonly gaps: readonly Gap[] }) {
  return <Table label="Gaps" columns={columns} rows={gaps} keyOf={({ id }) => id} />;
}

/** Where a person follows what repairs a gap, or does what it waits for. */
function GapAct({ of: { bucket, job_id: job, held, state, due_at: due } }: { readonly of: Gap }) {
  if (job !== undefined) {
    return (
      <Link page="job" choices={{ id: job }}>
        Show its job
      </Link>
    );
  }
  if (state === 'closed' || due !== undefined) return null;
  return held === true ? (
    <Link page="bucket" choices={{ bucket }}>
      Re-index it
    </Link>
  ) : (
    <ToPage page="doctor" bucket={bucket} />
  );
}
