import { describe, expect, it } from 'vitest';
import { createWorkerDemand } from '../../src/serve/worker-demand.ts';
import { createFakeClock } from '../support/fakes/ports.ts';

const INTERVAL_MS = 15_000;

/** Readings 15 s apart, each with what was settled since the one before; the workers wanted after each. */
async function wanted(readings: readonly { readonly backlog: number; readonly settled: number }[]): Promise<readonly number[]> {
  const clock = createFakeClock();
  const workersWanted = createWorkerDemand({ clock, targetLagS: 60 });
  const answers: number[] = [];
  let settledTotal = 0;
  for (const { backlog, settled } of readings) {
    settledTotal += settled;
    answers.push(workersWanted(backlog, settledTotal));
    await clock.advance(INTERVAL_MS);
  }
  return answers;
}

/** 100 messages a second. */
const busy = { backlog: 30_000, settled: 1_500 };

describe('workers wanted', () => {
  it('are none without a backlog, and one while no rate is known', async () => {
    expect(await wanted([{ backlog: 0, settled: 0 }])).toEqual([0]);
    expect(await wanted([{ backlog: 1_000_000, settled: 0 }])).toEqual([1]);
  });

  it('are as many as drain the backlog within the target lag at the measured rate', async () => {
    // 30,000 messages at 100/s and 60 s each: five
    expect(await wanted([busy, busy])).toEqual([1, 5]);
    expect(await wanted([busy, busy, { backlog: 12_001, settled: 1_500 }])).toEqual([1, 5, 3]);
  });

  it('are one for a worker that keeps up with what arrives, and none once nothing arrives', async () => {
    const keepsUp = { backlog: 0, settled: 600 };
    expect(await wanted([keepsUp, keepsUp, { backlog: 0, settled: 0 }])).toEqual([1, 1, 0]);
  });

  it('are not made many by a trickle, whose rate says nothing of what a worker can do', async () => {
    const trickle = { backlog: 3, settled: 45 };
    expect((await wanted([trickle, trickle, trickle, { backlog: 100_000, settled: 45 }])).at(-1)).toBe(1);
  });

  it('are not made many by an outage, in which nothing is settled', async () => {
    const outage = Array.from({ length: 40 }, () => ({ backlog: 30_000, settled: 0 }));
    expect((await wanted([busy, busy, ...outage])).at(-1)).toBe(5);
  });

  it('follow a rate that changed within a minute or so', async () => {
    const slow = { backlog: 30_000, settled: 150 };
    const answers = await wanted([busy, busy, ...Array.from({ length: 12 }, () => slow)]);
    expect(answers.at(-1)).toBeGreaterThan(45);
    expect(answers.at(-1)).toBeLessThanOrEqual(50);
  });

  it('survive two readings at the same moment', () => {
    const workersWanted = createWorkerDemand({ clock: createFakeClock(), targetLagS: 60 });
    expect([workersWanted(10, 0), workersWanted(10, 5)]).toEqual([1, 1]);
  });
});
