import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ageMsOf, periodOf, isTimeZone } from '../../src/search/values.rules.ts';

describe('ages and dates', () => {
  it('of a unit are as long as it', () => {
    const lengths = [90_000, 1_800_000, 86_400_000, 604_800_000, 1_209_600_000, 31_536_000_000];
    expect(['90s', '30min', '24h', '7d', '2w', '1y'].map(ageMsOf)).toEqual(lengths);
    expect(['1m', 'd', '-1d'].map(ageMsOf)).toEqual([undefined, undefined, undefined]);
  });

  it('in UTC are what ISO 8601 means', () => {
    fc.assert(
      fc.property(fc.date({ min: new Date('1970-01-01'), max: new Date('9998-01-01'), noInvalidDate: true }), (date) => {
        const text = date.toISOString();
        expect(periodOf(text, 'Asia/Tokyo')).toEqual({ startMs: date.getTime(), endMs: date.getTime() + 1 });
        const dayMs = Date.parse(text.slice(0, 10));
        expect(periodOf(text.slice(0, 10), 'UTC')).toEqual({ startMs: dayMs, endMs: dayMs + 86_400_000 });
      }),
    );
  });

  it('that no calendar has are none', () => {
    for (const text of ['2026-13', '2026-00', '2026-02-29', '2026-01-01T24:00', '2026-01-01T00:60', '26-01-01', '2026-1-1', '2026-01-01Z'])
      expect(periodOf(text, 'UTC'), text).toBeUndefined();
  });

  it('are of zones that exist', () => {
    const zones = ['UTC', 'Europe/Berlin', '+05:45'];
    expect([...zones, 'Mars/Base', '', 'x'.repeat(1_000), '+5'].filter(isTimeZone)).toEqual(zones);
  });
});
