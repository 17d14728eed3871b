/**
 * A queue, workers and what scales them, second by second: arrivals, workers that each settle `RATE_PER_S`, SQS's approximate numbers,
 * scrapes, KEDA with the autoscaler that it feeds, or ECS's target tracking. All delays are the real ones; nothing here waits.
 */
import { createWorkerDemand, type WorkersWanted } from '../../src/pipeline/serving/worker-demand.ts';

/** What one worker settles in a second when it has enough to do. */
export const RATE_PER_S = 100;
export const TARGET_LAG_S = 60;
export const WORKERS_MAX = 20;

/** SQS's approximate numbers are about this old; workers read them, and publish what they want, every 15 s; Prometheus scrapes as often. */
const SQS_DELAY_S = 15;
const READ_S = 15;
const SCRAPE_S = 15;
/** A pod or task that is wanted receives after this long. */
const START_S = 15;
/** What `rate(…[1m])` and `max_over_time(…[30m])` look back on. */
const RATE_WINDOW_S = 60;
const BEST_WINDOW_S = 1_800;

interface Sample {
  readonly atS: number;
  readonly settled: number;
}

interface Worker {
  readonly startsS: number;
  /** Workers do not read at the same second. */
  readonly phaseS: number;
  readonly workersWanted: WorkersWanted;
  settled: number;
  wanted: number;
  scraped: Sample[];
}

/** What a scaler can know in a second. */
export interface View {
  /** tally_workers_wanted of each worker, as last scraped. */
  readonly wanted: readonly number[];
  /** rate(tally_messages_total{settlement="delete"}[1m]) of each worker, and the greatest of any within 30 minutes. */
  readonly ratesPerS: readonly number[];
  readonly bestRatePerS: number;
  /** ApproximateNumberOfMessages. */
  readonly visible: number;
  /** NumberOfMessagesSent, per second over the last minute. */
  readonly sentPerS: number;
}

/** Workers wanted; several together: the greatest. */
export type Signal = (view: View) => number;

export interface Scaler {
  /** Workers from this second on. */
  scale(second: number, workers: number, view: View): number;
}

export interface Second {
  readonly backlog: number;
  readonly workers: number;
  /** How long the message that is next has waited. */
  readonly lagS: number;
}

export interface Scenario {
  readonly arrivalsPerS: (second: number) => number;
  readonly seconds: number;
  /** Workers at the beginning. */
  readonly workers: number;
  readonly scaler: Scaler;
}

/** Plays the scenario. */
export function simulate({ arrivalsPerS, seconds, workers: atFirst, scaler }: Scenario): readonly Second[] {
  let now = 0;
  let started = 0;
  const backlogs: number[] = [0];
  const arrived: number[] = [0];
  let settled = 0;
  let oldest = 0;
  let best: readonly Sample[] = [];
  let view: View = { wanted: [], ratesPerS: [], bestRatePerS: 0, visible: 0, sentPerS: 0 };

  function start(startsS: number): Worker {
    const clock = { nowMs: () => now * 1_000, monotonicMs: () => now * 1_000, steadyMs: () => now * 1_000, sleep: () => Promise.resolve() };
    const phaseS = (7 * started++) % READ_S;
    return { startsS, phaseS, workersWanted: createWorkerDemand({ clock, targetLagS: TARGET_LAG_S }), settled: 0, wanted: 0, scraped: [] };
  }

  let workers = Array.from({ length: atFirst }, () => start(0));

  function work(): void {
    const running = workers.filter(({ startsS }) => now >= startsS);
    const waiting = at(backlogs, now - 1) + arrivalsPerS(now);
    const done = Math.min(waiting, running.length * RATE_PER_S);
    for (const worker of running) worker.settled += done / running.length;
    settled += done;
    backlogs[now] = waiting - done;
    arrived[now] = at(arrived, now - 1) + arrivalsPerS(now);
    while (oldest < now && at(arrived, oldest) <= settled + 1e-6) oldest += 1;
  }

  function look(): void {
    const visible = Math.round(at(backlogs, now - SQS_DELAY_S));
    for (const worker of workers.filter(({ startsS }) => now >= startsS)) {
      if ((now + worker.phaseS) % READ_S === 0) worker.wanted = worker.workersWanted(visible, worker.settled);
      if (now % SCRAPE_S === 0)
        worker.scraped = [...worker.scraped, { atS: now, settled: worker.settled }].slice(-1 - RATE_WINDOW_S / SCRAPE_S);
    }
    if (now % SCRAPE_S !== 0) {
      view = { ...view, visible };
      return;
    }
    const seen = workers.filter(({ scraped }) => scraped.length > 0);
    const ratesPerS = seen.map(({ scraped }) => rateOf(scraped));
    best = [...best, { atS: now, settled: Math.max(0, ...ratesPerS) }].filter(({ atS }) => atS > now - BEST_WINDOW_S);
    const sentPerS = (at(arrived, now) - at(arrived, now - 60)) / 60;
    view = {
      wanted: seen.map(({ wanted }) => wanted),
      ratesPerS,
      bestRatePerS: Math.max(...best.map((each) => each.settled)),
      visible,
      sentPerS,
    };
  }

  const played: Second[] = [];
  for (now = 1; now <= seconds; now++) {
    work();
    look();
    const count = scaler.scale(now, workers.length, view);
    const added = Array.from({ length: Math.max(0, count - workers.length) }, () => start(now + START_S));
    workers = [...workers, ...added].slice(0, count);
    played.push({ backlog: Math.round(at(backlogs, now)), workers: count, lagS: now - oldest });
  }
  return played;
}

