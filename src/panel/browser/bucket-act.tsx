/** Buckets with their status, and what a person does about it: a button, or a link to the page that has one. */
import type { ComponentChildren } from 'preact';
import type { Bucket, ShownBucket } from '../../registry/contract/bucket.ts';
import { call, type AnswerTo } from './api.ts';
import { facts } from './facts.ts';
import { AskedAct, Check, Field } from './form.tsx';
import { PAGE_MAX, useAnswer, type Loaded } from './load.ts';
import { announce, type Column, Link, Text } from './parts.tsx';
import { go, hrefOf, place, type Choices } from './place.ts';
import { may } from './session.ts';

type Of = Pick<Bucket, 'bucket' | 'status'>;
type Act = NonNullable<Bucket['status']['act']>;

/** The day is read as often, so that what is beside each other is of one moment. A person who watches a job has its page, which is read more often. */
export const EVERY_MS = 10_000;

/** All buckets, which many parts of a page show: they are read once for all of them. Of a larger installation the first ones by name are known. */
export function useBuckets(): Loaded<AnswerTo<'GET /v1/buckets'>> {
  return useAnswer('GET /v1/buckets', { query: { limit: PAGE_MAX } }, { everyMs: EVERY_MS, freshMs: 1_000 });
}

/** One bucket, read again and again. */
export function useBucket(bucket: string): Loaded<ShownBucket> {
  return useAnswer('GET /v1/buckets/{bucket}', { params: { bucket } }, { everyMs: EVERY_MS, freshMs: 1_000 });
}

/** The column of a table whose rows lead to their bucket. */
export const bucketColumn: Column<{ readonly bucket: string }> = [
  'Bucket',
  ({ bucket }) => (
    <Link page="bucket" choices={{ bucket }}>
      <Text>{bucket}</Text>
    </Link>
  ),
  'row',
];

const LOOKS = { ok: 'good', warning: 'notable', bad: 'bad' } as const;
export type StatusLook = (typeof LOOKS)[keyof typeof LOOKS];

/** The look of a bucket's status: `good` is compared and equal, and nothing else. */
export function lookOf({ status: { severity } }: Pick<Bucket, 'status'>): StatusLook {
  return LOOKS[severity];
}

/** The worst first. */
export function byUrgency({ status: a, bucket }: ShownBucket, { status: b, bucket: other }: ShownBucket): number {
  return facts.bucketStates.indexOf(a.state) - facts.bucketStates.indexOf(b.state) || (bucket < other ? -1 : 1);
}

interface ToldProps {
  /** It is read to those who do not see the colour. */
  readonly look: StatusLook;
  readonly text: string;
  /** What is done about it. */
  readonly children?: ComponentChildren;
}

/** What happened, and beside it what is done about it. */
export function Told({ look, text, children }: ToldProps) {
  return (
    <span class="status">
      <span class={`state dot ${look}`}>
        <span class="unseen">{look}: </span>
        <Text>{text}</Text>
      </span>{' '}
      {children}
    </span>
  );
}

/** How far the index of a bucket can be relied on, why not further, and what is done about it. */
export function Status({ of: { bucket, status }, offersReindex = false }: { readonly of: Of; readonly offersReindex?: boolean }) {
  const { sentence, act } = status;
  return (
    <Told look={lookOf({ status })} text={sentence}>
      {act === undefined && offersReindex ? (
        <ReindexButton bucket={bucket}>Re-index now</ReindexButton>
      ) : (
        <StatusAct bucket={bucket} act={act} />
      )}
    </Told>
  );
}

/** What is done where the bucket's connection is checked and made. */
const CONNECTION_ACTS = {
  doctor: 'Check its connection',
  plan: 'Make its parts in AWS',
  resume: 'Resume its notification',
  remove: 'Disconnect it',
} as const;

/** Nothing, where there is nothing to do, or not for this person. */
export function StatusAct({ bucket, act }: { readonly bucket: string; readonly act: Pick<Act, 'kind' | 'job_id'> | undefined }) {
  if (act === undefined || !may('GET /v1/buckets/{bucket}/doctor')) return null;
  const { kind, job_id: id } = act;
  if (kind === 'reindex') return <ReindexButton bucket={bucket}>Re-index it</ReindexButton>;
  if (kind === 'jobs') {
    return (
      <Link page={id === undefined ? 'activity' : 'job'} choices={id === undefined ? { bucket } : { id }}>
        {id === undefined ? 'Show its jobs' : 'Show the job'}
      </Link>
    );
  }
  return (
    <Link page="bucket" choices={{ bucket, tab: 'connection' }}>
      {CONNECTION_ACTS[kind]}
    </Link>
  );
}

interface ReindexProps {
  readonly bucket: string;
  /** Only keys that begin with this, to begin with. */
  readonly prefix?: string | undefined;
  readonly look?: string;
  readonly children: string;
}

/** The button beside a text that says a re-index finds it. */
export function ReindexButton({ bucket, prefix = '', look = 'outline small', children }: ReindexProps) {
  async function start({ prefix: begins = '', report, repair, fill }: Choices): Promise<void> {
    const here = place.read();
    const mode = report === undefined ? ('apply' as const) : ('report' as const);
    // a box that is disabled is not entered, also if the source has changed since it was checked
    const body = { prefix: begins, mode, repair: repair !== undefined, fill: fill !== undefined };
    const { id } = await call('POST /v1/buckets/{bucket}/reindex', { params: { bucket }, body });
    // the person may have left meanwhile
    if (place.read() === here) go(hrefOf('job', { id }));
    else announce(`The re-index of ${bucket} has begun.`);
  }
  if (!may('POST /v1/buckets/{bucket}/reindex')) return null;
  return (
    <AskedAct text={children} look={look} title={`Re-index ${bucket}`} submit="Start" act={start}>
      <p>Tally compares every object, or those with the prefix, with the index, and corrects what differs. Searches work meanwhile.</p>
      <RepairCheck bucket={bucket} />
      <Field label="Prefix" name="prefix" value={prefix} hint="Only keys that begin with this. Empty: all keys." />
      <Check label="Only report differences" name="report" hint="Nothing is written." />
      <Check
        label="Fill in missing fields"
        name="fill"
        hint="Also writes documents that lack the enrichment, or a field that a listing gives."
      />
    </AskedAct>
  );
}

/** It is made at each opening, so that it is never checked from before, and cannot be checked where it would clash with another source. */
function RepairCheck({ bucket }: Pick<ReindexProps, 'bucket'>) {
  const { source = 'another source' } = useBucket(bucket).value ?? {};
  const isPossible = source === 'notification';
  return (
    <Check
      label="Repair"
      name="repair"
      isDisabled={!isPossible}
      hint={
        isPossible
          ? 'First creates the bucket’s storage event notification again. Leave it unchecked if its events arrive in another way.'
          : `Not possible: the events of this bucket come by ${source}, and repair would create a storage event notification, which would clash with that.`
      }
    />
  );
}
