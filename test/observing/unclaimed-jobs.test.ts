import { expect, it } from 'vitest';
import { createUnclaimedJobs } from '../../src/observing/readiness.ts';

it.each([0, 3_600_000, -3_600_000])(
  'warns where a job has waited for three minutes and no worker takes it, until one does, with a clock that is %i ms fast',
  (fastMs) => {
    let atMs = 1_000_000_000;
    const unclaimed = createUnclaimedJobs({ nowMs: () => atMs + fastMs, monotonicMs: () => atMs });
    expect(unclaimed.check()).toMatchObject({ status: 'unknown' });
    const waiting = { id: 'waiting', dueAtMs: atMs };
    // a paused job has no time, and the holder of the other moves its time each quarter of a minute
    const sees = (jobs: Parameters<typeof unclaimed.see>[0]) =>
      unclaimed.see([{ id: 'paused' }, { id: 'held', dueAtMs: atMs + 60_000 }, ...jobs]);
    for (; atMs <= waiting.dueAtMs + 180_000; atMs += 15_000) sees([waiting]);
    expect(unclaimed.check()).toEqual({ status: 'ok' });
    sees([waiting]);
    expect(unclaimed.check()).toMatchObject({
      status: 'warning',
      code: 'no-worker',
      detail: expect.stringContaining('jobs wait'),
    });
    sees([{ ...waiting, dueAtMs: atMs + 60_000 }]);
    expect(unclaimed.check()).toEqual({ status: 'ok' });
  },
);

it('knows nothing of jobs that could not be listed for two minutes, and says since when', () => {
  let atMs = 1_000_000_000;
  const unclaimed = createUnclaimedJobs({ nowMs: () => atMs, monotonicMs: () => atMs });
  unclaimed.see([]);
  atMs += 120_000;
  expect(unclaimed.check()).toEqual({ status: 'ok' });
  atMs += 1;
  expect(unclaimed.check()).toMatchObject({
    status: 'unknown',
    detail: expect.stringContaining('not known since 1970-01-12T13:46:40.000Z: '),
  });
  unclaimed.see([]);
  expect(unclaimed.check()).toEqual({ status: 'ok' });
});
