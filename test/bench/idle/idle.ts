/** The bench `idle`: what a registry asks of AWS and of its index, and what it needs, while nothing happens. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Command } from 'commander';
import { InvalidArgumentError, Option } from 'commander';
import { commandOf, whole } from '../bench-command.ts';
import { indexCpuUs } from '../index-cpu.ts';
import type { MeasuredProcess } from '../processes.ts';
import { tableText } from '../statistics.ts';
import { atMost, targetsText } from '../targets.ts';
import { openIdleWorld } from './idle-world.ts';
import { dollarsOfMonth } from './prices.ts';

interface IdleOptions {
  readonly buckets: readonly number[];
  readonly workers: number;
  readonly events: number;
  readonly speed: number;
  readonly minutes: number;
}

interface IdleRun {
  readonly buckets: number;
  /** By operation. */
  readonly requestsPerMinute: Readonly<Record<string, number>>;
  /** Of all workers together. */
  readonly cpuPercent: number;
  /** Of the worker with the most. */
  readonly rssMib: number;
  readonly logLinesPerMinute: number;
  /** Beyond what it needs for the indexes alone; undefined with SQLite. */
  readonly indexCpuPercent: number | undefined;
  /** What it needs for the indexes alone. */
  readonly indexIdleCpuPercent: number | undefined;
}

interface IdleReport extends Omit<IdleOptions, 'buckets'> {
  readonly bench: 'idle';
  readonly date: string;
  readonly node: string;
  readonly runs: readonly IdleRun[];
}

/** The bench's command. */
export const idleBench = commandOf<IdleOptions, IdleReport>({ name: 'idle', describe, run, text: reportText });

function describe(command: Command): Command {
  return command
    .description('Requests, CPU, memory and log lines of a registry whose buckets change nothing, and what its requests cost on AWS.')
    .addOption(
      new Option('--buckets <counts>', 'how many are connected, comma-separated: a run of each')
        .argParser(counts)
        .default([1, 50, 1_000], '1,50,1000'),
    )
    .addOption(new Option('--workers <count>', 'processes of all roles (one with SQLite)').argParser(whole(1, 9)).default(1))
    .addOption(
      new Option('--events <rate>', 'that come a second of the clock of the workers, each of one key')
        .argParser(whole(0, 100_000))
        .default(0),
    )
    .addOption(new Option('--speed <factor>', 'by which time passes faster').argParser(whole(1, 60)).default(12))
    .addOption(new Option('--minutes <count>', 'of that time, which are measured').argParser(whole(1, 1_440)).default(60))
    .addHelpText(
      'after',
      `
The first bucket is connected by a notification (\`tally bucket add --apply\`) to
an AWS of the bench's: fauxqs, which knows no EventBridge and no CloudTrail. The
others are made like it. All are empty. Their records are then made to be a month old, with the checks of
each spread over the interval of that check: so an hour has its share of what
comes once a day (region and versioning) and once a week (compares). What is left
out is the size of each bucket, which is recorded once a day.

The workers run with a clock that is --speed times faster. Measured are --minutes
of it, after ten minutes in which they start. CPU is that of the workers, by the
time of their clock.

Environment:
  TALLY_BENCH_OPENSEARCH_URL  an OpenSearch without data that matters, which may
                              have an index for each bucket
                              (cluster.max_shards_per_node); without it SQLite`,
    );
}

function counts(text: string): readonly number[] {
  const all = text.split(',').map(Number);
  if (all.every((each) => Number.isInteger(each) && each >= 0 && each <= 100_000)) return all;
  throw new InvalidArgumentError('It must be whole numbers.');
}

/** The first round of everything has ended. */
const START_MINUTES = 10;
/** Without a faster clock it ends sooner than that. */
const START_MAX_MS = 60_000;
const MINUTE_MS = 60_000;
const INDEX_ALONE_MS = 20_000;

async function run(options: IdleOptions, tell: (text: string) => void): Promise<IdleReport> {
  const { workers, events, speed, minutes } = options;
  const runs: IdleRun[] = [];
  for (const buckets of options.buckets) {
    tell(`${buckets} buckets: connecting`);
    runs.push(await runOf(buckets, options, tell));
  }
  return { bench: 'idle', date: new Date().toISOString(), node: process.version, workers, events, speed, minutes, runs };
}

