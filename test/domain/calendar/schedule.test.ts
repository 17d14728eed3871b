import { describe, expect, it } from 'vitest';
import { claimAction, endedRecord, releasedRecord, type ScheduleLook, type ScheduleRecord } from '../../../src/domain/calendar/schedule.ts';

const NOW_MS = 1_800_000_000_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

const look: ScheduleLook = { name: 'purge', holder: 'me', nowMs: NOW_MS, intervalMs: HOUR_MS, isUnchanged: false };

function record(more: Partial<ScheduleRecord> = {}): ScheduleRecord {
  return { name: 'purge', dueAtMs: NOW_MS - 1, ...more };
}

/** Claimed `agoMs` ago by another. */
function claimed(agoMs: number): ScheduleRecord {
  const startedMs = NOW_MS - agoMs;
  return record({ lastStartedAtMs: startedMs, claim: { holder: 'other', renewals: 7 } });
}

describe('a look at a schedule', () => {
  it.each<[string, ScheduleRecord | undefined, Partial<ScheduleLook>, 'claim' | 'wait']>([
    ['that never ran claims it', undefined, {}, 'claim'],
    ['that is due claims it', record(), {}, 'claim'],
    ['at the very moment claims it', record({ dueAtMs: NOW_MS }), {}, 'claim'],
    ['that is not due waits', record({ dueAtMs: NOW_MS + 1 }), {}, 'wait'],
    ['that a clock ahead by half an hour set waits', record({ dueAtMs: NOW_MS + HOUR_MS + 30 * MINUTE_MS }), {}, 'wait'],
    ['that no right clock can have set claims it', record({ dueAtMs: NOW_MS + 2 * HOUR_MS }), {}, 'claim'],
    ['that another has claimed waits, whatever the wall clocks say', claimed(24 * HOUR_MS), {}, 'wait'],
    ['whose claim was not renewed for its life claims it', claimed(-24 * HOUR_MS), { isUnchanged: true }, 'claim'],
    ['that is not due waits, though its claim was not renewed', { ...claimed(0), dueAtMs: NOW_MS + 1 }, { isUnchanged: true }, 'wait'],
  ])('%s', (_, current, more, kind) => {
    expect(claimAction(current, { ...look, ...more }).kind).toBe(kind);
  });

  it('claims under its own name, and keeps what was stored', () => {
    const current = record({ lastEndedAtMs: 5, lastError: 'index.blocked: full', failures: 2 });
    expect(claimAction(current, look)).toEqual({
      kind: 'claim',
      record: { ...current, lastStartedAtMs: NOW_MS, claim: { holder: 'me', renewals: 0 } },
    });
  });
});

describe('a run that ended', () => {
  const running = { ...claimed(5 * MINUTE_MS), lastError: 'index.blocked: full', failures: 3 };
  const ended = { nowMs: NOW_MS, intervalMs: HOUR_MS };

  it('makes it due one interval after it began, and forgets earlier failures', () => {
    expect(endedRecord(running, { ...ended, error: undefined })).toEqual({
      name: 'purge',
      dueAtMs: NOW_MS - 5 * MINUTE_MS + HOUR_MS,
      lastStartedAtMs: NOW_MS - 5 * MINUTE_MS,
      lastEndedAtMs: NOW_MS,
    });
  });

  it('badly is tried again after 1, 2, 4 … minutes, at most one interval', () => {
    const delays: number[] = [];
    let current: ScheduleRecord = claimed(0);
    for (let failures = 1; failures <= 8; failures += 1) {
      current = endedRecord(current, { ...ended, error: 'index.blocked: full' });
      expect(current).toMatchObject({ failures, lastError: 'index.blocked: full' });
      delays.push((current.dueAtMs - NOW_MS) / MINUTE_MS);
    }
    expect(delays).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
  });

  it('by a stop leaves it due and free', () => {
    expect(releasedRecord(running)).toEqual({ ...running, claim: undefined });
    expect(claimAction(releasedRecord(running), look).kind).toBe('claim');
  });
});
