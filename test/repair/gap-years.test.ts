/** Random histories of gaps in virtual time, played with the product's own calendar, jobs and records. `npm run simulate:gaps` plays whole years. */
import { describe, expect, it } from 'vitest';
import { isLong } from '../support/breadth.ts';
import { mutants } from './gap-years/mutants.ts';
import { playYear } from './gap-years/play.ts';

const DAYS = 45;
const SEEDS = isLong ? [2, 4, 6, 16] : [6];
/** Four in ten stories find a mistake, so that one is missed once in many thousand runs. */
const STORIES_MAX = 20;

describe('gaps', () => {
  it.each(SEEDS)('always end, and never without a job that covers them (seed %i)', async (seed) => {
    const { violations, counts } = await playYear(seed, { days: DAYS });
    expect(violations).toEqual([]);
    expect(counts.open).toBe(0);
    // the history is not trivial
    expect(counts.reported).toBeGreaterThan(40);
    expect(counts.closed).toBeGreaterThan(20);
    expect(counts.jobs).toBeGreaterThan(30);
  });

  it.each(Object.entries(mutants))('would be seen not to end right, if %s', async (mutant, { seed, finds }) => {
    // a change of the code changes the stories: not each finds the mistake
    const told: string[] = [];
    for (let each = seed; each < seed + STORIES_MAX && !finds.test(told.join('\n')); each += 1) {
      const { violations } = await playYear(each, { days: DAYS, mutant });
      told.push(...violations);
    }
    expect(told.join('\n')).toMatch(finds);
  });
});
