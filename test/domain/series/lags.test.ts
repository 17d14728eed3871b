import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addedLags, lagClassOf, packedLags, percentileMs, type Lags } from '../../../src/domain/series/lags.ts';

const durations = fc.array(fc.oneof(fc.nat(2_000), fc.nat(14 * 86_400_000)), { minLength: 1, maxLength: 200 });

function lagsOf(all: readonly number[]): Lags {
  return all.reduce<Lags>((sum, lagMs) => addedLags(sum, [lagClassOf(lagMs), 1]), {});
}

describe('the percentiles of lags', () => {
  it('are at most √2 of the true ones, up or down; what takes less than 50 ms is not told apart', () => {
    fc.assert(
      fc.property(durations, fc.constantFrom(0.5, 0.95, 1), (all, share) => {
        const trueMs = all.toSorted((a, b) => a - b)[Math.ceil(share * all.length) - 1] ?? 0;
        const found = percentileMs(lagsOf(all), share) ?? Number.NaN;
        expect(found).toBeLessThanOrEqual(Math.max(50, Math.ceil(trueMs * Math.SQRT2)));
        expect(found).toBeGreaterThanOrEqual(trueMs <= 50 ? 0 : Math.floor(trueMs / Math.SQRT2));
      }),
    );
  });

  it('are those of all workers together, in whatever order they are added', () => {
    fc.assert(
      fc.property(durations, durations, (one, other) => {
        const packed = (all: readonly number[]) =>
          packedLags(new Map(Object.entries(lagsOf(all)).map(([at, count]) => [Number(at), count])));
        const both = lagsOf([...one, ...other]);
        expect(addedLags(lagsOf(one), packed(other))).toEqual(both);
        expect(addedLags(lagsOf(other), packed(one))).toEqual(both);
      }),
    );
  });

  it('are not known of nothing', () => {
    expect(percentileMs({}, 0.5)).toBeUndefined();
  });

  it('take a longer time than any queue keeps for the longest', () => {
    expect(lagClassOf(1e15)).toBe(lagClassOf(15 * 86_400_000));
  });
});
