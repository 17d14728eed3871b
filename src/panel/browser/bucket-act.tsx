/** The status of a bucket, and the page on which a person does something about it. */
import type { Bucket, ShownBucket } from '../../api/bucket.ts';
import { Link, Text, type Column } from './parts.tsx';
import { may } from './session.ts';
import { numberText } from './words.ts';

type Of = Pick<Bucket, 'bucket' | 'status'>;

/** Whether all of the bucket is shown, as to administrators. */
export function isWhole(bucket: ShownBucket): bucket is Bucket {
  return bucket.source !== undefined;
}

/** How many gaps are open, if any is; a link to them for those who may see them. */
export function Gaps({ of: { bucket, gaps } }: { readonly of: Pick<ShownBucket, 'bucket' | 'gaps'> }) {
  if (gaps === 0) return null;
  if (!may('GET /v1/gaps')) return <>{numberText(gaps)}</>;
  return (
    <Link page="gaps" choices={{ bucket }}>
      {numberText(gaps)}
    </Link>
  );
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

const pages = {
  doctor: ['GET /v1/buckets/{bucket}/doctor', 'Ask the doctor'],
  gaps: ['GET /v1/gaps', 'Show its gaps'],
  jobs: ['GET /v1/jobs', 'Show its jobs'],
} as const;

/** A link to a page about the bucket; nothing for those who may not see it. */
export function ToPage({ page, bucket }: { readonly page: keyof typeof pages; readonly bucket: string }) {
  const [key, text] = pages[page];
  return may(key) ? (
    <Link page={page} choices={{ bucket }}>
      {text}
    </Link>
  ) : null;
}

/** A link to where the status is mended; nothing if there is nothing to do, or not for this person. */
export function Act({ of: { bucket, status } }: { readonly of: Of }) {
  switch (status.act?.kind) {
    case undefined:
      return null;
    case 'doctor':
    case 'gaps':
    case 'jobs':
      return <ToPage page={status.act.kind} bucket={bucket} />;
    case 'plan':
    case 'resume':
    case 'reindex':
      return (
        <Link page="bucket" choices={{ bucket, tab: status.act.kind === 'reindex' ? '' : 'settings' }}>
          {status.act.kind === 'plan' ? 'Make its parts in AWS' : status.act.kind === 'resume' ? 'Resume its notification' : 'Re-index it'}
        </Link>
      );
  }
}

const LOOKS = { ok: 'good', warning: 'notable', bad: 'bad' } as const;

/** How far the index of a bucket can be relied on, why not further, and what is done about it: one line. */
export function Status({ of }: { readonly of: Of }) {
  const { severity, sentence } = of.status;
  return (
    <span class="status">
      <span class={`state dot ${LOOKS[severity]}`}>
        <span class="unseen">{severity}: </span>
        <Text>{sentence}</Text>
      </span>{' '}
      <Act of={of} />
    </span>
  );
}
