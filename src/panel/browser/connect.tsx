/**
 * How a bucket is connected: what is chosen, the plan of what that takes in AWS, and the apply of exactly that plan. What was chosen
 * is in the address. A bucket that is not connected is added, and the settings of one that is are changed.
 *
 *   chosen ──► plan ──► applying ──► its page
 *               └──without AWS──► its page, or its first re-index
 */
import { useState } from 'preact/hooks';
import type { Bucket } from '../../registry/contract/bucket.ts';
import { call, Problem, type AnswerTo, type RequestTo } from './api.ts';
import { facts } from './facts.ts';
import { Check, Field, Form, Select } from './form.tsx';
import { announce, Link, Text } from './parts.tsx';
import { Plan, type Planned, type PlanRequest } from './plan.tsx';
import { go, hrefOf, place, type Choices } from './place.ts';

const sourceTexts: Readonly<Record<Exclude<Bucket['source'], 'topic'>, string>> = {
  notification: 'notification: S3 sends events to the bucket queue',
  eventbridge: 'eventbridge: S3 sends events to EventBridge, and a rule to the bucket queue',
  routed: 'routed: a rule for the audit trail sends events, where a notification would clash',
};

/** The sources of a topic that is not Tally's. */
const topicTexts: Readonly<Partial<Record<Bucket['source'], string>>> = {
  topic: 'topic: S3 sends its notifications to it',
  routed: 'routed: a rule for the audit trail publishes to it',
};

const enrichTexts: Readonly<Record<Bucket['enrich'], string>> = {
  none: 'none: what events report',
  head: 'head: content type and user metadata too; one more S3 request per object',
  tags: 'tags: tags as well; two more S3 requests per object',
};

interface Chosen {
  readonly bucket: string;
  readonly source: Bucket['source'];
  /** A topic that is not Tally's; empty: none. */
  readonly topic: string;
  readonly enrich: Bucket['enrich'];
  readonly account: string;
  /** Whether what the bucket holds already is indexed. */
  readonly isIndexed: boolean;
}

function chosenOf({ bucket = '', source, topic = '', enrich, account = '', index }: Choices): Chosen {
  return {
    bucket: bucket.trim(),
    source: facts.bucketSources.find((each) => each === source) ?? 'notification',
    topic: topic.trim(),
    enrich: facts.enrichModes.find((each) => each === enrich) ?? 'none',
    account: account.trim(),
    isIndexed: index !== 'no',
  };
}

/** The settings of a bucket as they are stored. A topic that is Tally's is none. */
function storedOf({ bucket, source, topic_arn: topic = '', enrich }: Bucket): Chosen {
  return { bucket, source, topic: Object.hasOwn(topicTexts, source) ? topic : '', enrich, account: '', isIndexed: true };
}

/** The address of a plan, to which the browser scrolls. */
function hrefFor(page: 'add' | 'bucket', { isIndexed, ...chosen }: Chosen): string {
  const href = hrefOf(page, { ...chosen, ...(page === 'add' ? { index: isIndexed ? '' : 'no' } : { tab: 'connection' }) });
  return `${href}#plan`;
}

function wishOf({ source, topic, enrich, account }: Chosen): PlanRequest & Pick<Chosen, 'source' | 'enrich'> {
  return { source, enrich, ...(topic !== '' && { topic_arn: topic }), ...(account !== '' && { bucket_account: account }) };
}

export function AddBucketPage({ choices }: { readonly choices: Choices }) {
  const chosen = chosenOf(choices);
  return (
    <>
      <h1>Add bucket</h1>
      <Form key={hrefFor('add', chosen)} submit="Show the plan" onSubmit={async (entered) => go(hrefFor('add', addedOf(entered)))}>
        <Field label="Name" name="bucket" value={chosen.bucket} isRequired hint="The name of the bucket in S3." />
        <details>
          <summary>Source, enrichment and account</summary>
          <SettingsFields of={chosen} />
          <Field
            label="Account"
            name="account"
            value={chosen.account}
            placeholder="123456789012"
            hint="The account of the bucket, if it is not that of the bucket queue. Requests to S3 name it as the expected owner."
          />
          <Check
            label="Index what the bucket holds already"
            name="indexed"
            isChecked={chosen.isIndexed}
            hint="Without it only changes from now on are found, and the bucket has a gap until it is re-indexed."
          />
        </details>
      </Form>
      {chosen.bucket !== '' && <NewPlan key={`plan ${hrefFor('add', chosen)}`} chosen={chosen} />}
    </>
  );
}

function addedOf(entered: Choices): Chosen {
  return { ...chosenOf(entered), isIndexed: 'indexed' in entered };
}

/** Only two sources take a topic that is not Tally's: a person who enters one chooses between them. */
function SettingsFields({ of: { source, topic, enrich } }: { readonly of: Chosen }) {
  const [hasTopic, setHasTopic] = useState(topic !== '');
  const texts = hasTopic ? topicTexts : sourceTexts;
  const isFitting = Object.hasOwn(texts, source);
  return (
    <>
      <Field
        label="Topic identifier"
        name="topic"
        value={topic}
        onTyped={(typed) => setHasTopic(typed.trim() !== '')}
        placeholder="arn:aws:sns:REGION:ACCOUNT:NAME"
        hint="The ARN of the SNS topic that the events come through, if it is yours. Empty: Tally makes one where the source needs it."
      />
      <Select
        key={String(hasTopic)}
        label={hasTopic ? 'What sends events to this topic' : 'Source'}
        name="source"
        value={isFitting ? source : ''}
        isRequired
        choices={[...(isFitting ? [] : [['', 'choose…'] as const]), ...Object.entries(texts)]}
        hint="How the events of the bucket reach the bucket queue."
      />
      <Select
        label="Enrichment"
        name="enrich"
        value={enrich}
        choices={facts.enrichModes.map((mode) => [mode, enrichTexts[mode]])}
        hint="What is indexed of each object."
      />
    </>
  );
}

