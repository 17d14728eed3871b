/** One bucket: how it stands, how it is connected, and its re-index. */
import { useState } from 'preact/hooks';
import type { Bucket, ShownBucket } from '../../api/buckets.ts';
import { call } from './api.ts';
import { Gaps, isWhole } from './bucket-act.tsx';
import { SettingsSection } from './bucket-settings.tsx';
import { Status } from './bucket-act.tsx';
import { Wiring } from './connection.tsx';
import { useLoaded } from './load.ts';
import { Details, type Detail, Link, Shown, Text, Time } from './parts.tsx';
import { ReindexDialog } from './reindex-dialog.tsx';
import { RemoveDialog } from './remove-dialog.tsx';
import { may } from './session.ts';
import { numberText, plainText } from './words.ts';

const REFRESH_MS = 15_000;

export function BucketPage({ name }: { readonly name: string }) {
  const [open, setOpen] = useState<'reindex' | 'remove'>();
  const read = (signal: AbortSignal) => call('GET /v1/buckets/{bucket}', { params: { bucket: name } }, signal);
  const loaded = useLoaded(`bucket ${name}`, read, { everyMs: REFRESH_MS });
  return (
    <>
      <div class="heading">
        <h1>
          Bucket <Text>{name}</Text>
        </h1>
        {loaded.value !== undefined && may('POST /v1/buckets/{bucket}/reindex') && (
          <button type="button" onClick={() => setOpen('reindex')}>
            Re-Index and Repair
          </button>
        )}
      </div>
      <Shown loaded={loaded} isLive>
        {(bucket) => (
          <>
            <BucketDetails bucket={bucket} />
            {isWhole(bucket) && may('POST /v1/buckets') && <SettingsSection key={name} bucket={bucket} onSaved={loaded.reload} />}
            {may('DELETE /v1/buckets/{bucket}') && <RemoveSection onRemove={() => setOpen('remove')} />}
            {isWhole(bucket) && open === 'reindex' && <ReindexDialog bucket={bucket} onClose={() => setOpen(undefined)} />}
            {open === 'remove' && <RemoveDialog name={name} onClose={() => setOpen(undefined)} />}
          </>
        )}
      </Shown>
    </>
  );
}

function RemoveSection({ onRemove }: { readonly onRemove: () => void }) {
  return (
    <section>
      <h2>Disconnect</h2>
      <p>
        What Tally made in AWS and the documents in the index are deleted, unless they are to stay. The bucket and its objects are not
        touched.
      </p>
      <button type="button" class="danger outline" onClick={onRemove}>
        Disconnect…
      </button>
    </section>
  );
}

/** What administrators are shown of a bucket. */
function wholeDetails(bucket: Bucket): readonly Detail[] {
  const { lifecycle } = bucket;
  return [
    ['In AWS', bucket.wiring !== undefined && <Wiring of={bucket} />],
    ['Source', bucket.source],
    ['Topic identifier', bucket.topic_arn !== undefined && <Text>{bucket.topic_arn}</Text>],
    ['Enrichment', bucket.enrich],
    ['Region', bucket.region],
    ['Account', bucket.account],
    ['Versioning', plainText(bucket.versioning.status)],
    ['Last event', <Time at={bucket.last_event_at} />],
    ['Last whole compare', <Time at={bucket.last_compared_at} />],
    ['Connected', <Time at={bucket.created_at} />],
    ['Connected by', <Text>{bucket.created_by}</Text>],
    [
      'Lifecycle rules',
      lifecycle && (lifecycle.rules === 'unknown' ? 'may not be read' : `${numberText(lifecycle.expiring)} expire objects`),
    ],
  ];
}

/** A person who reads a part of the bucket is not shown when the rest of it changed. */
function timesOf({ last_event_at: event, last_compared_at: compared }: ShownBucket): readonly Detail[] {
  return [
    ['Last event', event !== undefined && <Time at={event} />],
    ['Last whole compare', compared !== undefined && <Time at={compared} />],
  ];
}

function BucketDetails({ bucket }: { readonly bucket: ShownBucket }) {
  const name = bucket.bucket;
  return (
    <>
      <Details
        of={[
          ['Status', <Status of={bucket} />],
          ...(isWhole(bucket) ? wholeDetails(bucket) : timesOf(bucket)),
          ['Open gaps', <Gaps of={bucket} />],
        ]}
      />
      <p class="links">
        <Link page="search" choices={{ bucket: name }}>
          Search in this bucket
        </Link>
        {may('GET /v1/jobs') && (
          <Link page="jobs" choices={{ bucket: name }}>
            Its jobs
          </Link>
        )}
        {may('GET /v1/gaps') && (
          <Link page="gaps" choices={{ bucket: name }}>
            Its gaps
          </Link>
        )}
      </p>
    </>
  );
}
