import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { placeBehind, type ListingPlace } from '../../src/aws/passed-pages.rules.ts';

/** Passes pages with these tokens until one of them closes a circle. */
function walk(tokens: Iterable<string>): { readonly place: ListingPlace | undefined; readonly isCircle: boolean } {
  let place: ListingPlace | undefined;
  for (const token of tokens) {
    const next = placeBehind({ token, observedAtMs: place === undefined ? 1_000 : 2_000 }, place);
    if (next === 'circle') return { place, isCircle: true };
    place = next;
  }
  return { place, isCircle: false };
}

describe('pages without keys', () => {
  it('count, and keep the time of the first of them', () => {
    const { place, isCircle } = walk(['a', 'b', 'c']);
    expect(isCircle).toBe(false);
    expect(place).toMatchObject({ token: 'c', pages: 3, observedAtMs: 1_000 });
  });

  it('are a circle as soon as three times its pages have been passed, and never before a token is repeated', () => {
    fc.assert(
      fc.property(fc.nat(200), fc.integer({ min: 1, max: 200 }), (before, length) => {
        let asked = 0;
        const tokens = (function* endless() {
          for (; ; asked += 1) yield String(asked < before ? asked : before + ((asked - before) % length));
        })();
        expect(walk(tokens).isCircle).toBe(true);
        expect(asked).toBeGreaterThanOrEqual(before + length);
        expect(asked).toBeLessThanOrEqual(3 * (before + length));
      }),
    );
  });
});
