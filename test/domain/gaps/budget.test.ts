import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { affordable, freshBudget, withEnded, withJob, type GapBudget, type Limits } from '../../../src/domain/gaps/budget.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const START_MS = Math.floor(1_800_000_000_000 / HOUR_MS) * HOUR_MS;
const at = (nowMs: number) => ({ nowMs, requestsPerDay: 1_000 });

function spent(requests: number, atMs = START_MS): GapBudget {
  const begun = withJob(freshBudget('photos'), { jobId: 'job-1', atMs, requests: 1 });
  return withEnded(begun, { jobId: 'job-1', requests }, at(atMs));
}

/** What counts against the budget, but for oversized jobs. */
function spentNow(budget: GapBudget, limits: Limits): number {
  const answer = affordable(budget, limits.requestsPerDay, limits);
  return typeof answer === 'object' ? answer.spent : 0;
}

describe('a bucket’s budget', () => {
  it('allows what is left of the day', () => {
    expect(affordable(spent(600), 400, at(START_MS))).toBe('yes');
    expect(affordable(spent(600), 401, at(START_MS))).toEqual({ spent: 600, fromMs: START_MS + HOUR_MS + DAY_MS });
    expect(affordable(spent(600), 401, at(START_MS + HOUR_MS + DAY_MS))).toBe('yes');
  });

  it('counts what is expected of a running job until it ends, and then what it really cost', () => {
    const running = withJob(freshBudget('photos'), { jobId: 'job-1', atMs: START_MS, requests: 900 });
    expect(spentNow(running, at(START_MS))).toBe(900);
    expect(affordable(running, 101, at(START_MS))).toEqual({ spent: 900, fromMs: START_MS + HOUR_MS + DAY_MS });
    const ended = withEnded(running, { jobId: 'job-1', requests: 300 }, at(START_MS));
    expect(spentNow(ended, at(START_MS))).toBe(300);
    expect(affordable(ended, 700, at(START_MS))).toBe('yes');
  });

  it('counts each job once, however often it is told', () => {
    const running = withJob(freshBudget('photos'), { jobId: 'job-1', atMs: START_MS, requests: 5 });
    expect(withJob(running, { jobId: 'job-1', atMs: START_MS + 1, requests: 9 })).toBe(running);
    const ended = withEnded(running, { jobId: 'job-1', requests: 5 }, at(START_MS));
    expect(withEnded(ended, { jobId: 'job-1', requests: 5 }, at(START_MS))).toBe(ended);
  });

  it('lets a job begin that costs more than a day’s, once no other such job counts, which takes as many days', () => {
    expect(affordable(freshBudget('photos'), 3_000, at(START_MS))).toBe('yes');
    const debt = spent(3_000);
    expect(affordable(debt, 1_001, at(START_MS + 2 * DAY_MS))).toEqual({ spent: 3_000, fromMs: START_MS + HOUR_MS + 3 * DAY_MS });
    expect(affordable(debt, 1_001, at(START_MS + HOUR_MS + 3 * DAY_MS))).toBe('yes');
  });

  it('Fix: does not count jobs that cost more than a day’s against the others, nor the others against them', () => {
    expect(affordable(spent(3_000), 1_000, at(START_MS))).toBe('yes');
    expect(affordable(spent(1_000), 3_000, at(START_MS))).toBe('yes');
    const running = withJob(freshBudget('photos'), { jobId: 'job-1', atMs: START_MS, requests: 3_000 });
    expect(affordable(running, 1_000, at(START_MS))).toBe('yes');
    expect(affordable(running, 1_001, at(START_MS))).toEqual({ spent: 3_000, fromMs: START_MS + HOUR_MS + 3 * DAY_MS });
    // what it really cost decides
    expect(affordable(withEnded(running, { jobId: 'job-1', requests: 4 }, at(START_MS)), 997, at(START_MS))).toMatchObject({ spent: 4 });
  });

  it('of nothing allows nothing, ever', () => {
    expect(affordable(freshBudget('photos'), 1, { nowMs: START_MS, requestsPerDay: 0 })).toBe('never');
  });

  it('stays small: an hour of jobs is one sum, and what no longer counts is gone', () => {
    let budget = freshBudget('photos');
    for (let minutes = 0; minutes < 3 * 24 * 60; minutes += 2) {
      const atMs = START_MS + minutes * 60_000;
      budget = withJob(budget, { jobId: `job-${minutes}`, atMs, requests: 1 });
      budget = withEnded(budget, { jobId: `job-${minutes}`, requests: 1 }, at(atMs));
    }
    expect(budget.running).toEqual([]);
    expect(budget.spent.length).toBeLessThanOrEqual(26);
    expect(spentNow(budget, at(START_MS + 3 * DAY_MS))).toBeLessThanOrEqual(25 * 30);
  });

  it('is never overspent in any 24 hours by jobs that each cost less, however they come', () => {
    const jobs = fc.array(fc.record({ afterMs: fc.nat({ max: 8 * HOUR_MS }), requests: fc.integer({ min: 1, max: 1_000 }) }), {
      maxLength: 60,
    });
    fc.assert(
      fc.property(jobs, (wanted) => {
        let budget = freshBudget('photos');
        let nowMs = START_MS;
        const begun: { atMs: number; requests: number }[] = [];
        for (const [index, { afterMs, requests }] of wanted.entries()) {
          nowMs += afterMs;
          const answer = affordable(budget, requests, at(nowMs));
          if (answer === 'never') throw new Error('there is a budget');
          if (answer !== 'yes') {
            expect(answer.fromMs).toBeGreaterThan(nowMs);
            expect(affordable(budget, requests, at(answer.fromMs))).toBe('yes');
            continue;
          }
          const jobId = `job-${index}`;
          budget = withEnded(withJob(budget, { jobId, atMs: nowMs, requests }), { jobId, requests }, at(nowMs));
          begun.push({ atMs: nowMs, requests });
          const ofDay = begun.filter(({ atMs }) => atMs > nowMs - DAY_MS).reduce((sum, job) => sum + job.requests, 0);
          expect(ofDay).toBeLessThanOrEqual(1_000);
        }
      }),
    );
  });
});
