/**
 * Connecting a bucket: the person's choices, the plan of what they require in AWS, and the application of exactly that plan. The choices
 * are in the address. The same form adds a bucket and changes the settings of a connected one.
 *
 *   chosen ──► plan ──► applying ──► its page
 *               └──without AWS──► its page, or its first re-index
 */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Bucket } from '../../registry/contract/bucket.ts';
import { call, type AnswerTo, type RequestTo } from './api.ts';
import { facts } from './facts.ts';
import { Check, Field, Form, Select } from './form.tsx';
import { useAnswer } from './load.ts';
import { announce, Link, Shown, Text } from './parts.tsx';
import { go, hrefOf, place, type Choices } from './place.ts';
import { PlanDocument, useApply } from './plan.tsx';

const sourceTexts: Readonly<Record<Bucket['source'], string>> = {
  notification: 'notification: S3 sends events to the bucket queue',
  eventbridge: 'eventbridge: S3 sends events to EventBridge, and a rule to the bucket queue',
  topic: 'topic: S3 sends events to your own topic',
  routed: 'routed: a rule for the audit trail sends events; for buckets where a notification would clash',
  webhook: 'webhook: your own store posts events to Tally',
};

const APPLIED = 'Everything is applied. S3 takes about five minutes to send every event, a trail up to twenty.';

const enrichTexts: Readonly<Record<Bucket['enrich'], string>> = {
  none: 'none: only what events report',
  head: 'head: content type and user metadata too; one more S3 request per object',
  tags: 'tags: tags as well; two more S3 requests per object',
};