function rateOf(samples: readonly Sample[]): number {
  const [first, last] = [samples[0], samples.at(-1)];
  return first === undefined || last === undefined || last.atS === first.atS ? 0 : (last.settled - first.settled) / (last.atS - first.atS);
}

function at(values: readonly number[], index: number): number {
  return values[Math.max(0, index)] ?? 0;
}

/** The triggers of config/scaling/, each with the value by which it divides. */
export const signals = {
  /** max(tally_workers_wanted) */
  wantedMax: ({ wanted }) => Math.max(0, ...wanted),
  /** sum(rate(…[1m])) / max(max_over_time(rate(…[1m])[30m:])) */
  busy: ({ ratesPerS, bestRatePerS }) => (bestRatePerS === 0 ? 0 : sum(ratesPerS) / bestRatePerS),
  /** aws-sqs-queue: messages / queueLength */
  queueLength: ({ visible }) => visible / (RATE_PER_S * TARGET_LAG_S),
  /** CloudWatch: what arrives and what waits, per second, over a worker's rate */
  arrivals: ({ sentPerS, visible }) => (sentPerS + visible / TARGET_LAG_S) / RATE_PER_S,
} as const satisfies Record<string, Signal>;

function sum(values: readonly number[]): number {
  return values.reduce((total, each) => total + each, 0);
}

const KEDA_POLL_S = 30;
const KEDA_COOLDOWN_S = 300;
const HPA_SYNC_S = 15;
const HPA_TOLERANCE = 0.1;
const HPA_SCALE_DOWN_WINDOW_S = 300;

/** KEDA between 0 and 1 (any trigger active; cooldown), and between 1 and N the autoscaler: the greatest of the triggers' ceil(value), its tolerance, policies and scale-down window. */
export function createKeda(triggers: readonly Signal[], scaleDownWindowS = HPA_SCALE_DOWN_WINDOW_S): Scaler {
  let activeS = 0;
  let proposals: { readonly atS: number; readonly workers: number }[] = [];

  function autoscale(second: number, workers: number, values: readonly number[]): number {
    const proposal = Math.max(
      1,
      ...values.map((value) => (Math.abs(value / workers - 1) <= HPA_TOLERANCE ? workers : Math.ceil(value - 1e-9))),
    );
    proposals = [...proposals, { atS: second, workers: Math.min(proposal, WORKERS_MAX) }].filter(
      ({ atS }) => atS > second - Math.max(scaleDownWindowS, 1),
    );
    if (proposal > workers) return Math.min(proposal, WORKERS_MAX, Math.max(2 * workers, workers + 4));
    return Math.min(workers, Math.max(...proposals.map((each) => each.workers)));
  }

  return {
    scale(second, workers, view) {
      const values = triggers.map((trigger) => trigger(view));
      if (values.some((value) => value > 0)) activeS = second;
      if (workers === 0) return second % KEDA_POLL_S === 0 && activeS === second ? 1 : 0;
      if (second % KEDA_POLL_S === 0 && second - activeS > KEDA_COOLDOWN_S) {
        proposals = [];
        return 0;
      }
      return second % HPA_SYNC_S === 0 ? autoscale(second, workers, values) : workers;
    },
  };
}

const CLOUDWATCH_S = 60;

/** ECS's target tracking: out when three minutes are above the target, in when fifteen are a tenth below it; never from 0. */
export function createTargetTracking(signal: Signal): Scaler {
  let minutes: number[] = [];
  return {
    scale(second, workers, view) {
      if (second % CLOUDWATCH_S !== 0) return workers;
      minutes = [...minutes, signal(view) / workers].slice(-15);
      const latest = minutes.at(-1) ?? 0;
      const isOut = minutes.length >= 3 && minutes.slice(-3).every((each) => each > 1);
      const isIn = minutes.length === 15 && minutes.every((each) => each < 0.9);
      if (!isOut && !isIn) return workers;
      minutes = [];
      return Math.min(WORKERS_MAX, Math.max(1, Math.ceil(workers * latest - 1e-9)));
    },
  };
}
