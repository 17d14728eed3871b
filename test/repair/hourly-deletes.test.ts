/** Days of a bucket with 10,000,000 objects of which some are deleted in bulk each hour, in virtual time: what its repairs cost, and what is said about them. */
import { expect, it } from 'vitest';
import { gapView } from '../../src/registry/contract/gaps.ts';
import { bucketStatus } from '../../src/records/bucket-status.ts';
import { noCounts } from '../../src/records/counts.ts';
import type { JobRecord } from '../../src/records/job.ts';
import { readRecord, refs } from '../../src/store/stored.ts';
import { noteCompared } from '../../src/repair/job-ends.ts';
import { createGapWorld } from '../support/worlds/gaps.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAYS = 2;
const OBJECTS = 10_000_000;
/** What a process compares in a second (measured). */
const PER_S = 50_000;
const COMPARE_MS = (OBJECTS / PER_S) * 1_000;

it('hourly bulk deletes cost a twentieth of a process at most, and each repair begins when people were told that it would', async () => {
  const world = await createGapWorld();
  const { state, clock } = world;
  const fromMs = clock.nowMs();
  let comparedMs = 0;
  let running: { readonly job: JobRecord; readonly endsAtMs: number } | undefined;
  let saidMs: number | undefined;
  let jobs = 0;

  async function look(): Promise<void> {
    const job = await world.lastJob();
    if (job?.state === 'queued') {
      jobs += 1;
      // the first of all was told of in the minute before
      if (saidMs !== undefined) expect(Math.abs(clock.nowMs() - saidMs)).toBeLessThanOrEqual(2 * MINUTE_MS);
      running = { job, endsAtMs: clock.nowMs() + COMPARE_MS };
      await world.setJob(job, { state: 'running', startedAtMs: clock.nowMs(), coversBeforeMs: clock.nowMs() });
    }
    if (running !== undefined && clock.nowMs() >= running.endsAtMs) {
      const counts = { ...noCounts, listed: OBJECTS, scanned: OBJECTS };
      await noteCompared(state, running.job, { atMs: clock.nowMs(), counts });
      await world.setJob(running.job, { state: 'done', finishedAtMs: clock.nowMs(), counts });
      comparedMs += COMPARE_MS;
      running = undefined;
    }
    saidMs = await said();
  }

  /** When the next repair begins, as `tally gaps` says; the status says the same. */
  async function said(): Promise<number | undefined> {
    const [mark, record] = [await world.gap(), await readRecord(state, refs.bucket('photos'))];
    if (mark === undefined || record === undefined) return undefined;
    const { next, due_at: due } = gapView(mark, clock.nowMs());
    const facts = { waitsFor: undefined, unread: undefined, gaps: [mark], nowMs: clock.nowMs(), compareIntervalMs: 0 };
    const { state: status, sentence } = bucketStatus({ record: { ...record, lastComparedAtMs: 1, provenAtMs: 1 }, ...facts });
    expect(status).toBe('gap_open');
    expect(sentence).toContain(next);
    if (running !== undefined) expect([next, due]).toEqual(['a re-index repairs it', undefined]);
    return due === undefined ? undefined : Date.parse(due);
  }

  for (let minute = 0; minute < DAYS * 24 * 60; minute += 1) {
    if (minute % 60 === 0) {
      await world.tell();
      saidMs = await said();
    }
    await world.after(MINUTE_MS);
    await look();
  }
  const share = comparedMs / (clock.nowMs() - fromMs);
  expect(share).toBeLessThanOrEqual(0.05);
  // and no change waits for longer than that asks for
  expect(share).toBeGreaterThan(0.035);
  expect(jobs).toBeGreaterThan((DAYS * 24 * HOUR_MS) / (21 * COMPARE_MS + 2 * HOUR_MS));
});
