import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { failedOf, gapAfterLook, gapAfterOther, gapDueAtMs, waiting, withClockReason } from '../../../src/domain/gaps/closing.ts';
import { noCounts } from '../../../src/domain/reindex/counts.ts';
import { gapSchema, withReport, type GapRecord } from '../../../src/domain/gaps/gap.ts';
import { jobsOf } from '../../../src/domain/gaps/plan.ts';
import { jobStates, type JobRecord } from '../../../src/domain/reindex/job.ts';
import { gapSeenAt, jobMadeAt } from '../../support/fakes/gap-records.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const SEEN_MS = 1_800_000_000_000;
const NOW_MS = SEEN_MS + HOUR_MS;
/** The place of a job among all beginnings. */
const BEGAN = 7;

const gapOf = (more: Partial<GapRecord> = {}): GapRecord => gapSeenAt(SEEN_MS, { id: 'gap:photos:bulk-delete', ...more });
const jobOf = (more: Partial<JobRecord> = {}): JobRecord => jobMadeAt(SEEN_MS, { beginOrder: BEGAN, ...more });

describe('a gap is due', () => {
  it.each<[string, Partial<GapRecord>, number]>([
    ['a minute after it was seen, if that is all', {}, SEEN_MS + MINUTE_MS],
    ['a minute after it was last told, however long ago that happened', { toldAtMs: SEEN_MS + 3 * MINUTE_MS }, SEEN_MS + 4 * MINUTE_MS],
    ['ten minutes after it was opened, if it is told again and again', { toldAtMs: SEEN_MS + HOUR_MS }, SEEN_MS + 10 * MINUTE_MS],
    [
      'ten minutes after what is reconciled, if it is told for hours',
      { toldAtMs: SEEN_MS + HOUR_MS, lastSeenMs: SEEN_MS + HOUR_MS, reconciledBeforeMs: SEEN_MS + HOUR_MS / 2 },
      SEEN_MS + HOUR_MS / 2 + 10 * MINUTE_MS,
    ],
    ['a day after it was opened, if its keys are told one by one', { covered: true }, SEEN_MS + 24 * HOUR_MS],
    ['a day after what is reconciled, if covered', { covered: true, reconciledBeforeMs: SEEN_MS + HOUR_MS }, SEEN_MS + 25 * HOUR_MS],
    ['not before what it waits for', { notBeforeMs: SEEN_MS + HOUR_MS }, SEEN_MS + HOUR_MS],
    ['never, while it is held', { held: true, notBeforeMs: SEEN_MS }, Infinity],
  ])('%s', (_, more, dueAtMs) => {
    expect(gapDueAtMs(gapOf(more))).toBe(dueAtMs);
  });

  it('within ten minutes of its opening, whatever is told, unless covered or held back', () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 2 * HOUR_MS })), (delays) => {
        let gap = gapOf();
        for (const delayMs of delays.toSorted((a, b) => a - b)) {
          const report = { bucket: 'photos', kind: 'bulk-delete', reason: 'r', seenAtMs: SEEN_MS + delayMs } as const;
          gap = withReport(gap, report, { count: 1, toldAtMs: report.seenAtMs, afterBeginOrder: BEGAN - 1, enrich: 'none' });
        }
        expect(gapDueAtMs(gap)).toBeLessThanOrEqual(SEEN_MS + 10 * MINUTE_MS);
        expect(gapDueAtMs(gap)).toBeGreaterThanOrEqual(SEEN_MS + MINUTE_MS);
      }),
    );
  });
});

