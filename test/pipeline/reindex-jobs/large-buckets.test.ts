/** Large buckets in virtual time (`npm run bench -- large` has the figures): what a re-index asks and stores keeps its proportions. */
import { describe, expect, it } from 'vitest';
import { RANGES_MAX } from '../../../src/pipeline/reindex-jobs/range-records.ts';
import { isLong } from '../../support/breadth.ts';
import { runLarge, type LargeCase, type LargeResult } from '../../support/large/world.ts';

/** What is expected are proportions: they show in a quarter of the objects, and in half of those that 64 workers split into ranges. */
const SHARE = isLong ? 1 : 1 / 4;
const WHOLE = 200_000 * SHARE;
const MANY = isLong ? 6_000_000 : 3_000_000;

type Wanted = Pick<LargeCase, 'shape' | 'mode' | 'objects' | 'workers'> & {
  readonly turns: 'whole' | 'counted';
  readonly indexCores?: number;
};

/** The index has as many cores as 64 workers need unless the case says otherwise. */
function run({ turns, indexCores = 64, ...rest }: Wanted): Promise<LargeResult> {
  return runLarge({ ...rest, indexCores, isHollow: turns === 'counted' });
}

function pagesOf({ objects }: LargeResult): number {
  return objects / 1_000;
}

describe('a re-index of a large bucket', () => {
  it.each([
    ['first', 1],
    ['first', 8],
    ['unchanged', 1],
    ['unchanged', 8],
  ] as const)('(%s, %i workers) compares and writes every object once, with few more requests than pages', async (mode, workers) => {
    const result = await run({ shape: 'hash', mode, objects: WHOLE, workers, turns: 'whole' });
    expect(result.faults).toEqual([]);
    expect(result.documents).toBe(WHOLE);
    expect(result.job.counts).toMatchObject({ listed: WHOLE, [mode === 'first' ? 'missing' : 'equal']: WHOLE });
    expect(result.requests).toMatchObject({ written: mode === 'first' ? WHOLE : 0, rewritten: 0 });
    // a range begins with a page, and its end may fall within one; what is requested ahead of a turn's end is listed again
    expect(result.requests.lists).toBeLessThanOrEqual(pagesOf(result) + 5 * result.turns);
    // eight parts take about fifty
    expect(result.requests.listProbes).toBeLessThanOrEqual(10 + 10 * Math.max(10, 2 * (result.job.rangesCut ?? 0)));
  });

  it.each(['first', 'unchanged'] as const)('(%s) is what the turns that only count keys stand for', async (mode) => {
    const [whole, counted] = [
      await run({ shape: 'prefix', mode, objects: 100_000, workers: 1, turns: 'whole' }),
      await run({ shape: 'prefix', mode, objects: 100_000, workers: 1, turns: 'counted' }),
    ];
    const { listed, missing, equal, written } = whole.job.counts ?? {};
    expect(counted.job.counts).toMatchObject({ listed, missing, equal, written });
    // chance decides when a turn is split: within a tenth
    const tenth = pagesOf(whole) / 10;
    expect(Math.abs(counted.requests.lists - whole.requests.lists)).toBeLessThanOrEqual(tenth);
    expect(Math.abs(counted.requests.scans - whole.requests.scans)).toBeLessThanOrEqual(tenth);
    expect(Math.abs(counted.requests.bulks - whole.requests.bulks)).toBeLessThanOrEqual(tenth);
  });

  it.each(['deep', 'prefix', 'hash'] as const)(
    '(keys: %s) costs no more for each object when there are ten times as many',
    async (shape) => {
      const small = await run({ shape, mode: 'first', objects: 500_000 * SHARE, workers: 8, turns: 'counted' });
      const large = await run({ shape, mode: 'first', objects: 5_000_000 * SHARE, workers: 8, turns: 'counted' });
      const shareOf = (what: (result: LargeResult) => number): number => what(large) / what(small) / 10;
      expect(shareOf(({ requests }) => requests.lists + requests.listProbes)).toBeLessThanOrEqual(1.2);
      expect(shareOf(({ state }) => Object.values(state.puts).reduce((sum, puts) => sum + puts, 0))).toBeLessThanOrEqual(1.2);
      expect(shareOf(({ state }) => state.looks)).toBeLessThanOrEqual(1.2);
      expect(large.faults).toEqual([]);
    },
  );

  it('by 64 workers has ranges left to split, and lists few records for each that ends', async () => {
    const result = await run({ shape: 'deep', mode: 'first', objects: MANY, workers: 64, turns: 'counted' });
    const { rangesDone = 0 } = result.job;
    expect(result.documents).toBe(MANY);
    expect(rangesDone).toBeGreaterThan(100);
    expect(rangesDone).toBeLessThan(RANGES_MAX);
    // one reader lists all of them each second; the workers list each about once, and a few more near the end
    expect(result.state.listedEntries).toBeLessThanOrEqual(rangesDone * (result.tookS + 2 * 64));
    expect(result.faults).toEqual([]);
  });

  it('by more workers than its index has work for is not split further', async () => {
    const result = await run({ shape: 'hash', mode: 'first', objects: MANY / 3, workers: 64, indexCores: 2, turns: 'counted' });
    expect(result.documents).toBe(MANY / 3);
    // more than twice as many while ranges were split whatever the index did
    expect(result.requests.lists + result.requests.listProbes).toBeLessThanOrEqual(4 * pagesOf(result));
  });
});
