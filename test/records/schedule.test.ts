import { describe, expect, it } from 'vitest';
import { endedRecord, isScheduleDue, type ScheduleRecord } from '../../src/records/schedule.ts';

const NOW_MS = 1_800_000_000_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const RUN_MS = 10 * MINUTE_MS;
const look = { nowMs: NOW_MS, intervalMs: HOUR_MS, runMaxMs: RUN_MS, watchedMs: 0 };

describe('a schedule', () => {
  it.each<[string, number | undefined, boolean]>([
    ['that never ran', undefined, true],
    ['at the very moment', NOW_MS, true],
    ['before its time', NOW_MS + 1, false],
    ['that a clock ahead by half an hour set', NOW_MS + HOUR_MS + 30 * MINUTE_MS, false],
    ['that no right clock can have set', NOW_MS + 2 * HOUR_MS, true],
  ])('%s is due or not', (_, dueAtMs, isDue) => {
    expect(isScheduleDue(dueAtMs === undefined ? undefined : { name: 'purge', dueAtMs }, look)).toBe(isDue);
  });

  it.each<[string, number, number, boolean]>([
    ['as long as it may', RUN_MS, RUN_MS, false],
    ['longer than it may, as this worker has watched', RUN_MS, RUN_MS + 1, true],
    ['longer than it may by clocks that may differ', RUN_MS + 30 * MINUTE_MS, 0, false],
    ['longer than that', RUN_MS + 30 * MINUTE_MS + 1, 0, true],
    ['since a time that no right clock can have set', -2 * HOUR_MS, 0, true],
  ])('whose run has lasted %s is due or not', (_, agoMs, watchedMs, isDue) => {
    const running: ScheduleRecord = { name: 'purge', dueAtMs: 0, running: true, lastStartedAtMs: NOW_MS - agoMs };
    expect(isScheduleDue(running, { ...look, watchedMs })).toBe(isDue);
  });

  it('is free after its run: due an interval after that began, a minute after it failed, and still if it was stopped', () => {
    const lastStartedAtMs = NOW_MS - 5 * MINUTE_MS;
    const running: ScheduleRecord = { name: 'purge', dueAtMs: NOW_MS - 6 * MINUTE_MS, running: true, lastStartedAtMs };
    const free = { name: 'purge', lastStartedAtMs };
    const after = (end: 'done' | 'failed' | 'stopped', intervalMs = HOUR_MS) => endedRecord(running, { end, nowMs: NOW_MS, intervalMs });
    expect(after('done')).toEqual({ ...free, dueAtMs: lastStartedAtMs + HOUR_MS });
    expect(after('failed')).toEqual({ ...free, dueAtMs: NOW_MS + MINUTE_MS });
    expect(after('failed', 15_000).dueAtMs).toBe(NOW_MS + 15_000);
    expect(after('stopped')).toEqual({ ...free, dueAtMs: NOW_MS });
  });
});
