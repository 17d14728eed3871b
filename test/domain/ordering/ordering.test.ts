import { assert, integer, property } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isLong } from '../../support/breadth.ts';
import { mixes, mutants, type MixId } from './simulation/mixes.ts';
import { isWrong, play } from './simulation/play.ts';
import { productRules } from './simulation/rules.ts';

/** Histories of each mix; `npm run simulate` plays a million of each. */
const HISTORIES = isLong ? 5_000 : 1_000;
/** Histories in which a mutant must go wrong; most do within a few hundred. */
const MUTANT_HISTORIES = 100_000;

describe('whatever is late, repeated, reordered, lost, forged or held back', () => {
  test.each(Object.values(mixes))('every history ends with the index equal to the bucket: $name', (mix) => {
    assert(
      property(integer(), (seed) => {
        const result = play(seed, mix);
        if (isWrong(result)) throw new Error(`seed ${seed} ends with ${JSON.stringify(result)}`);
      }),
      { numRuns: HISTORIES },
    );
  });

  test.each([
    { id: 'joined', count: 'joined' },
    { id: 'sources', count: 'misfits' },
    { id: 'deletes', count: 'exactDeletes' },
    { id: 'outages', count: 'heldBack' },
    { id: 'folded', count: 'folded' },
  ] as const)('the histories of $id hold what they are named for', ({ id, count }) => {
    const all = (of: MixId): number =>
      Array.from({ length: 1_000 }, (_, seed) => play(seed, mixes[of]).counts[count]).reduce((sum, each) => sum + each);
    expect(all(id)).toBeGreaterThan(10);
    expect(all('all')).toBeGreaterThan(10);
  });
});

describe('each rule is needed: without it some history ends wrong', () => {
  test.each(mutants)('$without', ({ mix, rules }) => {
    const without = { ...productRules, ...rules };
    let wrong: number | undefined;
    for (let seed = 1; seed <= MUTANT_HISTORIES && wrong === undefined; seed += 1)
      if (isWrong(play(seed, mixes[mix], without))) wrong = seed;
    expect(wrong, 'no wrong history was found without the rule').toBeDefined();
    // the very history is right with the rule in force
    expect(isWrong(play(wrong!, mixes[mix]))).toBe(false);
  });
});
