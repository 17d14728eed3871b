/** The last 24 hours' events a minute and their lag, as step lines. Where nothing is known, nothing is drawn. */
import { countText, durationText } from '../../base/texts.ts';
import type { AnswerTo } from './api.ts';
import { useAnswer } from './load.ts';
import { Shown } from './parts.tsx';

type Events = AnswerTo<'GET /v1/events'>;

/** Processes store their counts once a minute. */
const EVERY_MS = 60_000;
const HEIGHT = 100;

interface Line {
  readonly label: string;
  readonly look: 'accent' | 'quiet';
  /** One value for each step of the day; undefined: not known. */
  readonly values: readonly (number | undefined)[];
}

export function EventCharts() {
  const loaded = useAnswer('GET /v1/events', {}, { everyMs: EVERY_MS });
  return (
    <section aria-labelledby="events-heading">
      <h2 id="events-heading">The last 24 hours</h2>
      <Shown loaded={loaded}>{(events) => <Charts of={events} />}</Shown>
    </section>
  );
}

function Charts({ of: { from, to, step_s: stepS, steps } }: { readonly of: Events }) {
  const [fromMs, toMs] = [Date.parse(from), Date.parse(to)];
  const count = Math.floor((toMs - fromMs) / 1_000 / stepS);
  // the current step doesn't have all its events yet
  const places = new Map(steps.map((step) => [Math.round((Date.parse(step.at) - fromMs) / 1_000 / stepS), step]));
  const valuesOf = (value: (step: Events['steps'][number]) => number | undefined): Line['values'] =>
    Array.from({ length: count }, (_, place) => {
      const step = places.get(place);
      return step && value(step);
    });
  const lags: readonly Line[] = [
    { label: 'p50', look: 'accent', values: valuesOf((step) => step.lag_p50_ms) },
    { label: 'p95', look: 'quiet', values: valuesOf((step) => step.lag_p95_ms) },
  ];
  const events: Line = { label: 'events', look: 'accent', values: valuesOf((step) => (step.events * 60) / stepS) };
  return (
    <div class="charts">
      <Chart title="Events a minute" lines={[events]} show={countText} />
      <Chart title="Lag from event to search" lines={lags} show={lagText} />
    </div>
  );
}

/** A lag as text: 850 ms, 12 s, 3 min. */
function lagText(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : durationText(ms);
}

interface ChartProps {
  readonly title: string;
  readonly lines: readonly Line[];
  readonly show: (value: number) => string;
}

function Chart({ title, lines, show }: ChartProps) {
  const known = lines.flatMap(({ values }) => values.filter((value) => value !== undefined));
  const top = topOf(Math.max(...known, 1));
  return (
    <figure class="chart">
      <figcaption>
        <h3>{title}</h3>
        <ul class="legend">
          {lines.map(({ label, look }) => (
            <li key={label} class={`dot ${look}`}>
              {label}
            </li>
          ))}
        </ul>
      </figcaption>
      {known.length === 0 ? (
        <p class="empty">Nothing is known of this time yet.</p>
      ) : (
        <>
          <small class="quiet">{show(top)}</small>
          <svg
            viewBox={`0 0 ${lines[0]?.values.length ?? 0} ${HEIGHT}`}
            preserveAspectRatio="none"
            role="img"
            aria-label={`${title}: at most ${show(Math.max(...known))}`}
          >
            {lines.map(({ label, look, values }) => (
              <path key={label} class={look} d={stepsPath(values.map((value) => value && value / top))} />
            ))}
          </svg>
          <small class="quiet times">
            <span>24 hours ago</span>
            <span>12 hours ago</span>
            <span>now</span>
          </small>
        </>
      )}
    </figure>
  );
}

/** The next of 1, 2, 5, 10, 20, 50, … */
function topOf(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 2, 5].find((each) => each * power >= value) ?? 10);
}

/** A step line from fractions of the height. Unknown values leave gaps. */
function stepsPath(values: readonly (number | undefined)[]): string {
  return values
    .map((value, place) => {
      if (value === undefined) return '';
      const y = Math.round((1 - value) * HEIGHT * 10) / 10;
      return `${values[place - 1] === undefined ? `M${place} ${y}` : `V${y}`}H${place + 1}`;
    })
    .join('');
}