async function runOf(
  buckets: number,
  { workers: count, events, speed, minutes }: IdleOptions,
  tell: (text: string) => void,
): Promise<IdleRun> {
  const openSearchUrl = process.env['TALLY_BENCH_OPENSEARCH_URL'];
  const world = await openIdleWorld(buckets, openSearchUrl);
  const indexUs = (): Promise<number> => (openSearchUrl === undefined ? Promise.resolve(0) : indexCpuUs(openSearchUrl));
  try {
    const aloneUs = await indexUs();
    if (openSearchUrl !== undefined) await delay(INDEX_ALONE_MS);
    const alonePerMs = ((await indexUs()) - aloneUs) / INDEX_ALONE_MS;
    const workers = await world.startWorkers(openSearchUrl === undefined ? 1 : count, speed);
    tell(`${buckets} buckets: starting`);
    if (events > 0) await world.tell(events);
    await delay(Math.min(START_MAX_MS, (START_MINUTES * MINUTE_MS) / speed));
    await world.counts();
    const before = { cpuUs: cpuUsOf(workers), lines: linesOf(workers), indexUs: await indexUs(), atMs: performance.now() };
    tell(`${buckets} buckets: measuring ${minutes} minutes in ${((minutes * 60) / speed).toFixed(0)} s`);
    await delay((minutes * MINUTE_MS) / speed);
    const tookMs = performance.now() - before.atMs;
    const requests = await world.counts();
    const measuredMs = tookMs * speed;
    const perMinute = (value: number): number => (value * MINUTE_MS) / measuredMs;
    const percent = (cpuUs: number): number => cpuUs / measuredMs / 10;
    const indexAddedUs = (await indexUs()) - before.indexUs - alonePerMs * tookMs;
    return {
      buckets,
      requestsPerMinute: Object.fromEntries(Object.entries(requests).map(([operation, number]) => [operation, perMinute(number)])),
      cpuPercent: percent(cpuUsOf(workers) - before.cpuUs),
      rssMib: Math.max(...workers.map((worker) => worker.usage().rssBytes)) / 1_048_576,
      logLinesPerMinute: perMinute(linesOf(workers) - before.lines),
      indexCpuPercent: openSearchUrl === undefined ? undefined : percent(indexAddedUs),
      indexIdleCpuPercent: openSearchUrl === undefined ? undefined : alonePerMs / 10,
    };
  } finally {
    await world.close();
  }
}

function cpuUsOf(workers: readonly MeasuredProcess[]): number {
  return workers.reduce((sum, worker) => sum + worker.usage().cpuUs, 0);
}

function linesOf(workers: readonly MeasuredProcess[]): number {
  return workers.reduce((sum, worker) => sum + worker.lines, 0);
}

/** Of one worker, with up to 1,000 buckets. */
const CPU_PERCENT_MAX = 1;
const DOLLARS_MAX = 5;

function reportText({ date, node, workers, events, speed, minutes, runs }: IdleReport): string {
  const operations = [...new Set(runs.flatMap(({ requestsPerMinute }) => Object.keys(requestsPerMinute)))].sort();
  const of = (figure: (each: IdleRun) => number | undefined, digits = 2): readonly string[] =>
    runs.map((each) => figure(each)?.toFixed(digits) ?? '–');
  const rows = operations.map((operation) => [operation, ...of(({ requestsPerMinute }) => requestsPerMinute[operation] ?? 0)]);
  const dollars = ({ requestsPerMinute }: IdleRun, service = ''): number =>
    Object.entries(requestsPerMinute)
      .filter(([operation]) => operation.startsWith(service))
      .reduce((sum, [operation, perMinute]) => sum + dollarsOfMonth(operation, perMinute), 0);
  const all = (service: string) => (each: IdleRun) =>
    Object.entries(each.requestsPerMinute).reduce(
      (sum, [operation, perMinute]) => sum + (operation.startsWith(service) ? perMinute : 0),
      0,
    );
  return [
    `idle, ${workers} worker(s), ${events === 0 ? 'no events' : `${events} events/s`}, ${minutes} minutes at ${speed} × speed, Node ${node}, ${date}`,
    '',
    tableText([
      ['', ...runs.map(({ buckets }) => `${buckets} buckets`)],
      ['CPU, % of a core', ...of(({ cpuPercent }) => cpuPercent)],
      ['CPU of OpenSearch, beyond its own', ...of(({ indexCpuPercent }) => indexCpuPercent)],
      ['CPU of OpenSearch for its indexes', ...of(({ indexIdleCpuPercent }) => indexIdleCpuPercent)],
      ['RSS MiB', ...of(({ rssMib }) => rssMib, 0)],
      ['log lines a minute', ...of(({ logLinesPerMinute }) => logLinesPerMinute)],
      ...['SQS', 'S3', 'SNS'].map((service) => [`${service}, dollars a month`, ...of((each) => dollars(each, `${service} `))]),
      ['AWS, dollars a month', ...of((each) => dollars(each))],
      ...['SQS', 'S3', 'SNS', 'OpenSearch'].map((service) => [`${service}, requests a minute`, ...of(all(`${service} `))]),
      ['requests a minute:', ...runs.map(() => '')],
      ...rows,
    ]),
    '',
    targetsText(
      runs.flatMap((each) => [
        atMost(`${each.buckets} buckets: CPU, % of a core`, each.cpuPercent, CPU_PERCENT_MAX),
        atMost(`${each.buckets} buckets: AWS, dollars a month`, dollars(each), DOLLARS_MAX),
      ]),
    ),
  ].join('\n');
}
