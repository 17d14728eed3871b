import { describe, expect, it } from 'vitest';
import { isSweepDue, maySweepBeDue } from '../../src/repair/sweep-full.ts';
import type { JobRecord, JobState } from '../../src/records/job.ts';
import { jobMadeAt } from '../support/fakes/gap-records.ts';

const HOUR_MS = 3_600_000;
const WEEK_MS = 7 * 24 * HOUR_MS;
const NOW_MS = 1_800_000_000_000;

const jobOf = (state: JobState): JobRecord => jobMadeAt(NOW_MS, { state, finishedAtMs: NOW_MS + HOUR_MS });
const begun = { bucket: 'photos', createdAtMs: 0, sweep: { jobId: 'job-1', atMs: NOW_MS } };
const isDue = (afterMs: number, job?: JobRecord): boolean => isSweepDue(begun, job, { nowMs: NOW_MS + afterMs, intervalMs: WEEK_MS });

describe('the weekly sweep of a bucket', () => {
  it('has its own time in the week', () => {
    const firstDay = (bucket: string): number => {
      const at = (day: number) => ({ nowMs: NOW_MS + day * 24 * HOUR_MS, intervalMs: WEEK_MS });
      return [0, 1, 2, 3, 4, 5, 6, 7].findIndex((day) => isSweepDue({ bucket, createdAtMs: NOW_MS }, undefined, at(day)));
    };
    expect(new Set(Array.from({ length: 200 }, (_, at) => firstDay(`bucket-${at}`)))).toEqual(new Set([1, 2, 3, 4, 5, 6, 7]));
  });

  it('begins again a week later', () => {
    for (const job of [jobOf('done'), jobOf('cancelled'), undefined])
      expect([isDue(WEEK_MS - 1, job), isDue(WEEK_MS, job)]).toEqual([false, true]);
  });

  it.each(['queued', 'running', 'paused'] as const)('waits for its job that is %s, however long', (state) => {
    expect(isDue(3 * WEEK_MS, jobOf(state))).toBe(false);
  });

  it('is due again six hours after its job failed, which the bucket’s record alone does not rule out', () => {
    expect([isDue(7 * HOUR_MS - 1, jobOf('failed')), isDue(7 * HOUR_MS, jobOf('failed'))]).toEqual([false, true]);
    const look = { nowMs: NOW_MS + 7 * HOUR_MS, intervalMs: WEEK_MS };
    expect(maySweepBeDue(begun, look)).toBe(true);
    expect(maySweepBeDue({ ...begun, lastComparedAtMs: NOW_MS + HOUR_MS }, look)).toBe(false);
  });

  it('does not believe a moment that no right clock can have set', () => {
    expect(isDue(-3 * WEEK_MS)).toBe(true);
  });
});