interface Chosen {
  readonly bucket: string;
  readonly source: Bucket['source'];
  /** The ARN of a topic that isn't Tally's own; empty: none. */
  readonly topic: string;
  readonly enrich: Bucket['enrich'];
  readonly account: string;
  /** Whether to index the objects that the bucket already holds. */
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

/** A bucket's stored settings. Tally's own topic counts as none. */
function storedOf({ bucket, source, topic_arn: topic = '', enrich }: Bucket): Chosen {
  return { bucket, source, topic: source === 'topic' || source === 'routed' ? topic : '', enrich, account: '', isIndexed: true };
}

/** The address of a plan, for a new bucket or for changed settings. The browser scrolls to the plan. */
function hrefFor({ isIndexed, ...chosen }: Chosen, stored: Chosen | undefined): string {
  const rest = stored === undefined ? { index: isIndexed ? '' : 'no' } : { tab: 'connection' };
  return `${hrefOf(stored === undefined ? 'add' : 'bucket', { ...chosen, ...rest })}#plan`;
}

/** What the bucket should have in AWS, in the form that the operations accept. */
function requestOf({ source, topic, enrich, account }: Chosen) {
  return { source, enrich, ...(topic !== '' && { topic_arn: topic }), ...(account !== '' && { bucket_account: account }) };
}

export function AddBucketPage({ choices }: { readonly choices: Choices }) {
  const chosen = chosenOf(choices);
  return (
    <>
      <h1>Add bucket</h1>
      <Choosing chosen={chosen} isPlanned={chosen.bucket !== ''}>
        <Field label="Name" name="bucket" value={chosen.bucket} isRequired hint="The name of the bucket in S3." />
        <details>
          <summary>Source, enrichment and account</summary>
          <SettingsFields of={chosen} />
          <Field
            label="Account"
            name="account"
            value={chosen.account}
            placeholder="123456789012"
            hint="The bucket’s account, if it is not the bucket queue’s. S3 then refuses requests if another account owns the bucket."
          />
          <Check
            label="Index the existing objects"
            name="indexed"
            isChecked={chosen.isIndexed}
            hint="If unchecked, searches find only later changes, and the bucket has a gap until you re-index it."
          />
        </details>
      </Choosing>
    </>
  );
}

interface SettingsProps {
  readonly bucket: Bucket;
  /** The choices that differ from the stored settings. */
  readonly choices: Choices;
  readonly onSaved: () => void;
}

/** Shows every change, in the record and in AWS, before it is made. */
export function SettingsSection({ bucket, choices, onSaved }: SettingsProps) {
  const stored = storedOf(bucket);
  const isChosen = 'source' in choices;
  const chosen = isChosen ? chosenOf(choices) : stored;
  // the plan repairs whatever is missing or wrong, so it is shown at once
  const isWrong = bucket.wiring?.state === 'broken' || bucket.wiring?.state === 'degraded';
  return (
    <section aria-labelledby="settings-heading">
      <h2 id="settings-heading">Indexing and notifications</h2>
      <Choosing stored={stored} chosen={chosen} isPlanned={isChosen || isWrong} onSaved={onSaved}>
        <SettingsFields of={chosen} />
      </Choosing>
    </section>
  );
}

interface PlanProps {
  /** A connected bucket's settings; absent: the bucket is new. */
  readonly stored?: Chosen;
  readonly chosen: Chosen;
  readonly onSaved?: () => void;
}

interface ChoosingProps extends PlanProps {
  readonly isPlanned: boolean;
  /** The fields. */
  readonly children: ComponentChildren;
}

/** The form, whose button leads to the plan for what was entered. The plan appears below it. */
function Choosing({ isPlanned, children, ...of }: ChoosingProps) {
  const { stored, chosen } = of;
  const href = hrefFor(chosen, stored);
  async function plan(entered: Choices): Promise<void> {
    const isIndexed = stored !== undefined || 'indexed' in entered;
    go(hrefFor({ ...chosenOf({ bucket: chosen.bucket, ...entered }), isIndexed }, stored));
  }
  return (
    <>
      <Form key={href} submit="Show the plan" onSubmit={plan}>
        {children}
      </Form>
      {isPlanned && <Plan key={`plan ${href}`} {...of} />}
    </>
  );
}

function SettingsFields({ of: { source, topic, enrich } }: { readonly of: Chosen }) {
  return (
    <>
      <Select
        label="Source"
        name="source"
        value={source}
        choices={facts.bucketSources.map((each) => [each, sourceTexts[each]])}
        hint="How the bucket’s events reach the bucket queue."
      />
      <Field
        label="Topic identifier"
        name="topic"
        value={topic}
        placeholder="arn:aws:sns:REGION:ACCOUNT:NAME"
        hint="The ARN of your own SNS topic that the events come through, for the source topic or routed. Empty: Tally’s topic, if the source needs one."
      />
      <Select
        label="Enrichment"
        name="enrich"
        value={enrich}
        choices={facts.enrichModes.map((mode) => [mode, enrichTexts[mode]])}
        hint="What Tally reads about each object."
      />
    </>
  );
}

/** For buckets that need nothing in AWS. */
export const EMBEDDED = 'connect.embedded';

/** Applies a plan, or only stores the choices, and then goes to the bucket's page. */
function useSaving({ stored, chosen, onSaved }: PlanProps) {
  const { bucket, isIndexed } = chosen;
  const [isAdded, setAdded] = useState(stored !== undefined);
  const { follow, waiting } = useApply();
  const here = place.read();

  async function save(more: Partial<RequestTo<'POST /v1/buckets'>['body']>): Promise<AnswerTo<'POST /v1/buckets'>> {
    const asNew = stored === undefined ? { reindex: isIndexed } : {};
    try {
      return await call('POST /v1/buckets', { body: { bucket, ...requestOf(chosen), ...asNew, ...more } });
    } catch (error) {
      // whatever the answer was, even if none came, the bucket may be connected: a second attempt continues
      setAdded(true);
      throw error;
    }
  }
  function done(text: string, jobId?: string): void {
    announce(text);
    onSaved?.();
    const shown = hrefOf('bucket', { bucket, tab: stored === undefined ? '' : 'connection' });
    if (place.read() === here) go(jobId === undefined ? shown : hrefOf('job', { id: jobId }));
  }
  async function apply(plan: string): Promise<void> {
    await follow(async () => {
      const { connection } = await save({ plan });
      setAdded(true);
      return connection ?? { bucket, state: 'applied' };
    });
    done(chosen.source === 'webhook' ? `\`tally bucket rotate-token ${bucket}\` shows the address and token for the store.` : APPLIED);
  }
  async function record(): Promise<void> {
    const { job_id: jobId, advice = '' } = await save({ wired_by_hand: true });
    done(`${stored === undefined ? `${bucket} is connected` : 'The settings are saved'}. ${advice}`, jobId);
  }
  return { isAdded, apply, record, waiting };
}

/** Shows the plan for the choices, and applies exactly that plan, or only stores the choices. */
function Plan(props: PlanProps) {
  const { stored, chosen } = props;
  const { bucket } = chosen;
  const loaded = useAnswer('GET /v1/buckets/{bucket}/plan', { params: { bucket }, query: requestOf(chosen) });
  const { isAdded, apply, record, waiting } = useSaving(props);
  if (loaded.problem?.code === EMBEDDED) {
    return (
      <section id="plan">
        <p class="quiet">The embedded storage sends its buckets’ events itself, so Tally creates nothing in AWS.</p>
        <Form onSubmit={record} submit="Add the bucket" />
      </section>
    );
  }
  // a plan that could not be read again must not be applied
  const plan = loaded.problem === undefined ? loaded.value : undefined;
  if (plan?.connected === true && !isAdded) {
    return (
      <p class="advice">
        <Text>{bucket}</Text> is already connected, and nothing has changed.{' '}
        <Link page="bucket" choices={{ bucket, tab: 'connection' }}>
          Change its settings
        </Link>
      </p>
    );
  }
  const changes = changeNames.filter((name) => chosen[name] !== (stored ?? chosen)[name]);
  const isNew = stored === undefined || changes.length > 0;
  return (
    <section id="plan" aria-labelledby="plan-heading">
      <h2 id="plan-heading">
        What it takes in AWS to connect <Text>{bucket}</Text>
      </h2>
      {changes.map((name) => (
        <p key={name}>
          {changeTexts[name]}: <Text>{valueText(stored?.[name])}</Text> → <Text>{valueText(chosen[name])}</Text>
        </p>
      ))}
      <Shown loaded={{ ...loaded, value: plan }} busy="Reading AWS…">
        {(read) => (
          <>
            <PlanDocument plan={isNew ? read : { ...read, findings: blocking(read) }} />
            {waiting}
            {blocking(read).length === 0 && (
              <Form
                submit={stored === undefined ? 'Add and apply' : 'Apply'}
                onSubmit={() => apply(read.token)}
                isDisabled={loaded.isLoading}
              />
            )}
          </>
        )}
      </Shown>
      <div class="actions">
        {isNew && <Form onSubmit={record} look="outline" submit="I have wired it myself" />}
        {plan !== undefined && (
          <button type="button" class="outline" disabled={loaded.isLoading} onClick={loaded.reload}>
            Read AWS again
          </button>
        )}
      </div>
    </section>
  );
}

/** Beside a connected bucket's plan, its checks show what else they found. */
const blocking = ({ findings }: AnswerTo<'GET /v1/buckets/{bucket}/plan'>) => findings.filter(({ blocks }) => blocks);

const changeTexts = { source: 'Source', topic: 'Topic identifier', enrich: 'Enrichment' } as const;
const changeNames = ['source', 'topic', 'enrich'] as const;
const valueText = (value = ''): string => (value === '' ? 'none' : value);
