import { describe, expect, it } from 'vitest';
import { closing, gapAfterLook, gapAfterOther, gapDueAtMs } from '../../../src/domain/gaps/closing.ts';
import type { GapRecord } from '../../../src/domain/gaps/gap.ts';
import { awaitsConsent, heldGapId, holdsAnyOf, withHeld } from '../../../src/domain/gaps/held-deletes.ts';
import { noCounts } from '../../../src/domain/reindex/counts.ts';
import type { JobRecord } from '../../../src/domain/reindex/job.ts';
import { gapSeenAt, jobMadeAt } from '../../support/fakes/gap-records.ts';

const HOUR_MS = 3_600_000;
const FLOOR_MS = 1_800_000_000_000;
const NOW_MS = FLOOR_MS + HOUR_MS;

const jobOf = (more: Partial<JobRecord> = {}): JobRecord =>
  jobMadeAt(FLOOR_MS, { coversBeforeMs: FLOOR_MS, beginOrder: 1, state: 'done', counts: { ...noCounts, listed: 5, held: 7 }, ...more });
const deletesOf = (more: Partial<GapRecord> = {}): GapRecord => gapSeenAt(FLOOR_MS - 1, more);

function heldOf(job = jobOf(), current?: GapRecord): GapRecord {
  return withHeld(current, job, { held: 7, isWhole: true, nowMs: NOW_MS, afterBeginOrder: 1 });
}

