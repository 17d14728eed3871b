/** Gaps: changes that a source did not report. */
import type { Gap } from '../../api/gaps.ts';
import { call } from './api.ts';
import { facts } from './facts.ts';
import { ActivityTabs } from './jobs.tsx';
import { useLoaded } from './load.ts';
import { Chosen, Select } from './form.tsx';
import { type Column, Link, Shown, Table, Text, Time } from './parts.tsx';
import { go, hrefOf, type Choices } from './place.ts';
import { numberText, plainText } from './words.ts';
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
      <p>
        Changes of a bucket that its source did not report, and deletions that wait for a person. Until a re-index closes a gap, the index
        may differ from the bucket.
      </p>
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
        choices={[['', 'all states'], ...facts.gapStates.map((each) => [each, each] as const)]}
      />
    </div>
  );
}

const columns: readonly Column<Gap>[] = [
  bucketColumn,
  ['Kind', ({ kind }) => plainText(kind)],
  [
    'State',
    ({ state, held, waits }) => (
      <div>
        <span class={`state ${state === 'closed' ? 'good' : 'notable'}`}>
          {held === true ? `${state}, until a re-index is requested` : state}
        </span>
        {waits !== undefined && (
          <small>
            <br />
            <Text>{waits.reason}</Text>
          </small>
        )}
      </div>
    ),
  ],
  ['Reason', ({ reason }) => <Text>{reason}</Text>],
  ['Prefix', ({ prefix }) => (prefix === undefined ? 'whole bucket' : <Text>{prefix}</Text>)],
  ['Seen', ({ count }) => numberText(count)],
  ['Last seen', ({ last_seen_at: at }) => <Time at={untilNow(at)} />],
  ['What to do', (gap) => <GapAct of={gap} />],
];

export function GapTable({ gaps }: { readonly gaps: readonly Gap[] }) {
  return <Table label="Gaps" columns={columns} rows={gaps} keyOf={({ id }) => id} />;
}

/** Changes may be missing until a change in AWS has taken effect: until now, as far as it is known. */
function untilNow(at: string): string {
  return new Date(Math.min(Date.now(), Date.parse(at))).toISOString();
}

/** Where a person follows the closing of a gap, or does what it waits for. */
function GapAct({ of: { bucket, job_id: job, held_deletes: deletions = 0, held, state, waits } }: { readonly of: Gap }) {
  if (job !== undefined) {
    return (
      <Link page="job" choices={{ id: job }}>
        Show its job
      </Link>
    );
  }
  if (state === 'closed') return null;
  // the job that held them back says which, and goes on when it may
  if (deletions > 0) {
    return (
      <Link page="jobs" choices={{ bucket }}>
        Show its jobs
      </Link>
    );
  }
  if (held === true) {
    return (
      <Link page="bucket" choices={{ bucket }}>
        Re-index it
      </Link>
    );
  }
  return waits === undefined ? null : <ToPage page="doctor" bucket={bucket} />;
}
