/** The status of a bucket, and what a person does about it: a button, or a link to the page that has one. */
import { useState } from 'preact/hooks';
import type { Bucket, ShownBucket } from '../../api/bucket.ts';
import { call } from './api.ts';
import { facts } from './facts.ts';
import { Check, Field, FormDialog, Opener, useIsShown } from './form.tsx';
import { useLoaded, type Loaded } from './load.ts';
import { announce, type Column, Link, Text } from './parts.tsx';
import { go, hrefOf } from './place.ts';
import { may } from './session.ts';

type Of = Pick<Bucket, 'bucket' | 'status'>;

const REFRESH_MS = 15_000;

/** One bucket, read again and again. */
export function useBucket(bucket: string): Loaded<ShownBucket> {
  const read = (signal: AbortSignal) => call('GET /v1/buckets/{bucket}', { params: { bucket } }, signal);
  return useLoaded(`bucket ${bucket}`, read, { everyMs: REFRESH_MS, freshMs: 1_000 });
}

/** The column of a table whose rows lead to their bucket. */
export const bucketColumn: Column<{ readonly bucket: string }> = [
  'Bucket',
  ({ bucket }) => (
    <Link page="bucket" choices={{ bucket }} isRow>
      <Text>{bucket}</Text>
    </Link>
  ),
  'row',
];

/** One line; its tooltip has the whole text. */
export function Sentence({ children }: { readonly children: string }) {
  return (
    <span class="line" title={children}>
      <Text>{children}</Text>
    </span>
  );
}

const LOOKS = { ok: 'good', warning: 'notable', bad: 'bad' } as const;

/** The look of a bucket's status: `good` is compared and equal, and nothing else. */
export function lookOf({ status: { severity } }: Pick<Bucket, 'status'>): 'good' | 'notable' | 'bad' {
  return LOOKS[severity];
}

/** The worst first. */
export function byUrgency({ status: a, bucket }: ShownBucket, { status: b, bucket: other }: ShownBucket): number {
  return facts.bucketStates.indexOf(a.state) - facts.bucketStates.indexOf(b.state) || (bucket < other ? -1 : 1);
}

/** How far the index of a bucket can be relied on, why not further, and what is done about it: one line. */
export function Status({ of }: { readonly of: Of }) {
  const { severity, sentence } = of.status;
  return (
    <span class="status">
      <span class={`state dot ${lookOf(of)}`}>
        <span class="unseen">{severity}: </span>
        <Sentence>{sentence}</Sentence>
      </span>{' '}
      <StatusAct of={of} />
    </span>
  );
}

/** Nothing, where there is nothing to do, or not for this person. */
export function StatusAct({ of: { bucket, status } }: { readonly of: Of }) {
  const { act } = status;
  switch (act?.kind) {
    case undefined:
      return null;
    case 'doctor':
      return <Connection bucket={bucket} />;
    case 'plan':
      return <Connection bucket={bucket}>Make its parts in AWS</Connection>;
    case 'resume':
      return <Connection bucket={bucket}>Resume its notification</Connection>;
    case 'jobs':
      return <JobsLink bucket={bucket} id={act?.job_id} />;
    case 'reindex':
      return <ReindexButton bucket={bucket}>Re-index it</ReindexButton>;
  }
}

/** Leads to the job that a person decides about, or to all jobs of the bucket. */
function JobsLink({ bucket, id }: { readonly bucket: string; readonly id: string | undefined }) {
  if (!may('GET /v1/jobs')) return null;
  return id === undefined ? (
    <Link page="activity" choices={{ bucket }}>
      Show its jobs
    </Link>
  ) : (
    <Link page="job" choices={{ id }}>
      Show the job
    </Link>
  );
}

interface ConnectionProps {
  readonly bucket: string;
  readonly children?: string;
}

/** Leads to where the bucket's connection is checked and made. */
export function Connection({ bucket, children = 'Check its connection' }: ConnectionProps) {
  if (!may('GET /v1/buckets/{bucket}/doctor')) return null;
  return (
    <Link page="bucket" choices={{ bucket, tab: 'connection' }}>
      {children}
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
export function ReindexButton({ bucket, prefix, look = 'outline small', children }: ReindexProps) {
  if (!may('POST /v1/buckets/{bucket}/reindex')) return null;
  return (
    <Opener text={children} look={look}>
      {(close) => <ReindexDialog bucket={bucket} prefix={prefix} onClose={close} />}
    </Opener>
  );
}

/** Why Repair cannot be chosen; undefined: it can. */
function repairRefusal(source: Bucket['source'] | undefined): string | undefined {
  if (source === 'notification') return undefined;
  return `Not possible: the events of this bucket come by ${source ?? 'another source'}, and repair would create a storage event notification, which would clash with that.`;
}

interface DialogProps extends Pick<ReindexProps, 'bucket' | 'prefix'> {
  readonly onClose: () => void;
}

/** The dialog is created at each opening, so that Repair is never checked from before. */
function ReindexDialog({ bucket, prefix: first = '', onClose }: DialogProps) {
  const [prefix, setPrefix] = useState(first);
  const [isRepair, setRepair] = useState(false);
  const [isReport, setReport] = useState(false);
  const [isFill, setFill] = useState(false);
  const refusal = repairRefusal(useBucket(bucket).value?.source);
  // the source may have changed since the box was checked
  const isRepaired = isRepair && refusal === undefined;
  const isShown = useIsShown();
  async function start(): Promise<void> {
    const body = { prefix, mode: isReport ? ('report' as const) : ('apply' as const), repair: isRepaired, fill: isFill };
    const { id } = await call('POST /v1/buckets/{bucket}/reindex', { params: { bucket }, body });
    // the person may have left meanwhile
    if (isShown()) go(hrefOf('job', { id }));
    else announce(`The re-index of ${bucket} has begun.`);
  }
  return (
    <FormDialog
      title={`Re-index ${bucket}`}
      onClose={onClose}
      submit={isReport ? 'Start the report' : 'Start the re-index'}
      onSubmit={start}
    >
      <p>Tally compares every object of the bucket with the index, and corrects what differs. Searches work meanwhile.</p>
      <Check
        label="Repair"
        isChecked={isRepaired}
        onChange={setRepair}
        isDisabled={refusal !== undefined}
        hint={
          refusal ??
          'Creates the storage event notification of the bucket again first. Leave it unchecked if another way delivers its events.'
        }
      />
      <Field label="Prefix" value={prefix} onChange={setPrefix} hint="Only keys that begin with this. Empty: all keys." />
      <Check label="Only report differences" isChecked={isReport} onChange={setReport} hint="Nothing is written." />
      <Check
        label="Fill in missing fields"
        isChecked={isFill}
        onChange={setFill}
        hint="Writes documents too that lack a field which a listing gives, or the enrichment."
      />
    </FormDialog>
  );
}
