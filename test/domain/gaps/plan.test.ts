import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jobsOf, prefixesOf } from '../../../src/domain/gaps/plan.ts';
import type { GapRecord } from '../../../src/domain/gaps/gap.ts';
import { gapSeenAt } from '../../support/fakes/gap-records.ts';

function gapOf(prefix: string, kind: GapRecord['kind'] = 'lifecycle'): GapRecord {
  return gapSeenAt(1, { id: `gap:photos:${kind}:${prefix}`, kind, ...(prefix !== '' && { prefix }) });
}

function plansOf(due: readonly string[], costs: Readonly<Record<string, number>> = {}, others: readonly string[] = []) {
  const gaps = due.map((prefix) => gapOf(prefix));
  const open = [...gaps, ...others.map((prefix) => gapOf(prefix, 'loss'))];
  const plans = jobsOf({ due: gaps, open, requestsOf: (prefix) => costs[prefix] ?? 10, requestsPerDay: 1_000 });
  return plans.map((plan) => [plan.prefix, plan.gaps.map(({ prefix = '' }) => prefix)]);
}

describe('gaps of one bucket', () => {
  it('are one job of the whole bucket where one of them is of the whole, and else of its parts', () => {
    expect(plansOf(['', 'a/', 'b/'], { '': 900, 'a/': 600, 'b/': 20 })).toEqual([
      ['', ['', 'a/', 'b/']],
      ['b/', ['b/']],
      ['a/', ['a/']],
    ]);
  });

  it('wait for a dearer one that is older by more than what it costs more', () => {
    const order = (olderMs: number) => {
      const gaps = [
        { ...gapOf('a/'), openedAtMs: 0 },
        { ...gapOf('b/'), openedAtMs: olderMs },
      ];
      const plans = jobsOf({
        due: gaps,
        open: gaps,
        requestsOf: (prefix) => ({ 'a/': 600, 'b/': 100 })[prefix] ?? 9_000,
        requestsPerDay: 1_000,
      });
      return plans.map(({ prefix }) => prefix);
    };
    expect(order(0.5 * 86_400_000 - 1)).toEqual(['b/', 'a/']);
    expect(order(0.5 * 86_400_000 + 1)).toEqual(['a/', 'b/']);
  });

  it('take with them what is open within their prefix, due or not', () => {
    expect(plansOf(['a/'], {}, ['', 'a/b/', 'ab'])).toEqual([['a/', ['a/', 'a/b/']]]);
  });

  it('are one job of what their prefixes have in common, where that costs little more', () => {
    expect(plansOf(['logs/1/', 'logs/2/'], { 'logs/': 800, 'logs/1/': 200, 'logs/2/': 200 })[0]).toEqual(['logs/', ['logs/1/', 'logs/2/']]);
    expect(plansOf(['logs/1/', 'logs/2/'], { 'logs/': 801, 'logs/1/': 200, 'logs/2/': 200 })).toEqual([
      ['logs/1/', ['logs/1/']],
      ['logs/2/', ['logs/2/']],
    ]);
  });

  it('are one job of a small bucket, whatever their parts would cost', () => {
    expect(plansOf(['a/', 'b/'], { '': 100, 'a/': 1, 'b/': 1 })[0]).toEqual(['', ['a/', 'b/']]);
    expect(plansOf(['a/', 'b/'], { '': 101, 'a/': 1, 'b/': 1 })[0]).toEqual(['a/', ['a/']]);
  });

  it('within one another are the wider one', () => {
    expect(prefixesOf([gapOf('a/b/'), gapOf('a/'), gapOf('a/b/c')])).toEqual({ parts: ['a/'], common: 'a/' });
  });

  it('cut no character in two', () => {
    // 😀 and 😁 share their first half in UTF-16
    expect(prefixesOf([gapOf('x😀'), gapOf('x😁')])).toEqual({ parts: ['x😀', 'x😁'], common: 'x' });
  });

  it('that are not due begin nothing', () => {
    expect(plansOf([], {}, ['a/'])).toEqual([]);
  });

  it('are all found again in the jobs, whatever their prefixes and costs', () => {
    const prefixes = fc.uniqueArray(fc.string({ unit: fc.constantFrom('a', 'b', '/', '😀', '😁'), maxLength: 4 }), { minLength: 1 });
    fc.assert(
      fc.property(prefixes, fc.func(fc.integer({ min: 1, max: 1_000 })), (all, requestsOf) => {
        const due = all.map((prefix) => gapOf(prefix));
        const plans = jobsOf({ due, open: due, requestsOf, requestsPerDay: 1_000 });
        expect(new Set(plans.flatMap(({ gaps }) => gaps))).toEqual(new Set(due));
        for (const { prefix, gaps } of plans) expect(gaps.every((gap) => (gap.prefix ?? '').startsWith(prefix))).toBe(true);
      }),
    );
  });
});
