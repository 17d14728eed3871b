/** The status of a bucket, and the page on which a person does something about it. */
import type { Bucket, ShownBucket } from '../../api/buckets.ts';
import { Link, Text } from './parts.tsx';
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

/** A link to where the status is mended; nothing if there is nothing to do, or not for this person. */
export function Act({ of: { bucket, status } }: { readonly of: Of }) {
  switch (status.act?.kind) {
    case undefined:
      return null;
    case 'doctor':
      return may('GET /v1/buckets/{bucket}/doctor') ? (
        <Link page="doctor" choices={{ bucket }}>
          Ask the doctor
        </Link>
      ) : null;
    case 'gaps':
      return may('GET /v1/gaps') ? (
        <Link page="gaps" choices={{ bucket }}>
          Show its gaps
        </Link>
      ) : null;
    case 'jobs':
      return may('GET /v1/jobs') ? (
        <Link page="jobs" choices={{ bucket }}>
          Show its jobs
        </Link>
      ) : null;
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
