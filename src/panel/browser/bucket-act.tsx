/** Buckets with their status and what a person can do about it: a button, or a link to the page that has one. */
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

/** The day is read just as often, so that neighbouring values show the same moment. A job's own page is read more often. */
export const EVERY_MS = 10_000;

/** All buckets, read once for all the parts of a page that show them. In a large installation, only the first by name. */
export function useBuckets(): Loaded<AnswerTo<'GET /v1/buckets'>> {
  return useAnswer('GET /v1/buckets', { query: { limit: PAGE_MAX } }, { everyMs: EVERY_MS, freshMs: 1_000 });
}

/** One bucket, read repeatedly. */
export function useBucket(bucket: string): Loaded<ShownBucket> {
  return useAnswer('GET /v1/buckets/{bucket}', { params: { bucket } }, { everyMs: EVERY_MS, freshMs: 1_000 });
}

/** A table's bucket column, whose cells link to the bucket's page. */
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

/** How a bucket's status looks. Only a bucket that was compared and found equal is `good`. */
export function lookOf({ status: { severity } }: Pick<Bucket, 'status'>): StatusLook {
  return LOOKS[severity];
}

/** Worst first. */
export function byUrgency({ status: a, bucket }: ShownBucket, { status: b, bucket: other }: ShownBucket): number {
  return facts.bucketStates.indexOf(a.state) - facts.bucketStates.indexOf(b.state) || (bucket < other ? -1 : 1);
}

interface ToldProps {
  /** Screen readers say it in place of the colour. */
  readonly look: StatusLook;
  readonly text: string;
  /** What can be done about it. */
  readonly children?: ComponentChildren;
}

/** What happened, and beside it what can be done about it. */
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

/** How far a bucket's index can be relied on, why no further, and what can be done about it. */
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

/** Leads to where the bucket's connection is checked and made. */
const CONNECTION_ACTS = {
  doctor: 'Check its connection',
  plan: 'Create its parts in AWS',
  resume: 'Resume its notification',
  remove: 'Disconnect it',
} as const;

/** Shows nothing if there is nothing to do, or if this person may not do it. */
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
  /** The prefix that the form suggests. */
  readonly prefix?: string | undefined;
  readonly look?: string;
  readonly children: string;
}

/** The button beside a text that recommends a re-index. */
export function ReindexButton({ bucket, prefix = '', look = 'outline small', children }: ReindexProps) {
  async function start({ prefix: begins = '', report, repair, fill }: Choices): Promise<void> {
    const here = place.read();
    const mode = report === undefined ? ('apply' as const) : ('report' as const);
    // a disabled box counts as unchecked, even if it was checked before the source changed
    const body = { prefix: begins, mode, repair: repair !== undefined, fill: fill !== undefined };
    const { id } = await call('POST /v1/buckets/{bucket}/reindex', { params: { bucket }, body });
    // the person may have left in the meantime
    if (place.read() === here) go(hrefOf('job', { id }));
    else announce(`The re-index of ${bucket} has started.`);
  }
  if (!may('POST /v1/buckets/{bucket}/reindex')) return null;
  return (
    <AskedAct text={children} look={look} title={`Re-index ${bucket}`} submit="Start" act={start}>
      <p>Tally compares every object (or those with the prefix) with the index and corrects the differences. Searches keep working.</p>
      <RepairCheck bucket={bucket} />
      <Field label="Prefix" name="prefix" value={prefix} hint="Only keys that begin with this. Empty: all keys." />
      <Check label="Only report differences" name="report" hint="Tally writes nothing." />
      <Check label="Fill in missing fields" name="fill" hint="Also writes documents that lack enrichment, or a field that listings have." />
    </AskedAct>
  );
}

/** Made again at each opening, so that no old check mark stays, and disabled where a repair would clash with another source. */
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
          ? 'First recreates the bucket’s storage event notification. Leave it unchecked if events arrive in another way.'
          : `Not possible: this bucket’s events come through ${source}, and a storage event notification would clash with it.`
      }
    />
  );
}
