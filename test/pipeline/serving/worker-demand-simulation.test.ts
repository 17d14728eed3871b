import { describe, expect, it } from 'vitest';
import { createRandom } from '../../support/random/seeded.ts';
import type { Scaler, Second } from '../../support/scaling-simulation.ts';
import {
  createKeda,
  createTargetTracking,
  RATE_PER_S,
  signals,
  simulate,
  TARGET_LAG_S,
  WORKERS_MAX,
} from '../../support/scaling-simulation.ts';

const HOUR_S = 3_600;
const BURST_AT_S = 60;
/** Until a burst meets the workers that it needs: SQS's numbers, KEDA's poll, the first worker's start, the autoscaler, the others' start. */
const SEEN_S = 15 + 30 + 15 + 15 + 15;
/** A step of the autoscaler and a worker's start. */
const SCALING_STEP_S = 30;

/** As config/scaling/keda-prometheus.yaml has it. */
const kedaWithPrometheus = (): Scaler => createKeda([signals.wantedMax, signals.busy, signals.queueLength]);

/** What so many workers can just do. */
function steady(workers: number): () => number {
  return () => workers * RATE_PER_S;
}

function noisy(workers: number): () => number {
  const random = createRandom(7);
  return () => (workers * RATE_PER_S * random.integer(60, 140)) / 100;
}

function burst(messages: number): (second: number) => number {
  return (second) => (second === BURST_AT_S ? messages : 0);
}

interface Summary {
  readonly workersMin: number;
  readonly workersMax: number;
  readonly changes: number;
  readonly lagMaxS: number;
}

function summary(seconds: readonly Second[]): Summary {
  const workers = seconds.map((each) => each.workers);
  return {
    workersMin: Math.min(...workers),
    workersMax: Math.max(...workers),
    changes: workers.filter((count, index) => index > 0 && count !== workers[index - 1]).length,
    lagMaxS: Math.max(...seconds.map(({ lagS }) => lagS)),
  };
}

/** How the second of two hours of the same went. */
function secondHour(arrivalsPerS: (second: number) => number, scaler: Scaler): Summary {
  return summary(simulate({ arrivalsPerS, seconds: 2 * HOUR_S, workers: 1, scaler }).slice(HOUR_S));
}

function drainedAfterS(seconds: readonly Second[]): number {
  return seconds.findIndex(({ backlog }, second) => second > BURST_AT_S && backlog === 0) - BURST_AT_S;
}

describe('the greater of tally_workers_wanted and the busy workers', () => {
  it.each([0, 1])('drains a burst within the target lag, once it is seen, and leaves no worker (%i at first)', (workers) => {
    const seconds = simulate({ arrivalsPerS: burst(30_000), seconds: HOUR_S, workers, scaler: kedaWithPrometheus() });
    expect(drainedAfterS(seconds)).toBeLessThanOrEqual(TARGET_LAG_S + SEEN_S);
    // 30,000 messages in 60 s at 100/s each: five
    expect(summary(seconds).workersMax).toBe(5);
    expect(seconds.at(-1)?.workers).toBe(0);
  });

  it.each([
    [0.2, 1],
    [0.95, 1],
    [2.5, 3],
    [7.5, 8],
  ])('keeps the workers that steady arrivals need, without a backlog and without a change: %f are %i', (load, workers) => {
    expect(secondHour(steady(load), kedaWithPrometheus())).toEqual({ workersMin: workers, workersMax: workers, changes: 0, lagMaxS: 0 });
  });

  it('is not shaken by arrivals that vary by two fifths from second to second', () => {
    const { workersMin, workersMax, changes, lagMaxS } = secondHour(noisy(7.5), kedaWithPrometheus());
    expect([workersMin, workersMax]).toEqual([8, 8]);
    expect(changes).toBe(0);
    expect(lagMaxS).toBeLessThan(TARGET_LAG_S);
  });

  it('follows arrivals up and down, and to none when they stop', () => {
    const stages = [1.5, 6.5, 2.5, 0];
    const arrivalsPerS = (second: number): number => (stages[Math.floor(second / HOUR_S)] ?? 0) * RATE_PER_S;
    const seconds = simulate({ arrivalsPerS, seconds: stages.length * HOUR_S, workers: 1, scaler: kedaWithPrometheus() });
    expect(summary(seconds).lagMaxS).toBeLessThanOrEqual(TARGET_LAG_S + SEEN_S);
    const ends = stages.map((_, stage) => summary(seconds.slice((stage + 0.75) * HOUR_S, (stage + 1) * HOUR_S)));
    expect(ends.map(({ workersMin, workersMax }) => [workersMin, workersMax])).toEqual([
      [2, 2],
      [7, 7],
      [3, 3],
      [0, 0],
    ]);
  });

  it('does what its maximum allows with a backlog that wants more', () => {
    const messages = 1_000_000;
    const seconds = simulate({ arrivalsPerS: burst(messages), seconds: HOUR_S, workers: 0, scaler: kedaWithPrometheus() });
    expect(summary(seconds).workersMax).toBe(WORKERS_MAX);
    expect(drainedAfterS(seconds)).toBeLessThanOrEqual(messages / (WORKERS_MAX * RATE_PER_S) + 2 * SEEN_S);
    expect(seconds.at(-1)?.workers).toBe(0);
  });
});

// as config/scaling/keda-sqs.yaml has it
describe('the backlog alone, where there is no Prometheus', () => {
  it('stops workers that keep up, and is bearable all the same: about the target lag', () => {
    const { workersMin, lagMaxS } = secondHour(steady(7.5), createKeda([signals.queueLength]));
    expect(workersMin).toBeLessThan(7.5);
    expect(lagMaxS).toBeLessThanOrEqual(TARGET_LAG_S + SCALING_STEP_S);
  });
});

describe('arrivals and backlog over tasks, tracked by ECS', () => {
  it.each([
    [0.5, 1],
    [2.5, 3],
    [7.5, 8],
  ])('keep the tasks that steady arrivals need: %f are %i', (load, workers) => {
    const hour = secondHour(steady(load), createTargetTracking(signals.arrivals));
    expect(hour).toEqual({ workersMin: workers, workersMax: workers, changes: 0, lagMaxS: 0 });
  });

  it('drain a burst within the target lag and the three minutes that target tracking takes', () => {
    const scaler = createTargetTracking(signals.arrivals);
    const seconds = simulate({ arrivalsPerS: burst(30_000), seconds: HOUR_S, workers: 1, scaler });
    expect(drainedAfterS(seconds)).toBeLessThanOrEqual(TARGET_LAG_S + 3 * 60);
    expect(seconds.at(-1)?.workers).toBe(1);
  });
});
