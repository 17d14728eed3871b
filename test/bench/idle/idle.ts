/** The bench `idle`: what a registry asks of AWS and of its index, and what it needs, while nothing happens. */
import { setTimeout as delay } from 'node:timers/promises';
import { commandOf, countOption, countsOption, openSearchUrl } from '../bench-command.ts';
import { indexCpuUs } from '../opensearch.ts';
import type { MeasuredProcess } from '../processes.ts';
import { atMost } from '../report.ts';
import { openIdleWorld } from './idle-world.ts';
import { dollarsOfMonth } from './prices.ts';

interface IdleOptions {
  readonly buckets: readonly number[];
  readonly workers: number;
  readonly events: number;
  readonly speed: number;
  readonly minutes: number;
}

/** The bench's command. */
export const idleBench = commandOf<IdleOptions>({
  name: 'idle',
  description: 'Requests, CPU, memory and log lines of a registry whose buckets change nothing, and what its requests cost on AWS.',
  options: [
    countsOption('--buckets <counts>', 'how many are connected: a run of each', [0, 100_000], [1, 50, 1_000]),
    countOption('--workers <count>', 'processes of all roles (one with SQLite)', [1, 9], 1),
    countOption('--events <rate>', 'that come a second of the clock of the workers, each of one key', [0, 100_000], 0),
    countOption('--speed <factor>', 'by which time passes faster', [1, 60], 12),
    countOption('--minutes <count>', 'of that time, which are measured', [1, 1_440], 60),
  ],
  help: `
The first bucket is connected by a notification (\`tally bucket add\`) to
an AWS of the bench's: fauxqs, which knows no EventBridge and no CloudTrail. The
others are made like it. All are empty. Their records are then made to be a month old, with the checks of
each spread over the interval of that check: so an hour has its share of what
comes once a day (region and versioning) and once a week (compares). What is left
out is the size of each bucket, which is recorded once a day.

The workers run with a clock that is --speed times faster. Measured are --minutes
of it, after ten minutes in which they start. CPU is that of the workers, by the
time of their clock.

TALLY_BENCH_OPENSEARCH_URL names an OpenSearch that holds nothing of value, and may
have an index for each bucket (cluster.max_shards_per_node); without it SQLite.`,
  run,
});

/** The first round of everything has ended. */
const START_MINUTES = 10;
/** Without a faster clock it ends sooner than that. */
const START_MAX_MS = 60_000;
const MINUTE_MS = 60_000;
const INDEX_ALONE_MS = 20_000;

async function run(options: IdleOptions, tell: (text: string) => void) {
  const runs: Awaited<ReturnType<typeof runOf>>[] = [];
  for (const buckets of options.buckets) {
    tell(`${buckets} buckets: connecting`);
    runs.push(await runOf(buckets, options, tell));
  }
  const operations = runs.flatMap(({ row: { buckets }, perMinute }) =>
    Object.entries(perMinute)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([operation, count]) => ({ buckets, operation, perMinute: count, dollarsAMonth: dollarsOfMonth(operation, count) })),
  );
  const ofService = ({ perMinute }: (typeof runs)[number], service: string) =>
    Object.entries(perMinute).filter(([operation]) => operation.startsWith(service));
  const dollars = (each: (typeof runs)[number], service = ''): number =>
    ofService(each, service).reduce((sum, counted) => sum + dollarsOfMonth(...counted), 0);
  const services = runs.flatMap((each) =>
    ['SQS', 'S3', 'SNS', 'OpenSearch', ''].map((service) => ({
      buckets: each.row.buckets,
      service: service || 'all',
      requestsPerMinute: ofService(each, service && `${service} `).reduce((sum, [, count]) => sum + count, 0),
      dollarsAMonth: dollars(each, service && `${service} `),
    })),
  );
  const targets = runs.flatMap((each) => [
    atMost(`${each.row.buckets} buckets: CPU, % of a core`, each.row.cpuPercent, CPU_PERCENT_MAX),
    atMost(`${each.row.buckets} buckets: AWS, dollars a month`, dollars(each), DOLLARS_MAX),
  ]);
  return { runs: runs.map(({ row }) => row), services, operations, targets };
}

async function runOf(buckets: number, { workers: count, events, speed, minutes }: IdleOptions, tell: (text: string) => void) {
  const url = openSearchUrl();
  const world = await openIdleWorld(buckets, url);
  const indexUs = (): Promise<number> => (url === undefined ? Promise.resolve(0) : indexCpuUs(url));
  try {
    const aloneUs = await indexUs();
    if (url !== undefined) await delay(INDEX_ALONE_MS);
    const alonePerMs = ((await indexUs()) - aloneUs) / INDEX_ALONE_MS;
    const workers = await world.startWorkers(url === undefined ? 1 : count, speed);
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
      row: {
        buckets,
        workers: workers.length,
        events,
        speed,
        minutes,
        /** Of all workers together. */
        cpuPercent: percent(cpuUsOf(workers) - before.cpuUs),
        /** Of the worker with the most. */
        rssMib: Math.max(...workers.map((worker) => worker.usage().rssBytes)) / 1_048_576,
        logLinesPerMinute: perMinute(linesOf(workers) - before.lines),
        /** Of OpenSearch, beyond what it needs for the indexes alone, and for these. */
        ...(url !== undefined && { indexCpuPercent: percent(indexAddedUs), indexIdleCpuPercent: alonePerMs / 10 }),
      },
      perMinute: Object.fromEntries(Object.entries(requests).map(([operation, number]) => [operation, perMinute(number)])),
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
