/** All buckets, worst first. */
import { useState } from 'preact/hooks';
import type { ShownBucket } from '../../registry/contract/bucket.ts';
import { countText } from '../../base/texts.ts';
import { BucketTable, useDay } from './at-work.tsx';
import { useBuckets } from './bucket-act.tsx';
import { Field } from './form.tsx';
import { PAGE_MAX, useAnswer } from './load.ts';
import { type Column, Shown, Size, Text, Time } from './parts.tsx';
import { may } from './session.ts';

/** More buckets than fit on a screen get a filter box. */
const FEW = 10;
/** The sums of all buckets are computed again for each request. */
const SUMS_FRESH_MS = 60_000;

export function BucketsPage() {
  const loaded = useBuckets();
  const mayAdd = may('POST /v1/buckets');
  return (
    <>
      <div class="heading">
        <h1>Buckets</h1>
        {mayAdd && (
          <form class="actions">
            <input type="hidden" name="page" value="add" />
            <input name="bucket" aria-label="Bucket name" placeholder="Bucket name" autocomplete="off" spellcheck={false} />
            <button type="submit">Add bucket</button>
          </form>
        )}
      </div>
      <Shown loaded={loaded} isLive>
        {({ items, next }) => (
          <>
            {items.length > 0 ? (
              <Connected items={items} />
            ) : (
              <p class="empty">
                {mayAdd
                  ? 'No bucket is connected. Add one to search its objects.'
                  : 'You cannot read any bucket. Ask an administrator to connect one or to grant you access.'}
              </p>
            )}
            {next !== undefined && <p>Only the first {countText(PAGE_MAX)} by name are shown. To find another, search for bucket:NAME.</p>}
          </>
        )}
      </Shown>
    </>
  );
}

function Connected({ items }: { readonly items: readonly ShownBucket[] }) {
  const [part, setPart] = useState('');
  const { value: day } = useDay();
  const request = { query: { by: 'bucket' as const, limit: PAGE_MAX } };
  const sums = useAnswer('GET /v1/usage', request, { freshMs: SUMS_FRESH_MS, isWanted: may('GET /v1/usage') });
  const sumOf = new Map(sums.value?.by[0]?.groups.map((group) => [group.name, group]));
  const rows = items.filter(({ bucket }) => bucket.includes(part.trim().toLowerCase()));
  // a bucket without objects is in no group
  const more: readonly Column<ShownBucket>[] = [
    ['Objects', ({ bucket }) => (sums.value === undefined ? '–' : countText(sumOf.get(bucket)?.objects ?? 0)), 'number'],
    ['Bytes', ({ bucket }) => <Size bytes={sums.value && (sumOf.get(bucket)?.bytes ?? 0)} />, 'number'],
    ['Last event', ({ last_event_at: at }) => <Time at={at} />],
    ['Last full comparison', ({ last_compared_at: at }) => <Time at={at} />, 'less'],
  ];
  return (
    <>
      {items.length > FEW && <Field label="Part of the name" onTyped={setPart} />}
      <BucketTable of={rows} day={day} more={more} />
      {sums.problem !== undefined && (
        <p class="quiet">
          – Objects and bytes are not known: <Text>{sums.problem.message}</Text>
        </p>
      )}
    </>
  );
}
