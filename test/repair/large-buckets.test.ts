/** Large buckets in virtual time (`npm run bench -- large` has the figures): what a re-index asks and stores keeps its proportions. */
import { describe, expect, it } from 'vitest';
import { isLong } from '../support/breadth.ts';
import { runLarge, type LargeCase, type LargeResult } from '../support/large/world.ts';

/** What is expected are proportions: they show in a quarter of the objects. */
const SHARE = isLong ? 1 : 1 / 4;
const WHOLE = 200_000 * SHARE;

/** The index has as many cores as the process needs unless the case says otherwise. */
function run(wanted: Omit<LargeCase, 'indexCores'> & Partial<Pick<LargeCase, 'indexCores'>>): Promise<LargeResult> {
  return runLarge({ indexCores: 8, ...wanted });
}

function pagesOf({ objects }: LargeResult): number {
  return objects / 1_000;
}

describe('a re-index of a large bucket', () => {
  it.each(['first', 'unchanged'] as const)(
    '(%s) compares and writes every object once, with few more requests than pages',
    async (mode) => {
      const result = await run({ shape: 'hash', mode, objects: WHOLE });
      expect(result.faults).toEqual([]);
      expect(result.documents).toBe(WHOLE);
      expect(result.job.counts).toMatchObject({ listed: WHOLE, [mode === 'first' ? 'missing' : 'equal']: WHOLE });
      expect(result.requests).toMatchObject({ written: mode === 'first' ? WHOLE : 0, rewritten: 0 });
      // a part begins with a page, and its end may fall within one; what is requested ahead of a turn's end is listed again
      expect(result.requests.lists).toBeLessThanOrEqual(pagesOf(result) + 5 * result.turns);
      expect(result.requests.listProbes).toBeLessThanOrEqual(10 + 20 * result.turns);
    },
  );

  it.each(['deep', 'prefix', 'hash'] as const)(
    '(keys: %s) costs no more for each object when there are ten times as many',
    async (shape) => {
      const small = await run({ shape, mode: 'first', objects: 100_000 * SHARE });
      const large = await run({ shape, mode: 'first', objects: 1_000_000 * SHARE });
      const shareOf = (what: (result: LargeResult) => number): number => what(large) / what(small) / 10;
      expect(shareOf(({ requests }) => requests.lists + requests.listProbes)).toBeLessThanOrEqual(1.2);
      expect(shareOf(({ state }) => Object.values(state.puts).reduce((sum, puts) => sum + puts, 0))).toBeLessThanOrEqual(1.2);
      expect(shareOf(({ state }) => state.looks)).toBeLessThanOrEqual(1.2);
      expect(large.faults).toEqual([]);
    },
  );

  it('whose index has no work to spare is not cut further', async () => {
    const result = await run({ shape: 'hash', mode: 'first', objects: 400_000 * SHARE, indexCores: 1 });
    expect(result.documents).toBe(400_000 * SHARE);
    expect(result.requests.lists + result.requests.listProbes).toBeLessThanOrEqual(2 * pagesOf(result));
  });
});