describe('a gap after a look at its job', () => {
  const closing = gapOf({ state: 'closing', jobId: 'job-1', failures: 2, notBeforeMs: 5, waits: { reason: 'old' } });

  it('is closed once a job is done whose floor came after all that was seen, and forgets its failures', () => {
    const job = jobOf({ state: 'done', coversBeforeMs: SEEN_MS + 1 });
    expect(gapAfterLook(closing, job, NOW_MS)).toEqual(
      gapOf({ state: 'closed', jobId: 'job-1', closedAtMs: NOW_MS, reconciledBeforeMs: SEEN_MS + 1 }),
    );
  });

  it.each<[string, Partial<JobRecord>, Partial<GapRecord>]>([
    ['its floor came no later than what was seen', { coversBeforeMs: SEEN_MS }, { reconciledBeforeMs: SEEN_MS }],
    ['it was asked for with --now', { now: true }, {}],
    ['it was a report', { mode: 'report', coversBeforeMs: SEEN_MS + 1 }, {}],
    ['it was of another prefix', { prefix: 'a/', coversBeforeMs: SEEN_MS + 1 }, {}],
  ])('is open again when its job is done but %s', (_, more, rest) => {
    const again = { ...closing, afterBeginOrder: BEGAN };
    expect(gapAfterLook(again, jobOf({ state: 'done', ...more }), NOW_MS)).toEqual(
      gapOf({ state: 'open', afterBeginOrder: BEGAN, ...rest }),
    );
  });

  it('is not certified anew by an older floor than it had', () => {
    const gap = { ...closing, lastSeenMs: SEEN_MS + 9, reconciledBeforeMs: SEEN_MS + 5 };
    const job = jobOf({ state: 'done', coversBeforeMs: SEEN_MS });
    expect(gapAfterLook(gap, job, NOW_MS)).toMatchObject({ state: 'open', reconciledBeforeMs: SEEN_MS + 5 });
  });

  it.each(['queued', 'running'] as const)('is closing while the job is %s and may still cover it', (state) => {
    for (const coversBeforeMs of [undefined, SEEN_MS + 1]) {
      const after = gapAfterLook(gapOf({ jobId: 'job-1', waits: { reason: 'x' } }), jobOf({ state, coversBeforeMs }), NOW_MS);
      expect(after).toEqual(gapOf({ state: 'closing', jobId: 'job-1' }));
      expect(gapAfterLook(after, jobOf({ state, coversBeforeMs }), NOW_MS)).toBe(after);
    }
  });

  it('is open, with the job, when it was seen again after the job’s floor', () => {
    const again = { ...closing, afterBeginOrder: BEGAN };
    const after = gapAfterLook(again, jobOf({ coversBeforeMs: SEEN_MS }), NOW_MS);
    expect(after).toMatchObject({
      state: 'open',
      jobId: 'job-1',
      waits: { reason: 'changes were reported after job-1 began, so another job will follow' },
    });
    expect(gapAfterLook(after, jobOf({ coversBeforeMs: SEEN_MS }), NOW_MS)).toBe(after);
  });

  it.each([
    ['requested', { pausedBecause: 'requested' }],
    ['deletion-limit', { pausedBecause: 'deletion-limit' }],
    ['requested', {}],
  ] as const)('of a loss is open for another job when its job is paused (%s)', (pausedBecause, because) => {
    const job = jobOf({ state: 'paused', ...because, coversBeforeMs: SEEN_MS + 1 });
    const after = gapAfterLook({ ...closing, kind: 'loss' }, job, NOW_MS);
    expect(after).toMatchObject({ state: 'open', waits: { reason: `job-1 is paused (${pausedBecause}), so another job follows` } });
    expect(after).not.toHaveProperty('jobId');
  });

  it.each<[GapRecord['kind'], Partial<JobRecord>, string]>([
    ['bulk-delete', { state: 'paused', pausedBecause: 'requested' }, 'run `tally jobs resume job-1`, or `tally reindex photos`'],
    ['lifecycle', { state: 'paused', pausedBecause: 'deletion-limit' }, 'run `tally jobs resume job-1`, or `tally reindex photos`'],
    ['bulk-delete', { state: 'cancelled' }, 'run `tally reindex photos`'],
    ['lifecycle', { state: 'cancelled' }, 'run `tally reindex photos`'],
  ])('Fix: of kind %s whose job a person has stopped (%o) waits for a person', (kind, stopped, act) => {
    const after = gapAfterLook({ ...closing, kind }, jobOf(stopped), NOW_MS);
    expect(after).toMatchObject({ state: 'open', held: true, waits: { reason: expect.stringMatching(new RegExp(`${act}$`)) as string } });
    expect(gapDueAtMs(after)).toBe(Infinity);
    // no other job is begun with it, whatever is reported
    const report = { bucket: 'photos', kind, reason: 'again', seenAtMs: NOW_MS } as const;
    const again = withReport(after, report, { count: 1, toldAtMs: NOW_MS, afterBeginOrder: BEGAN, enrich: 'none' });
    const due = gapOf({ kind: 'loss' });
    expect(jobsOf({ due: [due], open: [again, due], requestsOf: () => 1, requestsPerDay: 10 })).toEqual([{ prefix: '', gaps: [due] }]);
    // the job that is resumed closes it
    const resumed = jobOf({ gapIds: [after.id], deletions: { reserved: 0, waiting: 0 }, coversBeforeMs: SEEN_MS + 1 });
    expect(gapAfterOther(after, resumed, NOW_MS)).toEqual(gapOf({ kind, state: 'closing', jobId: 'job-1' }));
  });

  it('is closed by a job that held deletions back, since these are a gap of their kind', () => {
    const job = jobOf({ state: 'done', coversBeforeMs: SEEN_MS + 1, counts: { ...noCounts, held: 7 } });
    for (const kind of ['loss', 'bulk-delete', 'lifecycle'] as const) {
      expect(gapAfterLook({ ...closing, kind }, job, NOW_MS)).toMatchObject({ state: 'closed', jobId: 'job-1' });
      expect(gapAfterOther(gapOf({ kind }), job, NOW_MS)).toMatchObject({ state: 'closed', jobId: 'job-1' });
    }
  });

  it.each<[string, JobRecord | undefined, string]>([
    ['failed', jobOf({ state: 'failed', error: { code: 'object.denied', reason: 'no' } }), 'job-1 failed: object.denied: no'],
    ['is gone', undefined, 'job-1 no longer exists'],
  ])('is open and left alone for a while when the job %s', (_, job, reason) => {
    const untilMs = NOW_MS + 4 * MINUTE_MS;
    expect(gapAfterLook(closing, job, NOW_MS)).toEqual(
      gapOf({ state: 'open', failures: 3, notBeforeMs: untilMs, waits: { reason, untilMs } }),
    );
  });

  it('of a loss is tried again when its job was cancelled', () => {
    const after = gapAfterLook({ ...closing, kind: 'loss' }, jobOf({ state: 'cancelled' }), NOW_MS);
    expect(after).toMatchObject({ state: 'open', failures: 3, waits: { reason: 'job-1 was cancelled' } });
  });

  it('that fails again and again is tried four times a day at least', () => {
    let gap = gapOf();
    const delays: number[] = [];
    for (let failures = 1; failures <= 12; failures += 1) {
      gap = failedOf(gap, 'no luck', NOW_MS);
      delays.push((gapDueAtMs(gap) - NOW_MS) / MINUTE_MS);
    }
    expect(delays).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 360, 360, 360]);
  });
});

