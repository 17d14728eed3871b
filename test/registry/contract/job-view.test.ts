import { describe, expect, it } from 'vitest';
import { leftMs } from '../../../src/registry/contract/job-state.ts';
import { jobView } from '../../../src/registry/contract/job-view.ts';
import { noCounts } from '../../../src/records/comparison.ts';
import type { JobRecord } from '../../../src/records/job.ts';
import type { WaitingDeletes } from '../../../src/records/waiting-deletes.ts';

const counts = { ...noCounts, listed: 40, scanned: 30, list_requests: 1_000_000, head_requests: 1_000_000 };
const running: JobRecord = {
  id: 'job-1',
  bucket: 'b',
  prefix: '',
  mode: 'apply',
  requestedBy: 'test',
  state: 'running',
  createdAtMs: 1,
  startedAtMs: 2,
  comparingAtMs: 3,
  counts,
};

describe('the view of a job', () => {
  it('says how far it is, how fast, and what keeps it from going on', () => {
    const fault = { code: 's3.throttled', reason: 'SlowDown', after: 'm', attempts: 0, sinceMs: 1, dueAtMs: 2 } as const;
    const parts = [
      { cursor: 'c', to: 'm' },
      { cursor: 'm', fault },
    ];
    const view = jobView({ ...running, documentsAtStart: 100, parts, lease: { worker: 'w' } }, { nowMs: 4_003 });
    expect(view).toMatchObject({ phase: 'comparing', counts: { listed: 40 } });
    expect(view.last_fault).toEqual({ code: 's3.throttled', reason: 'SlowDown', after: 'm' });
    expect(view.progress).toBeCloseTo(0.3);
    expect(view.objects_per_s).toBeCloseTo(10);
  });

  it('says nothing of progress once the bucket is known to hold more than the index did, and once it has ended nothing of what it waited for', () => {
    for (const documentsAtStart of [39, 0]) expect(jobView({ ...running, documentsAtStart }, { nowMs: 5_000 }).progress).toBeUndefined();
    const fault = { code: 's3.throttled', reason: 'SlowDown', attempts: 0, sinceMs: 1, dueAtMs: 2 } as const;
    const done = jobView({ ...running, state: 'done', parts: [{ cursor: 'c', fault }] }, { nowMs: 5_000 });
    expect([done.progress, done.last_fault]).toEqual([1, undefined]);
  });

  it('counts no pause into the rate', () => {
    const comparing = { ...running, comparingAtMs: 0 };
    expect(jobView({ ...comparing, state: 'paused', pausedAtMs: 2_000 }, { nowMs: 1_000_000 }).objects_per_s).toBeCloseTo(20);
    expect(jobView({ ...comparing, pausedMs: 998_000 }, { nowMs: 1_002_000 }).objects_per_s).toBeCloseTo(10);
  });

  it('says how long the rest takes at its speed so far, once something is known of it', () => {
    const left = (change: Partial<JobRecord>) => leftMs(jobView({ ...running, documentsAtStart: 40, ...change }, { nowMs: 3_003 }));
    expect(left({})).toBeCloseTo(1_000);
    expect(left({ counts: { ...counts, scanned: 0 } })).toBeUndefined();
    expect(left({ state: 'paused', pausedAtMs: 3_003 })).toBeUndefined();
    expect(left({ state: 'done', finishedAtMs: 3_003 })).toBeUndefined();
  });

  it('estimates the requests at what S3 charges for them', () => {
    expect(jobView(running, { nowMs: 5_000 }).cost_usd).toBeCloseTo(5.4);
  });

  it('says which of the deletions that it held back still wait, and whether a person has declined them', () => {
    const uncounted = { prefix: '', jobId: 'job-1', order: 1, sinceMs: 0 };
    const entry = { ...uncounted, count: 205 };
    const shown = (job: JobRecord, ...waiting: readonly WaitingDeletes[]) => jobView(job, { nowMs: 5_000, waiting: [...waiting] }).waiting;
    const done: JobRecord = { ...running, state: 'done' };
    expect(shown(done, { ...entry, jobId: 'job-2', count: 7 }, entry)).toEqual({ deletions: 205 });
    expect(shown(done, { ...entry, declinedAtMs: 0 })).toEqual({ deletions: 205, declined_at: '1970-01-01T00:00:00.000Z' });
    // stopped before it held any back, settled by another job, or not over yet
    for (const none of [shown(done, uncounted), shown(done), shown(running, entry)]) expect(none).toBeUndefined();
  });
});
