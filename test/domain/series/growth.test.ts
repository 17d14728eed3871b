import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { dayOf, daysSince, GROWTH_DAYS_MAX, withDay, withoutDay, type GrowthRecord } from '../../../src/domain/series/growth.ts';

const DAY_MS = 86_400_000;
const BEGIN_MS = Date.UTC(2026, 0, 1, 13);

it('growth names the days on which nothing was measured, each once, and not those on which something was later', () => {
  const measured = (day: string) => ({ day, objects: 1, bytes: 1 });
  const slow = (day: string) => ({ day, reason: 'too-slow' as const });
  let record: GrowthRecord = { bucket: 'photos', days: [] };
  record = withoutDay(record, slow('2026-01-01'));
  record = withoutDay(record, { day: '2026-01-01', reason: 'index-missing' });
  record = withDay(record, measured('2026-01-02'));
  record = withoutDay(record, slow('2026-01-02'));
  record = withDay(withoutDay(record, slow('2026-01-03')), measured('2026-01-03'));
  expect(record).toEqual({
    bucket: 'photos',
    days: [measured('2026-01-02'), measured('2026-01-03')],
    missed: [slow('2026-01-01')],
  });
  const later = withDay(record, measured(dayOf(Date.UTC(2026, 0, 1) + GROWTH_DAYS_MAX * DAY_MS)));
  expect(later.missed).toEqual([]);
  expect(later.days).toHaveLength(3);
});

it('growth keeps one measure a day, in order, of 400 days at most', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(3), { maxLength: 600 }), (pauses) => {
      let nowMs = BEGIN_MS;
      let record: GrowthRecord = { bucket: 'photos', days: [] };
      const firsts = new Map<string, number>();
      for (const [at, days] of pauses.entries()) {
        nowMs += days * DAY_MS;
        const day = dayOf(nowMs);
        if (!firsts.has(day)) firsts.set(day, at);
        record = withDay(record, { day, objects: at, bytes: at });
      }
      const kept = [...firsts].filter(([day]) => Date.parse(day) > Date.parse(dayOf(nowMs)) - GROWTH_DAYS_MAX * DAY_MS);
      expect(record.days.map(({ day, objects }) => [day, objects])).toEqual(kept);
      expect(record.days.length).toBeLessThanOrEqual(GROWTH_DAYS_MAX);
      expect(daysSince(record.days, { nowMs, count: GROWTH_DAYS_MAX })).toEqual(record.days);
      expect(daysSince(record.days, { nowMs, count: 1 }).map(({ day }) => day)).toEqual(pauses.length === 0 ? [] : [dayOf(nowMs)]);
    }),
  );
});