describe('a gap that a job cannot cover because of the clocks', () => {
  // the job began after all that was told, and says that it covers only what is 15 minutes older
  const early = jobOf({ startedAtMs: SEEN_MS + MINUTE_MS, coversBeforeMs: SEEN_MS - 14 * MINUTE_MS });

  it('says so, and waits for the moment from which a job covers it', () => {
    const running = gapAfterLook(gapOf({ state: 'closing', jobId: 'job-1' }), early, SEEN_MS + 2 * MINUTE_MS);
    expect(running).toMatchObject({
      state: 'open',
      waits: { reason: expect.stringMatching(/840 s later .* a clock is wrong: `tally doctor photos`/) },
    });
    const done = gapAfterLook(running, { ...early, state: 'done' }, SEEN_MS + 2 * MINUTE_MS);
    expect(done).toMatchObject({ state: 'open', tooEarlyUntilMs: SEEN_MS + 15 * MINUTE_MS + 1_000, waits: running.waits });
    expect(gapDueAtMs(done)).toBe(SEEN_MS + 15 * MINUTE_MS + 1_000);
    // what is told later waits for nothing
    const report = { bucket: 'photos', kind: 'bulk-delete', reason: 'DeleteObjects', seenAtMs: SEEN_MS + 5 * MINUTE_MS } as const;
    expect(
      withReport(done, report, { count: 1, toldAtMs: report.seenAtMs, afterBeginOrder: BEGAN - 1, enrich: 'none' }),
    ).not.toHaveProperty('tooEarlyUntilMs');
  });

  it('does not blame a clock where changes were told after the job began', () => {
    const told = gapOf({ state: 'closing', jobId: 'job-1', afterBeginOrder: BEGAN });
    expect(gapAfterLook(told, early, NOW_MS).waits).toEqual({
      reason: 'changes were reported after job-1 began, so another job will follow',
    });
    expect(gapAfterLook(told, { ...early, state: 'done', coversBeforeMs: SEEN_MS - MINUTE_MS }, NOW_MS)).not.toHaveProperty(
      'tooEarlyUntilMs',
    );
  });

  it('and one that was told at a time which this machine’s clock has not reached names the clock, once', () => {
    const nowMs = SEEN_MS - HOUR_MS;
    const gap = withClockReason(gapOf(), nowMs);
    expect(gap.waits).toEqual({
      reason: expect.stringContaining('3600 s ahead: a clock is wrong') as string,
      untilMs: SEEN_MS + MINUTE_MS,
    });
    expect(withClockReason(gap, nowMs + 15_000)).toBe(gap);
    const small = gapOf();
    expect(withClockReason(small, SEEN_MS - MINUTE_MS)).toBe(small);
    expect(withClockReason(small, NOW_MS)).toBe(small);
    // it waits for a person, and is never due: it must not say when
    const held = { ...gapOf(), held: true };
    expect(withClockReason(held, nowMs)).toBe(held);
    // nor must one that waits for the proof of events: Infinity is not stored
    const unproven = withClockReason({ ...gapOf(), awaitsProof: true }, nowMs);
    expect(unproven.waits).toEqual({ reason: expect.stringContaining('a clock is wrong') as string });
    expect(gapSchema.parse(JSON.parse(JSON.stringify(unproven)))).toEqual(unproven);
  });
});

