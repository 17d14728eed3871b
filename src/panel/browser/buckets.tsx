/** All buckets. */
import { useRef, useState } from 'preact/hooks';
import type { ShownBucket, UnconnectedBucket } from '../../api/bucket.ts';
import { printable } from '../../domain/printable.ts';
import { call, type AnswerTo, Problem, type RequestTo } from './api.ts';
import { Gaps, Status, bucketColumn } from './bucket-act.tsx';
import { useLoaded } from './load.ts';
import { type Column, Link, More, Shown, Table, Text, Time, announce, Details, Dialog } from './parts.tsx';
import { may } from './session.ts';
import { numberText } from './words.ts';
import type { ConnectionView } from '../../api/connections.ts';
import { emptySettings, SettingsFields, settingsAfter, settingsBody, wishOf } from './bucket-settings.tsx';
import { Check, Field, Form, useIsShown } from './form.tsx';
import { go, hrefOf } from './place.ts';
import { PlanStep, type PlanWish } from './plan.tsx';

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
  bucketColumn,
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

/**
 * Adds a bucket:
 *
 *   form ──► plan ──► applying ──► its page
 *     └───────┴──without AWS──► its page, or its first re-index
 *
 * A bucket that is connected already stays as it is, and the dialog leads to its page.
 */

type Added = AnswerTo<'POST /v1/buckets'>;

function AddBucket({ name: first, onClose }: { readonly name: string; readonly onClose: () => void }) {
  const [name, setName] = useState(first);
  const [settings, setSettings] = useState(emptySettings);
  const [account, setAccount] = useState('');
  const [isIndexed, setIndexed] = useState(true);
  const [isPlanned, setPlanned] = useState(false);
  const [connected, setConnected] = useState<string>();
  /** The name that this dialog asked to connect: after a failure the same is tried again. */
  const asked = useRef('');
  const isShown = useIsShown();
  const bucket = name.trim();
  const owner = { ...(account.trim() !== '' && { bucket_account: account.trim() }) };
  const wish: PlanWish = { ...wishOf(settings), ...owner };

  async function add(more: Partial<RequestTo<'POST /v1/buckets'>['body']> = {}): Promise<Added> {
    const isFirst = asked.current !== bucket;
    const body = { bucket, ...settingsBody(settings), ...owner, reindex: isIndexed, ...(isFirst && { only_new: true }), ...more };
    asked.current = bucket;
    try {
      return await call('POST /v1/buckets', { body });
    } catch (error) {
      if (error instanceof Problem && error.code === 'bucket.already-connected') setConnected(bucket);
      throw error;
    }
  }
  async function record(): Promise<void> {
    const added = await add({ wired_by_hand: true });
    announce(`${added.bucket} is connected.`);
    if (isShown()) go(added.job_id === undefined ? hrefOf('bucket', { bucket: added.bucket }) : hrefOf('job', { id: added.job_id }));
  }
  async function begin(plan: string, planned: PlanWish): Promise<ConnectionView> {
    const { connection } = await add({ plan });
    return connection ?? call('POST /v1/buckets/{bucket}/apply', { params: { bucket }, body: { plan, ...planned } });
  }
  async function review(): Promise<void> {
    setPlanned(true);
  }
  function another(): void {
    asked.current = '';
    setConnected(undefined);
    setPlanned(false);
  }
  const without = { text: 'Add bucket without changing AWS', act: record };
  if (connected !== undefined) return <Connected name={connected} onClose={onClose} onBack={another} />;
  if (isPlanned) {
    return (
      <Dialog title={`Plan for ${bucket}`} onClose={onClose}>
        <p>
          To connect <Text>{bucket}</Text>, Tally makes this in AWS. Nothing is written before “Add and apply”.
        </p>
        <PlanStep
          bucket={bucket}
          wish={wish}
          begin={begin}
          apply="Add and apply"
          record={without}
          onConnected={() => {
            if (asked.current !== bucket) setConnected(bucket);
          }}
          onWish={(other) => setSettings(settingsAfter(settings, other))}
          onApplied={() => {
            announce(`${bucket} is connected, and its events come.`);
            if (isShown()) go(hrefOf('bucket', { bucket }));
          }}
          onClose={() => setPlanned(false)}
        />
      </Dialog>
    );
  }
  return (
    <Dialog title="Add bucket" onClose={onClose}>
      <Form submit="Show the plan…" onSubmit={review} otherwise={without} onCancel={onClose}>
        <Field label="Name" value={name} onChange={setName} isRequired hint="The name of the bucket in S3." />
        <SettingsFields settings={settings} onChange={setSettings} />
        <Field
          label="Account"
          value={account}
          onChange={setAccount}
          placeholder="123456789012"
          hint="The account of the bucket, if it is not that of the bucket queue. Requests to S3 name it as the expected owner."
        />
        <Check
          label="Index what the bucket holds already"
          isChecked={isIndexed}
          onChange={setIndexed}
          hint="Without it only changes from now on are found, and the bucket has a gap until it is re-indexed."
        />
      </Form>
    </Dialog>
  );
}

interface ConnectedProps {
  readonly name: string;
  readonly onClose: () => void;
  readonly onBack: () => void;
}

/** What there is in place of a bucket that can be added. */
function Connected({ name, onClose, onBack }: ConnectedProps) {
  const loaded = useLoaded(`bucket ${name}`, (signal) => call('GET /v1/buckets/{bucket}', { params: { bucket: name } }, signal));
  return (
    <Dialog title="Add bucket" onClose={onClose}>
      <p role="alert">
        <Text>{name}</Text> is connected already, and stays as it is. Its page is where its settings are changed.
      </p>
      <Shown loaded={loaded}>
        {(bucket) => (
          <Details
            of={[
              ['Source', bucket.source],
              ['Topic identifier', bucket.topic_arn !== undefined && <Text>{bucket.topic_arn}</Text>],
              ['Enrichment', bucket.enrich],
              ['Status', <Status key="status" of={bucket} />],
            ]}
          />
        )}
      </Shown>
      <p class="actions">
        <Link page="bucket" choices={{ bucket: name }}>
          Show <Text>{name}</Text>
        </Link>
        <button type="button" class="secondary outline" onClick={onBack}>
          Add another bucket
        </button>
      </p>
    </Dialog>
  );
}