function NewPlan({ chosen }: { readonly chosen: Chosen }) {
  const { bucket, isIndexed } = chosen;
  const wish = wishOf(chosen);
  const [isAdded, setAdded] = useState(false);
  function add(more: Partial<RequestTo<'POST /v1/buckets'>['body']>): Promise<AnswerTo<'POST /v1/buckets'>> {
    const body = { bucket, ...wish, reindex: isIndexed, only_new: !isAdded, ...more };
    return call('POST /v1/buckets', { body }).catch((error: unknown) => {
      // a second attempt continues
      if (error instanceof Problem && error.more.connected !== undefined) setAdded(true);
      throw error;
    });
  }
  const planned: Planned = {
    apply: 'Add and apply',
    async request(plan, isFirst) {
      const { connection } = await add({ plan, only_new: isFirst && !isAdded });
      setAdded(true);
      return connection ?? { bucket, state: 'applied' };
    },
    record: {
      text: 'I have wired it myself',
      async act() {
        const here = place.read();
        const { job_id: id } = await add({ wired_by_hand: true });
        announce(`${bucket} is connected.`);
        if (place.read() === here) go(id === undefined ? hrefOf('bucket', { bucket }) : hrefOf('job', { id }));
      },
    },
    hrefWith: (source) => hrefFor('add', { ...chosen, source, topic: '' }),
    onApplied() {
      announce(`${bucket} is connected, and its events come.`);
      go(hrefOf('bucket', { bucket }));
    },
  };
  return (
    <Plan
      bucket={bucket}
      wish={wish}
      planned={planned}
      connected={
        isAdded ? undefined : (
          <p class="advice">
            <Text>{bucket}</Text> is connected already, and stays as it is. Its page is where its settings are changed:{' '}
            <Link page="bucket" choices={{ bucket, tab: 'connection' }}>
              show it
            </Link>
          </p>
        )
      }
    />
  );
}

interface SettingsProps {
  readonly bucket: Bucket;
  /** What is chosen in place of what is stored. */
  readonly choices: Choices;
  readonly onSaved: () => void;
}

/** What changes, in the record and in AWS, is shown before it is done. */
export function SettingsSection({ bucket, choices, onSaved }: SettingsProps) {
  const stored = storedOf(bucket);
  const isChosen = 'source' in choices;
  const chosen = isChosen ? chosenOf(choices) : stored;
  return (
    <section aria-labelledby="settings-heading">
      <h2 id="settings-heading">Indexing and notifications</h2>
      <Form
        key={hrefFor('bucket', chosen)}
        submit="Show the plan"
        onSubmit={async (entered) => go(hrefFor('bucket', chosenOf({ ...entered, bucket: bucket.bucket })))}
      >
        <SettingsFields of={chosen} />
      </Form>
      {isChosen && <ChangedPlan key={`plan ${hrefFor('bucket', chosen)}`} stored={stored} chosen={chosen} onSaved={onSaved} />}
    </section>
  );
}

function ChangedPlan({ stored, chosen, onSaved }: { readonly stored: Chosen; readonly chosen: Chosen } & Pick<SettingsProps, 'onSaved'>) {
  const { bucket, enrich } = chosen;
  const wish = wishOf(chosen);
  const changes = (['source', 'topic', 'enrich'] as const).filter((name) => chosen[name] !== stored[name]);
  function done(text: string): void {
    announce(text);
    onSaved();
    go(hrefOf('bucket', { bucket, tab: 'connection' }));
  }
  const change = (more: { readonly plan: string } | { readonly wired_by_hand: true }) =>
    call('POST /v1/buckets', { body: { bucket, ...wish, ...more } });
  const record = async (): Promise<void> => done(`The settings are saved. ${(await change({ wired_by_hand: true })).advice ?? ''}`);
  const planned: Planned = {
    apply: 'Apply',
    request: async (plan) => (await change({ plan })).connection ?? { bucket, state: 'applied' },
    record: changes.length === 0 ? undefined : { text: 'I have wired it myself', act: record },
    hrefWith: (other) => hrefFor('bucket', { ...chosen, source: other, topic: '' }),
    onApplied: () => done('Everything is applied. S3 needs about five minutes until it sends every event, and a trail up to twenty.'),
  };
  return (
    <>
      {changes.length > 0 && (
        <ul>
          {changes.map((name) => (
            <li key={name}>
              {changeTexts[name]}: <Text>{stored[name] === '' ? 'none' : stored[name]}</Text> →{' '}
              <Text>{chosen[name] === '' ? 'none' : chosen[name]}</Text>
            </li>
          ))}
        </ul>
      )}
      {changes.includes('enrich') && enrich !== 'none' && (
        <p>Documents that are indexed already get it by a re-index that fills in missing fields.</p>
      )}
      <Plan bucket={bucket} wish={wish} planned={planned} />
    </>
  );
}

const changeTexts = { source: 'Source', topic: 'Topic identifier', enrich: 'Enrichment' } as const;