describe('an open gap after a look at the bucket’s latest job', () => {
  it.each<[string, Partial<JobRecord>, Partial<GapRecord>, GapRecord['state']]>([
    ['is closing by one that may cover it', {}, { kind: 'loss' }, 'closing'],
    ['of deletes is closing by one that was begun for it', { gapIds: ['gap:photos:bulk-delete'] }, {}, 'closing'],
    ['of deletes is closing by one without a limit', { deletions: { reserved: 0, waiting: 0 } }, {}, 'closing'],
    ['of deletes stays open beside one that the deletion limit may stop', {}, {}, 'open'],
    [
      'of deletes stays open beside one whose deletion limit has a limit',
      { deletions: { limit: 1_000, reserved: 0, waiting: 0 } },
      {},
      'open',
    ],
    ['of tags is closing by one that reads them', { tags: true }, { kind: 'loss', tags: true }, 'closing'],
    ['of tags stays open beside one that does not read them', {}, { kind: 'loss', tags: true }, 'open'],
    ['of tags stays open after one that did not read them', { state: 'done', coversBeforeMs: SEEN_MS + 1 }, { tags: true }, 'open'],
    ['is closed by one that covers it and is done', { state: 'done', coversBeforeMs: SEEN_MS + 1 }, {}, 'closed'],
    ['stays open beside one whose floor is older', { coversBeforeMs: SEEN_MS }, {}, 'open'],
    ['stays open after one whose floor was older', { state: 'done', coversBeforeMs: SEEN_MS }, {}, 'open'],
    ['stays open beside one of another prefix', { prefix: 'a/' }, { prefix: 'b/' }, 'open'],
    ['stays open beside one of a part', { prefix: 'a/' }, {}, 'open'],
    ['is closing by one of a wider prefix', { prefix: 'a/' }, { kind: 'loss', prefix: 'a/b/' }, 'closing'],
    ['stays open beside a report', { mode: 'report' }, {}, 'open'],
    ['stays open beside one with --now', { now: true }, {}, 'open'],
    ['stays open after one that is done and covers nothing', { state: 'done' }, {}, 'open'],
    ['stays open beside one that is paused', { state: 'paused', coversBeforeMs: SEEN_MS + 1 }, {}, 'open'],
    ['stays open after one that failed', { state: 'failed', coversBeforeMs: SEEN_MS + 1 }, {}, 'open'],
  ])('%s', (_, job, more, state) => {
    const gap = gapOf(more);
    const after = gapAfterOther(gap, jobOf(job), NOW_MS);
    expect(after.state).toBe(state);
    if (state === 'open') expect(after).toBe(gap);
  });
});

it('a gap is closed only by a job that is done, and began after all that was seen of it and after its last report', () => {
  const jobs = fc.record({
    state: fc.constantFrom(...jobStates),
    mode: fc.constantFrom('apply' as const, 'report' as const),
    now: fc.boolean(),
    prefix: fc.constantFrom('', 'a/', 'a/b'),
    coversBeforeMs: fc.option(fc.integer({ min: SEEN_MS - 2, max: SEEN_MS + 2 }), { nil: undefined }),
  });
  const gaps = fc.record({
    // the time of a bulk delete is that of AWS, which says as much as the order
    kind: fc.constantFrom('loss' as const, 'lifecycle' as const, 'bulk-delete' as const),
    afterBeginOrder: fc.integer({ min: BEGAN - 2, max: BEGAN + 2 }),
  });
  const prefixes = fc.constantFrom(undefined, 'a/', 'a/bc');
  fc.assert(
    fc.property(jobs, gaps, prefixes, fc.boolean(), (facts, of, prefix, isOwn) => {
      const job = jobOf(facts);
      const gap = gapOf({ ...of, ...(prefix !== undefined && { prefix }), ...(isOwn && { state: 'closing', jobId: job.id }) });
      const after = isOwn ? gapAfterLook(gap, job, NOW_MS) : gapAfterOther(gap, job, NOW_MS);
      const mayClose =
        facts.state === 'done' &&
        facts.mode === 'apply' &&
        !facts.now &&
        (prefix ?? '').startsWith(facts.prefix) &&
        facts.coversBeforeMs !== undefined &&
        facts.coversBeforeMs > SEEN_MS &&
        (of.kind === 'bulk-delete' || of.afterBeginOrder < BEGAN);
      expect(after.state === 'closed').toBe(mayClose);
    }),
  );
});

it('why a gap waits is stored once', () => {
  const gap = waiting(gapOf(), 'another job', 5);
  expect(gap.waits).toEqual({ reason: 'another job', untilMs: 5 });
  expect(waiting(gap, 'another job', 5)).toBe(gap);
  expect(waiting(gap, 'another job')).not.toBe(gap);
});
