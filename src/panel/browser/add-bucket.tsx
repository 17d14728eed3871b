/**
 * Adds a bucket: its name, the plan of what that takes in AWS, and the apply of exactly that plan. What was chosen is in the
 * address.
 *
 *   name ──► plan ──► applying ──► its page
 *              └──wired already──► its page, or its first re-index
 */
import { useState } from 'preact/hooks';
import { call, type AnswerTo, type RequestTo } from './api.ts';
import { SettingsFields, wishOf, type BucketSettings } from './bucket-settings.tsx';
import { facts } from './facts.ts';
import { Check, Field, Form, useIsShown } from './form.tsx';
import { announce, Link, Text } from './parts.tsx';
import { PlanStep } from './plan.tsx';
import { go, hrefOf, type Choices } from './place.ts';

interface Wished extends BucketSettings {
  readonly bucket: string;
  readonly account: string;
  /** Whether what the bucket holds already is indexed. */
  readonly isIndexed: boolean;
}

function wishedIn({ bucket = '', source, topic = '', enrich, account = '', index }: Choices): Wished {
  return {
    bucket,
    source: facts.bucketSources.find((each) => each === source) ?? 'notification',
    topic,
    enrich: facts.enrichModes.find((each) => each === enrich) ?? 'none',
    account,
    isIndexed: index !== 'no',
  };
}

function hrefFor({ bucket, source, topic, enrich, account, isIndexed }: Wished): string {
  const [name, own] = [bucket.trim(), account.trim()];
  return hrefOf('add', { bucket: name, source, topic: topic.trim(), enrich, account: own, index: isIndexed ? '' : 'no' });
}

export function AddBucketPage({ choices }: { readonly choices: Choices }) {
  const wished = wishedIn(choices);
  const key = hrefFor(wished);
  return (
    <>
      <h1>Add bucket</h1>
      <WishForm key={key} wished={wished} />
      {wished.bucket !== '' && <NewPlan key={`plan ${key}`} wished={wished} />}
    </>
  );
}

function WishForm({ wished }: { readonly wished: Wished }) {
  const [typed, setTyped] = useState(wished);
  return (
    <Form submit="Show the plan" onSubmit={async () => go(hrefFor(typed))}>
      <Field
        label="Name"
        value={typed.bucket}
        onChange={(bucket) => setTyped({ ...typed, bucket })}
        isRequired
        hint="The name of the bucket in S3."
      />
      <details>
        <summary>Source, enrichment and account</summary>
        <SettingsFields settings={typed} onChange={(settings) => setTyped({ ...typed, ...settings })} />
        <Field
          label="Account"
          value={typed.account}
          onChange={(account) => setTyped({ ...typed, account })}
          placeholder="123456789012"
          hint="The account of the bucket, if it is not that of the bucket queue. Requests to S3 name it as the expected owner."
        />
        <Check
          label="Index what the bucket holds already"
          isChecked={typed.isIndexed}
          onChange={(isIndexed) => setTyped({ ...typed, isIndexed })}
          hint="Without it only changes from now on are found, and the bucket has a gap until it is re-indexed."
        />
      </details>
    </Form>
  );
}

function NewPlan({ wished }: { readonly wished: Wished }) {
  const { bucket, account, isIndexed } = wished;
  const wish = { ...wishOf(wished), ...(account !== '' && { bucket_account: account }) };
  const [connected, setConnected] = useState(false);
  const isShown = useIsShown();
  function add(more: Partial<RequestTo<'POST /v1/buckets'>['body']> = {}): Promise<AnswerTo<'POST /v1/buckets'>> {
    return call('POST /v1/buckets', { body: { bucket, ...wish, reindex: isIndexed, only_new: true, ...more } });
  }
  async function record(): Promise<void> {
    const added = await add({ wired_by_hand: true });
    announce(`${added.bucket} is connected.`);
    if (isShown()) go(added.job_id === undefined ? hrefOf('bucket', { bucket }) : hrefOf('job', { id: added.job_id }));
  }
  async function request(plan: string, isFirst: boolean) {
    const { connection } = isFirst && !connected ? await add({ plan }) : {};
    // a second attempt continues
    setConnected(true);
    return connection ?? call('POST /v1/buckets/{bucket}/apply', { params: { bucket }, body: { plan, ...wish } });
  }
  return (
    <section aria-labelledby="plan-heading">
      <h2 id="plan-heading">
        What it takes in AWS to connect <Text>{bucket}</Text>
      </h2>
      <PlanStep
        bucket={bucket}
        wish={wish}
        apply="Add and apply"
        request={request}
        record={{ text: 'I have wired it myself', act: record }}
        connected={
          connected ? undefined : (
            <p class="advice">
              <Text>{bucket}</Text> is connected already, and stays as it is. Its page is where its settings are changed:{' '}
              <Link page="bucket" choices={{ bucket }}>
                show it
              </Link>
            </p>
          )
        }
        onSource={(source) => go(hrefFor({ ...wished, source, topic: '' }))}
        onApplied={() => {
          announce(`${bucket} is connected, and its events come.`);
          go(hrefOf('bucket', { bucket }));
        }}
        onClose={() => go(hrefOf('buckets'))}
      />
    </section>
  );
}
