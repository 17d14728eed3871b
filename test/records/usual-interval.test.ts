import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isUnusuallyLong, usualIntervalAfter, type UsualInterval } from '../../src/records/usual-interval.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Lets events arrive at these moments, and returns what is usual and the last of them. */
function after(moments: readonly number[]): { readonly usual: UsualInterval; readonly lastMs: number } {
  let usual: UsualInterval | undefined;
  let lastMs: number | undefined;
  for (const atMs of moments) {
    usual = usualIntervalAfter(usual, { atMs, beforeMs: lastMs });
    lastMs = atMs;
  }
  if (usual === undefined || lastMs === undefined) throw new Error('no event');
  return { usual, lastMs };
}

const every = (stepMs: number, days: number): number[] => Array.from({ length: (days * DAY_MS) / stepMs }, (_, at) => at * stepMs);
/** Every ten minutes from 9 to 17 on five days a week, the first of which is a Monday. */
const businessHours = (weeks: number): number[] =>
  every(10 * MINUTE_MS, weeks * 7).filter(
    (atMs) => atMs % (7 * DAY_MS) < 5 * DAY_MS && atMs % DAY_MS >= 9 * HOUR_MS && atMs % DAY_MS < 17 * HOUR_MS,
  );

/** Whether the bucket is quiet at any moment between its events. */
function everQuiet(moments: readonly number[]): boolean {
  return moments.some((atMs, index) => {
    const nextMs = moments[index + 1];
    if (nextMs === undefined) return false;
    const { usual, lastMs } = after(moments.slice(0, index + 1));
    return isUnusuallyLong(nextMs - atMs - 1, usual, lastMs);
  });
}

describe('a bucket is quiet', () => {
  it('never while its events come as they always did', () => {
    expect(everQuiet(businessHours(3))).toBe(false);
    expect(everQuiet(every(6 * HOUR_MS, 30))).toBe(false);
    // an export once a week
    expect(everQuiet(every(7 * DAY_MS, 60))).toBe(false);
  });

  it('after three times the longest usual interval', () => {
    const { usual, lastMs } = after(every(6 * HOUR_MS, 8));
    expect(usual.usualIntervalMs).toBe(6 * HOUR_MS);
    expect(isUnusuallyLong(18 * HOUR_MS, usual, lastMs)).toBe(false);
    expect(isUnusuallyLong(18 * HOUR_MS + 1, usual, lastMs)).toBe(true);
  });

  it('for thirty days, and then counts as a bucket that is not written any more', () => {
    const { usual, lastMs } = after(every(6 * HOUR_MS, 8));
    const endMs = 18 * HOUR_MS + 30 * DAY_MS;
    expect([endMs, endMs + 1].map((silenceMs) => isUnusuallyLong(silenceMs, usual, lastMs))).toEqual([true, false]);
  });

  it('not within an hour, and not before its events were seen for a week', () => {
    const busy = after(every(MINUTE_MS, 8));
    expect([HOUR_MS, HOUR_MS + 1].map((silenceMs) => isUnusuallyLong(silenceMs, busy.usual, busy.lastMs))).toEqual([false, true]);
    const young = after(every(MINUTE_MS, 6));
    expect(isUnusuallyLong(100 * DAY_MS, young.usual, young.lastMs)).toBe(false);
  });

  it('within a day once it has been busy for some weeks, whatever it was before', () => {
    const begin = [0, 2 * DAY_MS];
    const { usual, lastMs } = after([...begin, ...every(10 * MINUTE_MS, 40).map((atMs) => 2 * DAY_MS + atMs)]);
    expect(isUnusuallyLong(DAY_MS, usual, lastMs)).toBe(true);
  });

  it('by an interval that is never longer than the longest, and never shorter than the last', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(20 * DAY_MS), { minLength: 1, maxLength: 50 }), (pauses) => {
        let atMs = 0;
        const { usual } = after([0, ...pauses.map((pause) => (atMs += pause))]);
        expect(usual.usualIntervalMs).toBeLessThanOrEqual(Math.max(...pauses));
        expect(usual.usualIntervalMs).toBeGreaterThanOrEqual(pauses.at(-1) ?? 0);
      }),
    );
  });

  it('by no event that arrived out of order', () => {
    const usual = { sinceMs: 0, usualIntervalMs: HOUR_MS };
    expect(usualIntervalAfter(usual, { atMs: 5, beforeMs: 10 })).toEqual(usual);
  });
});
