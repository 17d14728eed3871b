/** How the bytes of a bucket divide into classes and ages, and how they grew. */
import { useMemo } from 'preact/hooks';
import { call, type AnswerTo } from './api.ts';
import { GroupName, groupNames } from './group-name.tsx';
import { sortedBy } from './group-table.tsx';
import { useLoaded } from './load.ts';
import { Size } from './parts.tsx';
import { usageOf, type Search } from './search-place.ts';
import { useChart } from './series-charts.tsx';
import { countText, sizeText } from './words.ts';

/** How the bytes divide into classes and ages. */
export function Shares({ search, bucket }: { readonly search: Search; readonly bucket: string }) {
  return (
    <div class="charts">
      {(['class', 'age'] as const).map((by) => (
        <Share key={by} search={{ ...search, by }} bucket={bucket} />
      ))}
    </div>
  );
}

/** As many parts of a bar as can be told apart. */
const SHADES = 6;

function Share({ search, bucket }: { readonly search: Search & { readonly by: 'class' | 'age' }; readonly bucket: string }) {
  const request = usageOf(search, bucket);
  const { value } = useLoaded(`usage of all ${JSON.stringify(request)}`, (signal) => call('GET /v1/usage', { query: request }, signal));
  if (value === undefined || value.items.length === 0) return null;
  const shown = (search.by === 'age' ? value.items : sortedBy(value.items, 'bytes')).slice(0, SHADES);
  return (
    <section aria-label={groupNames[search.by]}>
      <h3>{groupNames[search.by]}</h3>
      <div class="parts" aria-hidden="true">
        {shown.map(({ name, bytes }, place) => (
          <span key={name ?? ''} class={`shade-${place}`} style={{ flexGrow: bytes }} />
        ))}
      </div>
      <ul class="legend">
        {shown.map((group, place) => (
          <li key={group.name ?? ''}>
            <span class={`swatch shade-${place}`} aria-hidden="true" />
            <GroupName group={group} search={search} prefix="" /> <Size bytes={group.bytes} />
          </li>
        ))}
      </ul>
    </section>
  );
}

const GROWTH_DAYS = 90;

/** The bytes of the bucket day by day. */
export function Growth({ bucket }: { readonly bucket: string }) {
  const Chart = useChart();
  const query = { bucket, days: GROWTH_DAYS };
  const { value } = useLoaded(`growth ${bucket}`, (signal) => call('GET /v1/usage/growth', { query }, signal));
  const growth = value?.items[0];
  const drawn = useMemo(() => drawnOf(growth), [growth]);
  if (Chart === undefined || drawn.atMs.length < 2) return null;
  return (
    <section aria-label="Growth">
      <Chart title="Growth of the bucket" source="Summed once a day by Tally itself" {...drawn} show={sizeText} />
      <Missed days={growth?.missed ?? []} />
    </section>
  );
}

type GrowthOf = AnswerTo<'GET /v1/usage/growth'>['items'][number];

/** A day without sums is a gap in the line, and a row without a number in the table. */
function drawnOf({ days = [], missed = [] }: Partial<GrowthOf> = {}) {
  const all = [...days, ...missed.map(({ day }) => ({ day, bytes: null }))].toSorted((a, b) => (a.day < b.day ? -1 : 1));
  return {
    atMs: all.map(({ day }) => new Date(`${day}T00:00:00Z`).getTime()),
    lines: [{ label: 'bytes', look: 'accent' as const, values: all.map(({ bytes }) => bytes) }],
  };
}

const reasons = { 'too-slow': 'the sums took longer than 10 seconds', 'index-missing': 'the index of the bucket was missing' } as const;
/** More days are in the table. */
const MISSED_MAX = 3;

function Missed({ days }: { readonly days: GrowthOf['missed'] }) {
  if (days.length === 0) return null;
  const others = days.length > MISSED_MAX ? `, and on ${countText(days.length - MISSED_MAX, 'earlier day')}` : '';
  return (
    <p class="quiet">
      Not summed on{' '}
      {days
        .slice(-MISSED_MAX)
        .map(({ day, reason }) => `${day} (${reasons[reason]})`)
        .join(', ')}
      {others}.
    </p>
  );
}
