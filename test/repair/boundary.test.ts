import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareKeys } from '../../src/base/key-order.ts';
import { findBoundary, type KeyProbe } from '../../src/repair/key-probes.ts';
import { anyCharacter } from '../support/random/characters.ts';

const PAGE = 10;

/** What a listing of these keys would tell. */
function probeOf(keys: readonly string[]): KeyProbe & { requests: number } {
  const sorted = [...new Set(keys)].sort(compareKeys);
  const after = (key: string): string[] => sorted.filter((each) => compareKeys(each, key) > 0);
  const probe = {
    requests: 0,
    next: async (key: string) => {
      probe.requests += 1;
      return after(key)[0];
    },
    page: async (key: string) => {
      probe.requests += 1;
      const left = after(key);
      return left.length > PAGE ? { first: left[0]!, last: left[PAGE - 1]! } : undefined;
    },
  };
  return probe;
}

async function sharesOf(keys: readonly string[]): Promise<readonly [number, number]> {
  const boundary = await findBoundary({ cursor: '' }, probeOf(keys));
  if (boundary === undefined) return [keys.length, 0];
  const lower = keys.filter((key) => compareKeys(key, boundary) <= 0).length;
  return [lower, keys.length - lower];
}

const numbered = (count: number, prefix: string): string[] =>
  Array.from({ length: count }, (_, number) => `${prefix}${String(number).padStart(8, '0')}`);

describe('a boundary', () => {
  it('has keys on either side, is no half character and costs few requests, whatever the keys', async () => {
    const key = fc.oneof(
      fc.string({ unit: anyCharacter, minLength: 1, maxLength: 6 }),
      fc.string({
        unit: fc.constantFrom('a', 'b', '/', '0', '9', '\u{7f}', 'ü', '\u{d7ff}', '\u{e000}', '\u{ffff}', '😀', '\u{10ffff}'),
        minLength: 1,
        maxLength: 5,
      }),
    );
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(key, { minLength: 2, maxLength: 80 }), fc.nat(), fc.nat(), async (keys, a, b) => {
        const sorted = keys.toSorted(compareKeys);
        const [low, high] = [a % sorted.length, b % (sorted.length + 1)].sort((x, y) => x - y);
        const range = { cursor: low === 0 ? '' : sorted[low! - 1]!, ...(high! < sorted.length && { to: sorted[high!]! }) };
        const probe = probeOf(keys);
        const boundary = await findBoundary(range, probe);
        expect(probe.requests).toBeLessThanOrEqual(17);
        if (boundary === undefined) return;
        expect(boundary.isWellFormed()).toBe(true);
        const within = sorted.filter(
          (each) => compareKeys(each, range.cursor) > 0 && (range.to === undefined || compareKeys(each, range.to) <= 0),
        );
        expect(within.some((each) => compareKeys(each, boundary) <= 0)).toBe(true);
        expect(within.some((each) => compareKeys(each, boundary) > 0)).toBe(true);
        if (range.to !== undefined) expect(compareKeys(boundary, range.to)).toBeLessThanOrEqual(0);
      }),
      { numRuns: 500 },
    );
  });

  it('of numbered or hashed keys lies where a real share is on either side', async () => {
    const hashed = numbered(2_000, '').map((each) =>
      (Number(each) * 2_654_435_761).toString(16).padStart(12, '0').split('').reverse().join(''),
    );
    for (const keys of [numbered(2_000, 'flat-'), numbered(1_000, 'deep/photos/2026/11/'), hashed]) {
      const [lower, upper] = await sharesOf(keys);
      expect(Math.min(lower, upper)).toBeGreaterThan(keys.length / 4);
    }
  });

  it('is not looked for where one page is left', async () => {
    expect(await findBoundary({ cursor: '' }, probeOf(numbered(PAGE, 'x')))).toBeUndefined();
    expect(await findBoundary({ cursor: '', to: 'x00000005' }, probeOf(numbered(500, 'x')))).toBeUndefined();
  });
});
