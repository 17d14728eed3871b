/**
 * Adds a bucket:
 *
 *   form ──► plan ──► applying ──► its page
 *     └───────┴──without AWS──► its page, or its first re-index
 *
 * A bucket that is connected already stays as it is, and the dialog leads to its page.
 */
import { useRef, useState } from 'preact/hooks';
import type { ConnectionView } from '../../api/connections.ts';
import { call, Problem, type AnswerTo, type RequestTo } from './api.ts';
import { emptySettings, handMade, SettingsFields, settingsAfter, settingsBody, wishOf } from './bucket-settings.tsx';
import { Check, Field, Form, useIsShown } from './form.tsx';
import { Status } from './bucket-act.tsx';
import { useLoaded } from './load.ts';
import { announce, Details, Dialog, Link, Shown, Text } from './parts.tsx';
import { go, hrefOf } from './place.ts';
import { PlanStep, type PlanWish } from './plan.tsx';

type Added = AnswerTo<'POST /v1/buckets'>;

export function AddBucket({ name: first, onClose }: { readonly name: string; readonly onClose: () => void }) {
  const [name, setName] = useState(first);
  const [settings, setSettings] = useState(emptySettings);
  const [account, setAccount] = useState('');
  const [isIndexed, setIndexed] = useState(true);
  const [isPlanned, setPlanned] = useState(false);
  const [isAdopted, setAdopted] = useState(false);
  const [connected, setConnected] = useState<string>();
  /** The name that this dialog asked to connect: after a failure the same is tried again. */
  const asked = useRef('');
  const isShown = useIsShown();
  const bucket = name.trim();
  const owner = { ...(account.trim() !== '' && { bucket_account: account.trim() }) };
  const wish: PlanWish = { ...wishOf(settings), ...owner, ...(isAdopted && { adopt: 'true' }) };

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
    const added = await add();
    announce(`${added.bucket} is connected.`);
    if (isShown()) go(added.job_id === undefined ? hrefOf('bucket', { bucket: added.bucket }) : hrefOf('job', { id: added.job_id }));
  }
  async function begin(plan: string, planned: PlanWish): Promise<ConnectionView> {
    // what an earlier installation made is taken over by an apply only
    const { connection } = await add(planned.adopt === 'true' ? {} : { apply: true, plan });
    return connection ?? call('POST /v1/buckets/{bucket}/apply', { params: { bucket }, body: { plan, ...planned } });
  }
  async function review(): Promise<void> {
    const byHand = handMade(settings);
    if (byHand !== undefined) throw new Problem(byHand, 'plan.by-hand', { advice: 'Add the bucket without changing AWS.' });
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
          onWish={(other) => {
            setAdopted(other.adopt === 'true');
            setSettings(settingsAfter(settings, other));
          }}
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
