import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { affordable, freshBudget, withEnded, withJob, type GapBudget } from '../../../src/domain/gaps/budget.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const START_MS = 1_800_000_000_000;
const PER_DAY = 1_000;
const at = (nowMs: number) => ({ nowMs, requestsPerDay: PER_DAY });

/** The budget after a job that was expected to cost so much. */
function begun(requests: number, { budget = freshBudget('photos'), atMs = START_MS, jobId = 'job-1' } = {}): GapBudget {
  return withJob(budget, { jobId, atMs, requests }, at(atMs));
}

function ended(budget: GapBudget, requests: number, { jobId = 'job-1', nowMs = START_MS } = {}): GapBudget {
  return withEnded(budget, { jobId, requests }, at(nowMs));
}

describe('a bucket’s budget', () => {
  it('allows a job while the requests before it are paid for within a day', () => {
    expect(affordable(freshBudget('photos'), 1_000, at(START_MS))).toBe('yes');
    const busy = begun(1_000, { budget: begun(500), jobId: 'job-2' });
    expect(affordable(busy, 1, at(START_MS))).toEqual({ fromMs: START_MS + 0.5 * DAY_MS });
    expect(affordable(busy, 1_000, at(START_MS + 0.5 * DAY_MS))).toBe('yes');
  });

  it('does not save up what was not used', () => {
    const late = begun(600, { budget: begun(600), atMs: START_MS + 30 * DAY_MS, jobId: 'job-2' });
    expect(late.paidUntilMs.usual).toBe(START_MS + 30.6 * DAY_MS);
  });

  it('counts what is expected of a running job, and then what it really cost', () => {
    const running = begun(900);
    expect(running.paidUntilMs.usual).toBe(START_MS + 0.9 * DAY_MS);
    expect(ended(running, 300).paidUntilMs.usual).toBeCloseTo(START_MS + 0.3 * DAY_MS, -1);
  });

  it('counts each job once, however often it is told', () => {
    const running = begun(5);
    expect(begun(9, { budget: running })).toBe(running);
    const done = ended(running, 5);
    expect(ended(done, 7)).toBe(done);
  });

  it('meters jobs that cost more than a day’s apart, by what they really cost', () => {
    const large = begun(3_000);
    expect(affordable(large, 1_000, at(START_MS))).toBe('yes');
    expect(affordable(large, 1_001, at(START_MS))).toEqual({ fromMs: START_MS + 2 * DAY_MS });
    expect(affordable(large, 1_001, at(START_MS + 2 * DAY_MS))).toBe('yes');
    const small = ended(large, 4);
    expect(affordable(small, 1_001, at(START_MS))).toBe('yes');
    const underestimated = ended(begun(1), 5_000);
    expect(affordable(underestimated, 1_000, at(START_MS))).toBe('yes');
    expect(affordable(underestimated, 1_001, at(START_MS))).toEqual({ fromMs: START_MS + 4 * DAY_MS });
  });

  it('is no longer than its costs where a process whose clock is a year fast began the job, before its end and after it', () => {
    const fast = begun(3_000, { budget: begun(900, { jobId: 'job-2' }), atMs: START_MS + 365 * DAY_MS });
    expect([affordable(fast, 1_000, at(START_MS)), affordable(fast, 1_001, at(START_MS))]).toEqual([
      'yes',
      { fromMs: START_MS + 2 * DAY_MS },
    ]);
    const mended = ended(fast, 3_000);
    expect(affordable(mended, 1_001, at(START_MS + 2 * DAY_MS))).toBe('yes');
    expect(affordable(mended, 1_001, at(START_MS + 1.9 * DAY_MS))).not.toBe('yes');
  });

  it('of nothing allows nothing, ever', () => {
    expect(affordable(freshBudget('photos'), 1, { nowMs: START_MS, requestsPerDay: 0 })).toBe('never');
    expect(
      withJob(freshBudget('photos'), { jobId: 'job-1', atMs: START_MS, requests: 9 }, { nowMs: START_MS, requestsPerDay: 0 }).paidUntilMs
        .oversized,
    ).toBe(START_MS);
  });

  it('holds on average over each week beside the burst of a day and its last job, however jobs come, and for those that cost more than a day too', () => {
    const jobs = fc.array(fc.record({ afterMs: fc.nat({ max: 8 * HOUR_MS }), requests: fc.integer({ min: 1, max: 2 * PER_DAY }) }), {
      maxLength: 120,
    });
    fc.assert(
      fc.property(jobs, (wanted) => {
        let budget = freshBudget('photos');
        let nowMs = START_MS;
        const ran: { readonly atMs: number; readonly requests: number }[] = [];
        for (const [index, { afterMs, requests }] of wanted.entries()) {
          nowMs += afterMs;
          const answer = affordable(budget, requests, at(nowMs));
          if (answer !== 'yes') {
            if (answer === 'never') throw new Error('there is a budget');
            expect(answer.fromMs).toBeGreaterThan(nowMs);
            expect(affordable(budget, requests, at(answer.fromMs))).toBe('yes');
            continue;
          }
          const jobId = `job-${index}`;
          budget = ended(begun(Math.ceil(requests / 2), { budget, atMs: nowMs, jobId }), requests, { jobId, nowMs });
          ran.push({ atMs: nowMs, requests });
          for (const isLarge of [false, true]) {
            const ofWeek = ran.filter((job) => job.requests > PER_DAY === isLarge && job.atMs > nowMs - 7 * DAY_MS);
            const largest = Math.max(0, ...ofWeek.map((job) => job.requests));
            const used = ofWeek.reduce((sum, job) => sum + job.requests, 0);
            expect(used).toBeLessThanOrEqual(8 * PER_DAY + largest);
          }
        }
      }),
    );
  });
});
