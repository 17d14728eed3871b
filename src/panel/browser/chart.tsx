/** A chart over time (uPlot), with its numbers as a table for those who cannot see it, its source and its last moment. */
import { useEffect, useId, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { useObserved } from './observed.ts';
import { type Column, Table } from './parts.tsx';
import { theme } from './theme.ts';
import { agoText, timeText, zone } from './words.ts';

/** One line, in one of the colours of the style sheet. */
export interface ChartLine {
  readonly label: string;
  readonly look: 'accent' | 'quiet' | 'good' | 'notable' | 'bad';
  /** One for each time; null: not known. */
  readonly values: readonly (number | null)[];
}

interface ChartProps {
  readonly title: string;
  /** Where the numbers come from. */
  readonly source: string;
  readonly atMs: readonly number[];
  readonly lines: readonly ChartLine[];
  readonly show: (value: number) => string;
}

const HEIGHT_PX = 180;
/** More rows are for a program. */
const ROWS_MAX = 48;

const dark = matchMedia('(prefers-color-scheme: dark)');

export function Chart({ title, source, atMs, lines, show }: ChartProps) {
  const id = useId();
  const inZone = useObserved(zone);
  const last = atMs.at(-1);
  const shownAt = (value: number | null | undefined): string => (typeof value === 'number' ? show(value) : '–');
  return (
    <figure class="chart" aria-labelledby={id}>
      <figcaption>
        <h3 id={id}>{title}</h3>
        <ul class="legend">
          {lines.map(({ label, look, values }) => {
            const value = values.findLast((each) => each !== null);
            return (
              <li key={label}>
                <span class={`dot ${look}`}>{label}</span> {typeof value === 'number' && <strong>{show(value)}</strong>}
              </li>
            );
          })}
        </ul>
      </figcaption>
      <Drawing atMs={atMs} lines={lines} show={show} inUtc={inZone === 'utc'} />
      <small class="quiet">
        {source}
        {last !== undefined && `; last ${agoText(new Date(last).toISOString(), Date.now())}`}
      </small>
      <details>
        <summary class="quiet">As a table</summary>
        <Table
          label={`${title}, as a table`}
          columns={[
            ['Time', ([at]) => timeText(new Date(at).toISOString(), inZone), 'row'],
            ...lines.map(({ label, values }): Column<readonly [atMs: number, place: number]> => [
              label,
              ([, place]) => shownAt(values[place]),
            ]),
          ]}
          rows={atMs.map((at, place) => [at, place] as const).slice(-ROWS_MAX)}
          keyOf={([at]) => at}
        />
      </details>
    </figure>
  );
}

interface DrawingProps extends Pick<ChartProps, 'atMs' | 'lines' | 'show'> {
  readonly inUtc: boolean;
}

function Drawing({ atMs, lines, show, inUtc }: DrawingProps) {
  const place = useRef<HTMLDivElement>(null);
  const look = useObserved(theme);
  useEffect(() => {
    const { current } = place;
    if (current === null) return undefined;
    const colour = (name: string): string => getComputedStyle(current).getPropertyValue(`--drawn-${name}`) || 'gray';
    let drawn: uPlot | undefined;
    const draw = (): void => {
      drawn?.destroy();
      drawn = new uPlot(optionsOf({ lines, show, inUtc, colour, width: current.clientWidth }), dataOf(atMs, lines), current);
    };
    const resized = new ResizeObserver(() => drawn?.setSize({ width: current.clientWidth, height: HEIGHT_PX }));
    draw();
    resized.observe(current);
    dark.addEventListener('change', draw);
    return () => {
      dark.removeEventListener('change', draw);
      resized.disconnect();
      drawn?.destroy();
    };
  }, [atMs, lines, look, inUtc]);
  return <div ref={place} class="drawing" aria-hidden="true" />;
}

/** uPlot takes seconds. */
function dataOf(atMs: readonly number[], lines: readonly ChartLine[]): uPlot.AlignedData {
  return [atMs.map((at) => at / 1_000), ...lines.map(({ values }) => [...values])];
}

const two = (value: number): string => String(value).padStart(2, '0');

/** From one mark to the next, in seconds. */
function stepOf([first = 0, second = 0]: readonly number[]): number {
  return second - first;
}

/** A time of an axis: its day where the steps are days, and at midnight. */
function tickText(seconds: number, stepS: number, inUtc: boolean): string {
  const at = new Date(seconds * 1_000 - (inUtc ? 0 : new Date(seconds * 1_000).getTimezoneOffset() * 60_000));
  const [hours, minutes] = [at.getUTCHours(), at.getUTCMinutes()];
  const isDay = stepS >= 86_400 || (hours === 0 && minutes === 0);
  return isDay ? `${two(at.getUTCMonth() + 1)}-${two(at.getUTCDate())}` : `${two(hours)}:${two(minutes)}`;
}

interface Look extends Pick<DrawingProps, 'lines' | 'show' | 'inUtc'> {
  readonly width: number;
  readonly colour: (name: string) => string;
}

function optionsOf({ lines, show, inUtc, colour, width }: Look): uPlot.Options {
  const axis = { stroke: colour('quiet'), font: '11px system-ui', grid: { stroke: colour('line'), width: 1 }, ticks: { show: false } };
  return {
    width,
    height: HEIGHT_PX,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    ...(inUtc && { tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1_000), 'UTC') }),
    axes: [
      { ...axis, size: 28, values: (_, splits) => splits.map((seconds) => tickText(seconds, stepOf(splits), inUtc)) },
      { ...axis, size: 64, values: (_, splits) => splits.map((value) => show(value)) },
    ],
    scales: { y: { range: (_, __, max) => [0, Math.max(1, max * 1.1)] } },
    series: [
      {},
      ...lines.map(({ label, look }, place) => ({
        label,
        stroke: colour(look),
        width: 1.5,
        points: { show: false },
        ...(place === 0 && lines.length === 1 && { fill: colour('wash') }),
      })),
    ],
  };
}
