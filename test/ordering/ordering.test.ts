import { assert, integer, property } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isLong } from '../support/breadth.ts';
import { mixes, mutants, type MixId } from './simulation/mixes.ts';
import { isWrong, play } from './simulation/play.ts';
import { productRules } from './simulation/rules.ts';

/** Histories of each mix; `npm run simulate` plays a million of each. */
const HISTORIES = isLong ? 5_000 : 500;
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

  test('the histories of each mix hold what they are named for, and those of everything hold it all', () => {
    const named = { joined: 'joined', sources: 'misfits', deletes: 'exactDeletes', outages: 'heldBack', handedOver: 'handedOver' } as const;
    const counted = (id: MixId) => Array.from({ length: 1_500 }, (_, seed) => play(seed, mixes[id]).counts);
    const all = counted('all');
    for (const [id, count] of Object.entries(named) as [keyof typeof named, (typeof named)[keyof typeof named]][]) {
      for (const histories of [counted(id), all])
        expect([id, histories.reduce((sum, counts) => sum + counts[count], 0) >= 10]).toEqual([id, true]);
    }
  });
});

describe('each rule is needed: without it some history ends wrong', () => {
  test.each(mutants)('$without', ({ mix, rules, from = 1 }) => {
    const without = { ...productRules, ...rules };
    let wrong: number | undefined;
    for (let seed = from; seed < from + MUTANT_HISTORIES && wrong === undefined; seed += 1)
      if (isWrong(play(seed, mixes[mix], without))) wrong = seed;
    expect(wrong, 'no wrong history was found without the rule').toBeDefined();
    // the very history is right with the rule in force
    expect(isWrong(play(wrong!, mixes[mix]))).toBe(false);
  });
});
