import { describe, expect, it } from 'vitest';
import { fullSweepBegun, fullSweepAction } from '../../../src/domain/calendar/full-sweep.ts';
import type { JobRecord, JobState } from '../../../src/domain/reindex/job.ts';
import type { ScheduleRecord } from '../../../src/domain/calendar/schedule.ts';
import { jobMadeAt } from '../../support/fakes/gap-records.ts';

const HOUR_MS = 3_600_000;
const WEEK_MS = 7 * 24 * HOUR_MS;
const NOW_MS = 1_800_000_000_000;

const jobOf = (state: JobState): JobRecord => jobMadeAt(NOW_MS, { state });

function step(
  current: ScheduleRecord | undefined,
  at: { readonly nowMs?: number; readonly job?: JobRecord; readonly bucket?: string } = {},
) {
  return fullSweepAction(current, { bucket: at.bucket ?? 'photos', nowMs: at.nowMs ?? NOW_MS, intervalMs: WEEK_MS, job: at.job });
}

describe('the weekly sweep of a bucket', () => {
  it('gets a place of its own in the coming week', () => {
    const dues = Array.from({ length: 200 }, (_, at) => {
      const first = step(undefined, { bucket: `bucket-${at}` });
      if (first.kind !== 'store') throw new Error(first.kind);
      return first.record.dueAtMs - NOW_MS;
    });
    expect(Math.min(...dues)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...dues)).toBeLessThan(WEEK_MS);
    const days = new Set(dues.map((dueMs) => Math.floor(dueMs / (24 * HOUR_MS))));
    expect(days.size).toBe(7);
  });

  it('begins when it is due, and again a week later', () => {
    const begun = fullSweepBegun('photos', 'job-1', { nowMs: NOW_MS, intervalMs: WEEK_MS });
    expect(begun).toEqual({ name: 'full-sweep:photos', dueAtMs: NOW_MS + WEEK_MS, lastStartedAtMs: NOW_MS, jobId: 'job-1' });
    for (const job of [jobOf('done'), jobOf('cancelled'), undefined]) {
      const more = job === undefined ? {} : { job };
      expect(step(begun, { nowMs: NOW_MS + WEEK_MS - 1, ...more }).kind).toBe('wait');
      expect(step(begun, { nowMs: NOW_MS + WEEK_MS, ...more }).kind).toBe('begin');
    }
  });

  it.each(['queued', 'running', 'paused'] as const)('waits for its job that is %s, however long', (state) => {
    const begun = fullSweepBegun('photos', 'job-1', { nowMs: NOW_MS, intervalMs: WEEK_MS });
    expect(step(begun, { nowMs: NOW_MS + 3 * WEEK_MS, job: jobOf(state) }).kind).toBe('wait');
  });

  it('is due again six hours after its job failed', () => {
    const after = step(fullSweepBegun('photos', 'job-1', { nowMs: NOW_MS, intervalMs: WEEK_MS }), {
      nowMs: NOW_MS + HOUR_MS,
      job: jobOf('failed'),
    });
    if (after.kind !== 'store') throw new Error(after.kind);
    expect(after.record).toMatchObject({ dueAtMs: NOW_MS + 7 * HOUR_MS, lastError: 'job-1 failed' });
    expect(after.record).not.toHaveProperty('jobId');
    expect(step(after.record, { nowMs: NOW_MS + 7 * HOUR_MS }).kind).toBe('begin');
  });

  it('does not believe a moment that no right clock can have set', () => {
    expect(step({ name: 'full-sweep:photos', dueAtMs: NOW_MS + 3 * WEEK_MS }).kind).toBe('begin');
  });
});
