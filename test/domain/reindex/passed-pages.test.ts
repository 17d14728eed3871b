import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hasPassedMore, passedPages, placeAfter, placeBehind, type ListingPlace } from '../../../src/domain/reindex/passed-pages.ts';

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

  const place = (pages: number): ListingPlace => ({ token: `t${pages}`, observedAtMs: 1_000, pages, mark: 't1' });

  it('are continued only behind the key that they follow', () => {
    const passed = passedPages(undefined, 'k', { place: place(3), isRefused: false });
    expect(placeAfter(passed, 'k')).toEqual(place(3));
    expect(placeAfter(passed, 'l')).toBeUndefined();
    expect(passedPages(passed, 'l', { place: undefined, isRefused: false })).toBeUndefined();
  });

  it('are started over when their token was refused, and only more of them than before are progress', () => {
    const passed = passedPages(undefined, 'k', { place: place(3), isRefused: true });
    // this attempt had passed pages: the next one tries the token
    expect(passed?.place).toEqual(place(3));
    const refused = passedPages(passed, 'k', { place: place(3), isRefused: true });
    expect(refused).toEqual({ after: 'k', pagesMax: 3 });
    expect(hasPassedMore(refused, 'k', place(3))).toBe(false);
    expect(hasPassedMore(refused, 'k', place(4))).toBe(true);
    expect(hasPassedMore(refused, 'l', place(1))).toBe(true);
    expect(passedPages(refused, 'k', { place: place(2), isRefused: false })).toEqual({ after: 'k', pagesMax: 3, place: place(2) });
  });

  it('that another fault interrupts are kept', () => {
    const passed = passedPages(undefined, 'k', { place: place(3), isRefused: false });
    expect(passedPages(passed, 'k', { place: place(3), isRefused: false })).toEqual(passed);
  });
});
