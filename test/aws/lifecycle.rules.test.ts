import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { expiredUntilMs, headsWorthIt, mayHaveTags, type LifecycleRule } from '../../src/aws/lifecycle.rules.ts';
import type { ObjectDocument } from '../../src/ordering/document.ts';

const DAY_MS = 86_400_000;

function ruleOf(more: Partial<LifecycleRule> = {}): LifecycleRule {
  return { id: 'r', isEnabled: true, prefix: '', tags: {}, ...more };
}

function documentOf(more: Partial<ObjectDocument> = {}): ObjectDocument {
  return { bucket: 'b', key: 'k', deleted: false, clock: 1, settled: true, source: 'check', indexed_at: '', ...more };
}

describe('lifecycle rules', () => {
  it('of days expire an object exactly when its days, rounded up to midnight UTC, are over', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 3e12 }),
        fc.integer({ min: 0, max: 3e12 }),
        fc.integer({ min: 1, max: 3_000 }),
        (modified, now, days) => {
          const expiryMs = Math.ceil((modified + days * DAY_MS) / DAY_MS) * DAY_MS;
          expect(modified <= (expiredUntilMs(ruleOf({ expiresAfterDays: days }), now) ?? -1)).toBe(now >= expiryMs);
        },
      ),
    );
  });

  it('of a date expire everything from that moment on, and nothing before', () => {
    const rule = ruleOf({ expiresAtMs: 1_000 });
    expect(expiredUntilMs(rule, 999)).toBeUndefined();
    expect(expiredUntilMs(rule, 1_000)).toBe(1_000);
    expect(expiredUntilMs(rule, 5_000)).toBe(5_000);
  });

  it('with tags may fit whatever has tags that are not known, and else what has them all', () => {
    const rule = ruleOf({ tags: { class: 'tmp', team: 'a' } });
    expect(mayHaveTags(rule, documentOf())).toBe(true);
    expect(mayHaveTags(rule, documentOf({ tags: { class: 'tmp', team: 'a', more: 'x' } }))).toBe(true);
    expect(mayHaveTags(rule, documentOf({ tags: { class: 'tmp' } }))).toBe(false);
    expect(mayHaveTags(ruleOf(), documentOf({ tags: {} }))).toBe(true);
  });
});

it('objects are looked at one by one for as long as that costs no more than listing them all', () => {
  expect(headsWorthIt(0)).toBe(1_000);
  expect(headsWorthIt(80_000)).toBe(1_000);
  expect(headsWorthIt(800_000)).toBe(10_000);
  expect(headsWorthIt(1e9)).toBe(20_000);
});
