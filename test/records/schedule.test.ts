import { describe, expect, it } from 'vitest';
import { endedRecord, isScheduleDue, type ScheduleRecord } from '../../src/records/schedule.ts';

const NOW_MS = 1_800_000_000_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const times = { nowMs: NOW_MS, intervalMs: HOUR_MS };

describe('a schedule', () => {
  it.each<[string, number | undefined, boolean]>([
    ['that never ran', undefined, true],
    ['at the very moment', NOW_MS, true],
    ['before its time', NOW_MS + 1, false],
    ['that a clock ahead by half an hour set', NOW_MS + HOUR_MS + 30 * MINUTE_MS, false],
    ['that no right clock can have set', NOW_MS + 2 * HOUR_MS, true],
  ])('%s is due or not', (_, dueAtMs, isDue) => {
    expect(isScheduleDue(dueAtMs === undefined ? undefined : { name: 'purge', dueAtMs }, times)).toBe(isDue);
  });

  it('is free after its run: due an interval after that began, a minute after it failed, and still if it was stopped', () => {
    const lastStartedAtMs = NOW_MS - 5 * MINUTE_MS;
    const claim = { holder: 'me', renewals: 7 };
    const running: ScheduleRecord = { name: 'purge', dueAtMs: NOW_MS - 6 * MINUTE_MS, lastStartedAtMs, claim };
    const { claim: _, ...free } = running;
    const after = (end: 'done' | 'failed' | 'stopped', intervalMs = HOUR_MS) => endedRecord(running, { end, nowMs: NOW_MS, intervalMs });
    expect(after('done')).toEqual({ ...free, dueAtMs: lastStartedAtMs + HOUR_MS, lastEndedAtMs: NOW_MS });
    expect(after('failed')).toEqual({ ...free, dueAtMs: NOW_MS + MINUTE_MS, lastEndedAtMs: NOW_MS });
    expect(after('failed', 15_000).dueAtMs).toBe(NOW_MS + 15_000);
    expect(after('stopped')).toEqual(free);
  });
});
