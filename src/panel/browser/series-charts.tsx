/** Events, their lag and the statuses of buckets over time, from the registry's own records. The charts are loaded after the page. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import { call, type AnswerTo } from './api.ts';
import type { Chart, ChartLine } from './chart.tsx';
import { useLoaded } from './load.ts';
import { Busy, Failure, Link } from './parts.tsx';
import type { Choices, PageName } from './place.ts';
import { numberText } from './words.ts';

type Series = AnswerTo<'GET /v1/series'>;

const RANGES = [
  ['1', 'Hour'],
  ['24', 'Day'],
  ['336', '14 days'],
] as const;
/** Records are written once a minute. */
const EVERY_MS = 60_000;
const SOURCE = 'Recorded by Tally itself';
const LAG = 'Lag from event to search';

/** The chart, once its script is there. */
export function useChart(): typeof Chart | undefined {
  const [loaded, set] = useState<{ readonly Chart: typeof Chart }>();
  useEffect(() => {
    void import('./chart.tsx').then(set);
  }, []);
  return loaded?.Chart;
}

interface ChartsProps {
  readonly page: PageName;
  readonly choices: Choices;
  /** Of this bucket only. */
  readonly bucket?: string;
}

export function SeriesCharts({ page, choices, bucket }: ChartsProps) {
  const chosen = RANGES.find(([hours]) => hours === choices['hours'])?.[0] ?? '24';
  const query = { hours: Number(chosen), ...(bucket !== undefined && { bucket }) };
  const { value, problem, reload } = useLoaded(`series ${JSON.stringify(query)}`, (signal) => call('GET /v1/series', { query }, signal), {
    everyMs: EVERY_MS,
  });
  return (
    <section aria-labelledby="series-heading">
      <div class="heading">
        <h2 id="series-heading">Over time</h2>
        <nav aria-label="Time">
          <ul class="switch">
            {RANGES.map(([hours, text]) => (
              <li key={hours}>
                <Link page={page} choices={{ ...choices, hours }} isCurrent={hours === chosen} isBeside>
                  {text}
                </Link>
              </li>
            ))}
          </ul>
        </nav>
      </div>
      {problem !== undefined && value === undefined && <Failure problem={problem} retry={reload} />}
      {problem === undefined && value === undefined && (
        <div class="charts-place">
          <Busy />
        </div>
      )}
      {value !== undefined && <Charts of={value} isOfBucket={bucket !== undefined} />}
    </section>
  );
}

/** A duration of a lag: 850 ms, 12 s, 3 min. */
function lagText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return ms < 120_000 ? `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s` : `${Math.round(ms / 60_000)} min`;
}

function Charts({ of, isOfBucket }: { readonly of: Series; readonly isOfBucket: boolean }) {
  const Drawn = useChart();
  const drawn = useMemo(() => linesOf(of), [of]);
  if (of.points.length === 0) {
    return <p class="empty">{of.recording ? 'Nothing was recorded in this time.' : 'Nothing is recorded: TALLY_SERIES is off.'}</p>;
  }
  if (Drawn === undefined) {
    return (
      <div class="charts-place">
        <Busy />
      </div>
    );
  }
  const { atMs, events, lag, statuses } = drawn;
  return (
    <div class="charts">
      <Drawn title="Events a minute" source={SOURCE} atMs={atMs} lines={events} show={(value) => numberText(Math.round(value * 10) / 10)} />
      {lag.every(({ values }) => values.every((value) => value === null)) ? (
        <section>
          <h3>{LAG}</h3>
          <p class="empty">No event arrived in this time, so there is no lag.</p>
        </section>
      ) : (
        <Drawn title={LAG} source={SOURCE} atMs={atMs} lines={lag} show={lagText} />
      )}
      {!isOfBucket && <Drawn title="Buckets by status" source={SOURCE} atMs={atMs} lines={statuses} show={numberText} />}
    </div>
  );
}

const worse: ReadonlySet<string> = new Set(['events_lost', 'paused', 'waiting', 'deletions_held', 'differs', 'events_unproven']);

function linesOf({ points, step_s: stepS }: Series) {
  const counted = (fits: (state: string) => boolean) =>
    points.map(({ statuses }) => {
      if (statuses === undefined) return null;
      return Object.entries(statuses).reduce((sum, [state, count]) => sum + (fits(state) ? count : 0), 0);
    });
  const statuses: readonly ChartLine[] = [
    { label: 'no known difference', look: 'good', values: counted((state) => state === 'ok') },
    { label: 'may differ', look: 'notable', values: counted((state) => state !== 'ok' && !worse.has(state)) },
    { label: 'differ', look: 'bad', values: counted((state) => worse.has(state)) },
  ];
  const events: readonly ChartLine[] = [{ label: 'events', look: 'accent', values: points.map((point) => (point.events * 60) / stepS) }];
  const lag: readonly ChartLine[] = [
    { label: 'p50', look: 'accent', values: points.map((point) => point.lag_p50_ms ?? null) },
    { label: 'p95', look: 'quiet', values: points.map((point) => point.lag_p95_ms ?? null) },
  ];
  return { atMs: points.map(({ at }) => new Date(at).getTime()), events, lag, statuses };
}
