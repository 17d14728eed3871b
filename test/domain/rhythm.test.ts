import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isUnusuallyLong, rhythmAfter, type Rhythm } from '../../src/domain/rhythm.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Lets events arrive at these moments, and returns the rhythm and the last of them. */
function after(moments: readonly number[]): { readonly rhythm: Rhythm; readonly lastMs: number } {
  let rhythm: Rhythm | undefined;
  let lastMs: number | undefined;
  for (const atMs of moments) {
    rhythm = rhythmAfter(rhythm, { atMs, beforeMs: lastMs });
    lastMs = atMs;
  }
  if (rhythm === undefined || lastMs === undefined) throw new Error('no event');
  return { rhythm, lastMs };
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
    const { rhythm, lastMs } = after(moments.slice(0, index + 1));
    return isUnusuallyLong(nextMs - atMs - 1, rhythm, lastMs);
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
    const { rhythm, lastMs } = after(every(6 * HOUR_MS, 8));
    expect(rhythm.usualIntervalMs).toBe(6 * HOUR_MS);
    expect(isUnusuallyLong(18 * HOUR_MS, rhythm, lastMs)).toBe(false);
    expect(isUnusuallyLong(18 * HOUR_MS + 1, rhythm, lastMs)).toBe(true);
  });

  it('for thirty days, and then counts as a bucket that is not written any more', () => {
    const { rhythm, lastMs } = after(every(6 * HOUR_MS, 8));
    const endMs = 18 * HOUR_MS + 30 * DAY_MS;
    expect([endMs, endMs + 1].map((silenceMs) => isUnusuallyLong(silenceMs, rhythm, lastMs))).toEqual([true, false]);
  });

  it('not within an hour, and not before its events were seen for a week', () => {
    const busy = after(every(MINUTE_MS, 8));
    expect([HOUR_MS, HOUR_MS + 1].map((silenceMs) => isUnusuallyLong(silenceMs, busy.rhythm, busy.lastMs))).toEqual([false, true]);
    const young = after(every(MINUTE_MS, 6));
    expect(isUnusuallyLong(100 * DAY_MS, young.rhythm, young.lastMs)).toBe(false);
  });

  it('within a day once it has been busy for some weeks, whatever it was before', () => {
    const begin = [0, 2 * DAY_MS];
    const { rhythm, lastMs } = after([...begin, ...every(10 * MINUTE_MS, 40).map((atMs) => 2 * DAY_MS + atMs)]);
    expect(isUnusuallyLong(DAY_MS, rhythm, lastMs)).toBe(true);
  });

  it('by an interval that is never longer than the longest, and never shorter than the last', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(20 * DAY_MS), { minLength: 1, maxLength: 50 }), (pauses) => {
        let atMs = 0;
        const { rhythm } = after([0, ...pauses.map((pause) => (atMs += pause))]);
        expect(rhythm.usualIntervalMs).toBeLessThanOrEqual(Math.max(...pauses));
        expect(rhythm.usualIntervalMs).toBeGreaterThanOrEqual(pauses.at(-1) ?? 0);
      }),
    );
  });

  it('by no event that arrived out of order', () => {
    const rhythm = { sinceMs: 0, usualIntervalMs: HOUR_MS };
    expect(rhythmAfter(rhythm, { atMs: 5, beforeMs: 10 })).toEqual(rhythm);
  });
});
