import { expect, it } from 'vitest';
import { createUnclaimedJobs } from '../../../src/pipeline/serving/unclaimed-jobs.ts';

it('warns where a job has waited for three minutes and no worker takes it, until one does', () => {
  const unclaimed = createUnclaimedJobs();
  expect(unclaimed.check()).toEqual({ status: 'ok' });
  // paused and ended jobs have no time; one waits for its next step, and one is held
  const others = [{}, { dueAtMs: 1_060_000 }, { dueAtMs: 1_020_000 }];
  unclaimed.see([{ dueAtMs: 820_000 }, ...others], 1_000_000);
  expect(unclaimed.check()).toEqual({ status: 'ok' });
  unclaimed.see([{ dueAtMs: 819_999 }, ...others], 1_000_000);
  expect(unclaimed.check()).toMatchObject({
    status: 'warning',
    code: 'no-worker',
    detail: expect.stringContaining('a re-index job that waits'),
  });
  unclaimed.see(others, 1_000_000);
  expect(unclaimed.check()).toEqual({ status: 'ok' });
});
