/** The doctor of a bucket: what is wrong with the way of its events in AWS. It only reads. */
import { call } from './api.ts';
import { Findings, Severity } from './findings.tsx';
import { useLoaded } from './load.ts';
import { Busy, Failure, Link, Text, Time } from './parts.tsx';
import { may } from './session.ts';
import { countText } from './words.ts';

export function DoctorPage({ bucket }: { readonly bucket: string }) {
  const { value, problem, isLoading, atMs, reload } = useLoaded(`doctor ${bucket}`, (signal) =>
    call('GET /v1/buckets/{bucket}/doctor', { params: { bucket } }, signal),
  );
  return (
    <>
      <div class="heading">
        <h1>
          Doctor of <Text>{bucket}</Text>
        </h1>
        <button type="button" disabled={isLoading} onClick={reload}>
          Run again
        </button>
      </div>
      {problem !== undefined && <Failure problem={problem} />}
      {isLoading && <Busy>Reading AWS…</Busy>}
      {value !== undefined && (
        <>
          <p>
            <Severity of={value.status} />{' '}
            {value.findings.length === 0 ? 'Nothing is wrong that can be seen' : countText(value.findings.length, 'finding')}
            {', as of '}
            <Time at={new Date(atMs ?? 0).toISOString()} />
          </p>
          {value.findings.length === 0 ? <NothingFound bucket={bucket} /> : <Findings findings={value.findings} bucket={bucket} />}
        </>
      )}
      <p class="links">
        <Link page="bucket" choices={{ bucket, tab: 'settings' }}>
          Its settings
        </Link>
      </p>
    </>
  );
}

function NothingFound({ bucket }: { readonly bucket: string }) {
  return (
    <p class="empty">
      Topic, policies, subscription, rule, queues and configuration are as they must be. To prove the whole way, put an object into the
      bucket, and{' '}
      {may('GET /v1/objects') ? (
        <Link page="search" choices={{ bucket }}>
          search for it
        </Link>
      ) : (
        'search for it'
      )}{' '}
      some seconds later.
    </p>
  );
}