describe('the gap of what a job holds back', () => {
  it.each<[string, Partial<JobRecord>, RegExp, RegExp]>([
    [
      'it allows no more',
      {},
      /^job-1 held back 7 deletions, more than its deletion limit allows$/,
      /`tally reindex photos --allow-deletes 7`$/,
    ],
    [
      'the bucket is empty',
      { counts: { ...noCounts, held: 7 } },
      /^job-1 held back 7 deletions, because the bucket is empty$/,
      /`tally reindex photos --allow-deletes 7`$/,
    ],
    [
      'it allows no more under a prefix',
      { prefix: "it's $HOME/", counts: { ...noCounts, held: 7 } },
      /more than its deletion limit allows$/,
      /`tally reindex photos --allow-deletes 7 --prefix 'it'\\''s \$HOME\/'`$/,
    ],
    [
      'it is paused',
      { state: 'paused', pausedBecause: 'deletion-limit', deletions: { limit: 1_000, reserved: 1_000, waiting: 7 } },
      /more than its deletion limit allows$/,
      /`tally jobs resume job-1 --allow-deletes 1007`$/,
    ],
  ])('names the whole number and what to run when %s', (_, more, reason, waits) => {
    const gap = heldOf(jobOf(more));
    expect(gap).toMatchObject({ kind: 'held-deletes', state: 'open', heldDeletes: 7 });
    expect(gap.reason).toMatch(reason);
    expect(gap.waits?.reason).toMatch(waits);
  });

  it('has the latest number of a job that compared everything, and never less than was known of one that did not', () => {
    const gap = withHeld(heldOf(), jobOf(), { held: 3, isWhole: true, nowMs: NOW_MS, afterBeginOrder: 1 });
    expect(gap.heldDeletes).toBe(3);
    expect(withHeld(gap, jobOf(), { held: 2, isWhole: false, nowMs: NOW_MS, afterBeginOrder: 1 }).heldDeletes).toBe(3);
    expect(withHeld(gap, jobOf(), { held: 4, isWhole: false, nowMs: NOW_MS, afterBeginOrder: 1 }).heldDeletes).toBe(4);
    expect(withHeld({ ...gap, state: 'closed' }, jobOf(), { held: 2, isWhole: false, nowMs: NOW_MS, afterBeginOrder: 1 }).heldDeletes).toBe(
      2,
    );
  });

  it('is looked at again four times a day, whatever waited and failed before', () => {
    expect(gapDueAtMs(heldOf())).toBe(NOW_MS + 6 * HOUR_MS);
    expect(heldOf(jobOf(), { ...heldOf(), failures: 5, overBudget: true, refusedSinceMs: 1 })).not.toHaveProperty('failures');
  });

  it('stays as its job has stored it, and is stored again if a look came in between', () => {
    for (const job of [
      jobOf(),
      jobOf({ state: 'paused', pausedBecause: 'deletion-limit', deletions: { limit: 0, reserved: 0, waiting: 7 } }),
    ]) {
      const gap = heldOf(job);
      expect(gapAfterOther(gap, job, NOW_MS)).toBe(gap);
      const between = closing(gap, { ...job, state: 'running' });
      expect(between).toMatchObject({ state: 'closing', heldDeletes: 7 });
      expect(gapAfterLook(between, job, NOW_MS)).toMatchObject({ state: 'open', heldDeletes: 7, notBeforeMs: NOW_MS + 6 * HOUR_MS });
      expect(gapAfterLook(between, job, NOW_MS)).not.toHaveProperty('failures');
    }
  });

  it('is open with its number when its job fails or is cancelled', () => {
    const between = closing(heldOf(), jobOf({ state: 'running' }));
    for (const state of ['failed', 'cancelled'] as const)
      expect(gapAfterLook(between, jobOf({ state }), NOW_MS)).toMatchObject({ state: 'open', heldDeletes: 7 });
  });

  it('is closed by a job of all of its keys that holds nothing back, the released one included', () => {
    for (const job of [jobOf({ counts: noCounts }), jobOf({ id: 'job-2', counts: noCounts, coversBeforeMs: NOW_MS })]) {
      const after = gapAfterOther(heldOf(), job, NOW_MS);
      expect(after).toMatchObject({ state: 'closed', jobId: job.id });
      expect(after).not.toHaveProperty('heldDeletes');
    }
    for (const more of [{ now: true }, { prefix: 'p' }, { mode: 'report' }, { coversBeforeMs: FLOOR_MS - HOUR_MS }] as const)
      expect(gapAfterOther(heldOf(), jobOf({ counts: noCounts, ...more }), NOW_MS).state).toBe('open');
  });

  it('and those of deletes whose job was stopped await consent for every job but that one', () => {
    const keys = { bucket: 'photos', prefix: '' };
    const stopped = gapAfterLook(deletesOf({ jobId: 'job-1' }), jobOf({ state: 'cancelled' }), NOW_MS);
    for (const gap of [heldOf(), stopped]) {
      expect(awaitsConsent(gap, keys)).toBe(true);
      expect(awaitsConsent({ ...gap, prefix: 'a/' }, { ...keys, prefix: 'b/' })).toBe(false);
      expect(awaitsConsent({ ...gap, state: 'closed' }, keys)).toBe(false);
    }
    expect(awaitsConsent(stopped, { ...keys, gapIds: [stopped.id] })).toBe(false);
    expect(awaitsConsent(heldOf(), { ...keys, gapIds: [heldOf().id] })).toBe(true);
    // neither a loss of a bucket that was connected without a re-index, nor deletes whose job was not stopped
    for (const gap of [deletesOf({ kind: 'loss', held: true }), deletesOf()]) expect(awaitsConsent(gap, keys)).toBe(false);
  });

  it('of a prefix is closed by a job of the whole bucket, whose own gap has what it holds back', () => {
    expect(gapAfterOther(heldOf(jobOf({ prefix: 'p' })), jobOf(), NOW_MS)).toMatchObject({ state: 'closed' });
  });

  it('of a job that stored no floor begins now', () => {
    const { coversBeforeMs: _, beginOrder: __, ...job } = jobOf({ now: true });
    expect(heldOf(job)).toMatchObject({ lastSeenMs: NOW_MS, afterBeginOrder: 1 });
  });

  it('holds the keys of its prefix, and so those of each prefix within it and around it', () => {
    const answers = ['', 'a', 'a/b', 'a/b/c', 'a/c', 'b'].map((prefix) => holdsAnyOf({ prefix: 'a/b' }, prefix));
    expect(answers).toEqual([true, true, true, true, false, false]);
    expect(holdsAnyOf({}, 'b')).toBe(true);
    expect(heldGapId(jobOf())).toBe('gap:photos:held-deletes');
  });
});
