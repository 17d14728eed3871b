/** `tally series` and `tally growth`: what happened over time, and how buckets grew. */
import { defined } from '../domain/defined.ts';
import type { Command } from 'commander';
import type { OperationAnswer, OperationQuery } from '../api/contract.ts';
import { SERIES_HOURS_MAX } from '../api/series.ts';
import { GROWTH_DAYS_MAX } from '../domain/series/growth.ts';
import { moreText, numberOption, printing, listing } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { countText, sizeText, tableText } from './output.ts';

type Series = OperationAnswer<'getSeries'>;
type Growth = OperationAnswer<'getGrowth'>;

/** An hour has sixty lines, which is as many as a person reads. */
const HOURS_DEFAULT = 1;
/** More buckets are in the JSON. */
const BUSIEST_SHOWN = 5;
const NOT_RECORDING = 'Nothing is recorded, because TALLY_SERIES is off.';

/** Adds both commands. */
export function addSeriesCommands(program: Command, cli: Cli): void {
  const series = program
    .command('series')
    .summary('show events, their lag and the statuses of buckets over time')
    .description(
      'Shows what arrived over time, how long it took until a search found it, and how the buckets stood. Records are kept for 14 days. Times are in UTC.',
    )
    .addOption(
      numberOption('--hours <n>', `the last hours (default: ${HOURS_DEFAULT}, without --from and --to)`, { max: SERIES_HOURS_MAX }),
    )
    .option('--from <time>', 'from this time on: 2026-11-21 or 2026-11-21T08:00:00Z')
    .option('--to <time>', 'until this time')
    .option('--bucket <name>', 'only events of this bucket');
  printing(series, 'tally series --hours 24', 'tally series --bucket photos').action(
    async ({ json, ...parameters }: JsonOption & OperationQuery<'getSeries'>) => {
      const options = { json };
      const { hours, from, to, bucket } = parameters;
      const isUsual = hours === undefined && from === undefined && to === undefined;
      const query = { ...parameters, ...(isUsual && { hours: HOURS_DEFAULT }) };
      const answer = await cli.withControl((control, context) => control.getSeries({ query }, context));
      if (!answer.recording) cli.hint(options, NOT_RECORDING);
      if (answer.points.length === 0) cli.hint(options, 'Nothing was recorded in this time.');
      if (answer.points.length > 0 || options.json === true) cli.print(options, answer, () => seriesText(answer));
      if (bucket === undefined && answer.busiest.length > 0) cli.hint(options, busiestText(answer.busiest));
    },
  );

  const growth = program
    .command('growth')
    .summary('show how the objects and bytes of buckets grew')
    .description('Shows the objects and bytes of each bucket day by day, or of all buckets from the first day to the last.')
    .argument('[bucket]', 'one bucket, day by day')
    .addOption(numberOption('--days <n>', 'the last days (default: 30)', { max: GROWTH_DAYS_MAX }));
  listing(growth, 'tally growth --days 90', 'tally growth photos').action(
    async (bucket: string | undefined, { json, ...parameters }: JsonOption & OperationQuery<'getGrowth'>) => {
      const options = { json };
      const query = { ...parameters, ...defined({ bucket }) };
      const answer = await cli.withControl((control, context) => control.getGrowth({ query }, context));
      if (!answer.recording) cli.hint(options, NOT_RECORDING);
      const isEmpty = answer.items.every((item) => item.days.length === 0);
      if (isEmpty) cli.hint(options, 'Nothing was recorded yet: each bucket is summed once a day.');
      if (!isEmpty || options.json === true) cli.print(options, answer, () => growthText(answer.items, bucket !== undefined));
      for (const text of missedTexts(answer.items)) cli.hint(options, text);
      if (answer.next !== undefined) cli.hint(options, moreText(answer.next));
    },
  );
}

/** Why a bucket has no sums of its last days; more days are in the JSON. */
function missedTexts(items: Growth['items']): readonly string[] {
  return items.flatMap(({ bucket, missed }) => {
    const last = missed.at(-1);
    if (last === undefined) return [];
    const others = missed.length === 1 ? '' : `, and on ${countText(missed.length - 1) ?? ''} earlier`;
    return [`${bucket} was not summed on ${last.day}${others}: ${missedReasonTexts[last.reason]}.`];
  });
}

const missedReasonTexts = { 'too-slow': 'the sums took longer than 10 seconds', 'index-missing': 'its index was missing' } as const;

function seriesText({ points, step_s: stepS }: Series): string {
  return tableText(
    ['TIME', 'EVENTS', 'PER SECOND', 'P50', 'P95', 'BUCKETS'],
    points.map(({ at, events, lag_p50_ms: half, lag_p95_ms: most, statuses }) => [
      `${at.slice(0, 16)}Z`,
      countText(events),
      (events / stepS).toFixed(1),
      lagText(half),
      lagText(most),
      statuses &&
        Object.entries(statuses)
          .map(([status, count]) => `${countText(count)} ${status}`)
          .join(', '),
    ]),
  );
}

function lagText(lagMs: number | undefined): string | undefined {
  return lagMs === undefined ? undefined : `${(lagMs / 1_000).toFixed(lagMs < 10_000 ? 1 : 0)} s`;
}

function busiestText(busiest: Series['busiest']): string {
  const shown = busiest.slice(0, BUSIEST_SHOWN).map(({ bucket, events }) => `${bucket} (${countText(events)})`);
  return `The busiest buckets: ${shown.join(', ')}`;
}

function growthText(items: Growth['items'], isOfOne: boolean): string {
  if (isOfOne) {
    return tableText(
      ['DAY', 'OBJECTS', 'SIZE'],
      items.flatMap(({ days }) => days.map(({ day, objects, bytes }) => [day, countText(objects), sizeText(bytes)])),
    );
  }
  return tableText(
    ['BUCKET', 'OBJECTS', 'SIZE', 'MORE OBJECTS', 'MORE BYTES', 'SINCE'],
    items.map(({ bucket, days }) => {
      const [first, last] = [days[0], days.at(-1)];
      if (first === undefined || last === undefined) return [bucket, undefined, undefined, undefined, undefined, undefined];
      const [objects, bytes] = [last.objects - first.objects, last.bytes - first.bytes];
      return [bucket, countText(last.objects), sizeText(last.bytes), signed(objects, countText), signed(bytes, sizeText), first.day];
    }),
  );
}

function signed(change: number, text: (value: number) => string | undefined): string {
  const sign = change < 0 ? '-' : '+';
  return `${sign}${text(Math.abs(change)) ?? ''}`;
}
