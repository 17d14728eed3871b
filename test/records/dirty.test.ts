import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EnrichMode } from '../../src/records/bucket.ts';
import {
  afterLook,
  announcesAllOf,
  dueAtMs,
  failedOf,
  keptOf,
  markId,
  markSchema,
  nextOf,
  whyOf,
  withClosed,
  withReport,
  type DirtyMark,
  type GapReport,
  type Look,
  type MarkHistory,
} from '../../src/records/dirty.ts';
import { noCounts } from '../../src/records/comparison.ts';
import { jobStates, type JobRecord, coversBefore } from '../../src/records/job.ts';
import { jobMadeAt, markSeenAt } from '../support/fakes/gap-records.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const SEEN_MS = 1_800_000_000_000;
const NOW_MS = SEEN_MS + HOUR_MS;
/** The place of a job among all beginnings. */
const BEGAN = 7;

const lossOf = (more: Partial<DirtyMark> = {}): DirtyMark => markSeenAt(SEEN_MS, more);
const deletesOf = (more: Partial<DirtyMark> = {}): DirtyMark => lossOf({ deletes: 'announced', ...more });
const jobOf = (more: Partial<JobRecord> = {}): JobRecord => jobMadeAt(SEEN_MS, { beginOrder: BEGAN, ...more });
const doneOf = (more: Partial<JobRecord> = {}): JobRecord => jobOf({ state: 'done', coversBeforeMs: SEEN_MS + 1, ...more });

/** The mark after a look at the job that it names, or at the bucket's latest one. */
function lookedAt(mark: DirtyMark, job: JobRecord | undefined, more: Partial<Look> = {}) {
  return afterLook(mark, { named: job, latest: job, nowMs: NOW_MS, repaired: undefined, ...more });
}

const loss: GapReport = { bucket: 'photos', kind: 'loss', reason: 'lost', seenAtMs: SEEN_MS };
const bulk: GapReport = { ...loss, kind: 'bulk-delete', reason: 'DeleteObjects' };
const reported = (report: Partial<GapReport>, current?: DirtyMark, nowMs = SEEN_MS, more = {}): DirtyMark =>
  withReport(current, { ...loss, ...report }, { nowMs, order: 0, enrich: 'none', repaired: undefined, ...more });

describe('reports of one bucket', () => {
  it('add up in one mark: their times are the widest, and each kind says how often and what it was last', () => {
    const mark = reported({ ...bulk, seenAtMs: SEEN_MS + 5, count: 3 }, reported({}), SEEN_MS + 9, { order: 2 });
    expect(mark).toMatchObject({
      sinceMs: SEEN_MS,
      lastSeenMs: SEEN_MS + 5,
      firstReportedAtMs: SEEN_MS,
      reportedAtMs: SEEN_MS + 9,
      order: 2,
    });
    const again = reported({ reason: 'lost again', seenAtMs: SEEN_MS - 5 }, mark);
    expect(again).toMatchObject({ sinceMs: SEEN_MS - 5, lastSeenMs: SEEN_MS + 5, order: 2 });
    expect(whyOf(again)).toBe('lost again, 2 times; DeleteObjects, 3 times');
    const stored: unknown = JSON.parse(JSON.stringify(again));
    expect(markSchema.parse(stored)).toEqual(stored);
  });

  it('announce deletions only as long as each of them does', () => {
    const announced = reported({ kind: 'lifecycle' }, reported({ kind: 'handed-over-deletes' }, reported(bulk)));
    expect(announced.deletes).toBe('announced');
    expect(reported({}, announced).deletes).toBe('limited');
    expect(reported(bulk, reported({})).deletes).toBe('limited');
  });

  it.each<[GapReport['kind'], Partial<GapReport>, EnrichMode, true | undefined]>([
    ['loss', {}, 'tags', true],
    ['connection', {}, 'tags', true],
    ['loss', {}, 'head', undefined],
    ['bulk-delete', {}, 'tags', undefined],
    ['drift', {}, 'tags', undefined],
    ['handed-over', {}, 'tags', undefined],
    ['handed-over', { tags: true }, 'tags', true],
  ])('of the kind %s %o need a job that reads tags where documents have %s: %s', (kind, more, enrich, readTags) => {
    const mark = reported({ kind, ...more }, undefined, SEEN_MS, { enrich });
    expect(mark.readTags).toBe(readTags);
    // what one of them needs, the mark needs
    expect(reported(bulk, mark).readTags).toBe(readTags);
  });

  it('keep what was found under other prefixes, and replace what was found of the same keys', () => {
    const found = (jobId: string, prefix: string) => ({ jobId, prefix, atMs: SEEN_MS, missing: 1, stale: 0, phantom: 0 });
    const drift = (current: DirtyMark | undefined, jobId: string, prefix: string) =>
      reported({ kind: 'drift', differences: found(jobId, prefix) }, current);
    const both = drift(drift(undefined, 'a', 'a/'), 'b', 'b/');
    expect(both.differences?.map(({ jobId }) => jobId)).toEqual(['a', 'b']);
    const whole = drift(both, 'whole', '');
    expect(whole.differences?.map(({ jobId }) => jobId)).toEqual(['whole']);
    expect(whole.reasons.map(({ count }) => count)).toEqual([1]);
  });

  it('Bug: are as old as what reports found that is still there, if there is nothing else', () => {
    const found = (prefix: string, atMs: number) => ({ jobId: 'j', prefix, atMs, missing: 1, stale: 0, phantom: 0 });
    const drift = (current: DirtyMark | undefined, prefix: string, atMs: number) =>
      reported({ kind: 'drift', seenAtMs: atMs, differences: found(prefix, atMs) }, current);
    const first = drift(undefined, 'a/', SEEN_MS);
    expect(drift(first, 'b/', SEEN_MS + 5).sinceMs).toBe(SEEN_MS);
    expect(drift(first, '', SEEN_MS + 5).sinceMs).toBe(SEEN_MS + 5);
    expect(drift(reported({}, first), '', SEEN_MS + 5).sinceMs).toBe(SEEN_MS);
  });
});

describe('a job is due', () => {
  it.each<[string, Partial<DirtyMark>, number]>([
    ['a minute after the last report', {}, SEEN_MS + MINUTE_MS],
    ['a minute after the last report, not after the first', { reportedAtMs: SEEN_MS + 3 * MINUTE_MS }, SEEN_MS + 4 * MINUTE_MS],
    ['ten minutes after the first, if reports never pause', { reportedAtMs: SEEN_MS + 9.5 * MINUTE_MS }, SEEN_MS + 10 * MINUTE_MS],
    ['not before what it waits for', { waits: { fromMs: SEEN_MS, untilMs: SEEN_MS + HOUR_MS, why: 'w' } }, SEEN_MS + HOUR_MS],
    ['never while the bucket’s first index is a person’s', { held: { why: 'w' } }, Infinity],
    ['never while a person has stopped what it announces', { deletes: 'announced', held: { jobId: 'j', why: 'w' } }, Infinity],
    ['for what was lost beside that', { held: { jobId: 'j', why: 'w' } }, SEEN_MS + MINUTE_MS],
    ['never while it awaits its proof', { unproven: 'events', compared: true }, Infinity],
    ['never while one runs', { jobId: 'job-1' }, Infinity],
  ])('%s', (_, more, atMs) => {
    expect(dueAtMs(lossOf(more), SEEN_MS)).toBe(atMs);
  });

  it('within ten minutes, whatever is reported', () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 2 * HOUR_MS })), (delays) => {
        const sorted = delays.toSorted((a, b) => a - b);
        const mark = sorted.reduce((sum, delayMs) => reported({}, sum, SEEN_MS + delayMs), reported({}));
        expect(dueAtMs(mark, SEEN_MS)).toBeLessThanOrEqual(SEEN_MS + 10 * MINUTE_MS);
        expect(dueAtMs(mark, SEEN_MS)).toBeGreaterThanOrEqual(SEEN_MS + MINUTE_MS);
      }),
    );
  });

  it('now, where a clock far in the future has stored when', () => {
    const farMs = Date.UTC(2099, 0);
    expect(dueAtMs(lossOf({ reportedAtMs: farMs, firstReportedAtMs: farMs }), NOW_MS)).toBe(NOW_MS);
    // a report by a right clock ends that, and what a fast one put off is not put off
    expect(dueAtMs(reported({}, lossOf({ reportedAtMs: NOW_MS + DAY_MS })), NOW_MS)).toBeLessThanOrEqual(NOW_MS + MINUTE_MS);
    // nor does it wait for a minute of quiet that never comes
    const far = lossOf({ reportedAtMs: farMs, firstReportedAtMs: farMs });
    expect(dueAtMs(reported({}, reported({}, far, NOW_MS), NOW_MS + HOUR_MS), NOW_MS)).toBe(NOW_MS + 10 * MINUTE_MS);
    const failed = failedOf(lossOf(), 'no luck', NOW_MS + DAY_MS);
    expect([dueAtMs(failed, NOW_MS), dueAtMs(failed, NOW_MS + DAY_MS)]).toEqual([SEEN_MS + MINUTE_MS, NOW_MS + DAY_MS + MINUTE_MS]);
    expect(reported({}, failed, NOW_MS).waits).toBeUndefined();
  });
});

it('what happens next is said of a gap that is due, too: it waits for another job of its bucket', () => {
  const mark = lossOf({ waits: { fromMs: SEEN_MS, untilMs: SEEN_MS + HOUR_MS, why: 'no luck' } });
  const texts = [SEEN_MS, SEEN_MS + HOUR_MS].map((nowMs) => nextOf(mark, nowMs));
  expect(texts).toEqual(['no luck', 'a re-index begins once no other job of the bucket runs']);
  expect(nextOf(lossOf(), SEEN_MS)).toBe('a re-index begins');
});

describe('between two repairs of a bucket that Tally begins by itself', () => {
  it.each([
    ['twenty times as long as the last one compared', MINUTE_MS, 20 * MINUTE_MS],
    ['a day at most', 2 * HOUR_MS, DAY_MS],
    ['three times as long as one that takes longer', 10 * HOUR_MS, 30 * HOUR_MS],
  ])('there lies %s', (_, comparingMs, distanceMs) => {
    const mark = reported(bulk, undefined, SEEN_MS, { repaired: { atMs: SEEN_MS, comparingMs } });
    expect(mark.waits?.untilMs).toBe(SEEN_MS + distanceMs);
  });

  it('there lies a distance for what is reported meanwhile too, but not for a key, and not once it is over', () => {
    const repaired = { atMs: SEEN_MS, comparingMs: HOUR_MS };
    const first = reported(bulk, undefined, SEEN_MS, { repaired });
    expect(reported(bulk, first, SEEN_MS + HOUR_MS, { repaired }).waits?.untilMs).toBe(first.waits?.untilMs);
    expect(reported({ ...bulk, key: 'k' }, undefined, SEEN_MS, { repaired }).waits).toBeUndefined();
    expect(reported(bulk, undefined, SEEN_MS + 21 * HOUR_MS, { repaired }).waits).toBeUndefined();
    // a repair that a fast clock dated counts from now
    const fast = { repaired: { atMs: Date.UTC(2099, 0), comparingMs: MINUTE_MS } };
    expect(reported(bulk, undefined, SEEN_MS, fast).waits?.untilMs).toBe(SEEN_MS + 20 * MINUTE_MS);
  });

  it('there lies none for a first index, nor for the compare after a change by a person, until that is done', () => {
    const repaired = { atMs: SEEN_MS, comparingMs: HOUR_MS };
    const waits = { fromMs: SEEN_MS, untilMs: SEEN_MS + 7 * MINUTE_MS, why: 'AWS needs some minutes' };
    const failed = failedOf(reported(bulk, undefined, SEEN_MS, { repaired }), 'no luck', SEEN_MS);
    const change = { kind: 'connection', seenAtMs: SEEN_MS + 6 * MINUTE_MS, waits, isUrgent: true } as const;
    const changed = reported(change, failed, SEEN_MS, { repaired });
    expect(changed.waits).toEqual(waits);
    const again = { ...reported(bulk, changed, SEEN_MS + MINUTE_MS, { repaired, order: BEGAN }), jobId: 'job-1' };
    expect(again.waits).toEqual(waits);
    // the compare that covers the change, but not what was reported since
    const next = { repaired: { atMs: NOW_MS, comparingMs: MINUTE_MS } };
    const after = lookedAt(again, doneOf({ coversBeforeMs: SEEN_MS + 8 * MINUTE_MS }), next);
    expect(after).toMatchObject({ waits: { untilMs: NOW_MS + 20 * MINUTE_MS } });
    expect(after).not.toHaveProperty('urgent');
    // one that began before the change certifies nothing
    expect(lookedAt(again, doneOf({ coversBeforeMs: SEEN_MS + MINUTE_MS }))).toHaveProperty('urgent');
  });
});

it('a mark is closed only by a job that is done and began after its last report, and after all that was seen of it', () => {
  const jobs = fc.record({
    state: fc.constantFrom(...jobStates),
    mode: fc.constantFrom('apply' as const, 'report' as const),
    now: fc.boolean(),
    prefix: fc.constantFrom('', 'a/', 'a/b'),
    tags: fc.boolean(),
    coversBeforeMs: fc.option(fc.integer({ min: SEEN_MS - 2, max: SEEN_MS + 2 }), { nil: undefined }),
  });
  const marks = fc.record({
    deletes: fc.constantFrom('announced' as const, 'limited' as const),
    order: fc.integer({ min: BEGAN - 2, max: BEGAN + 2 }),
    unproven: fc.constantFrom(undefined, 'events' as const, 'wiring' as const),
    readTags: fc.constantFrom(undefined, true as const),
    prefix: fc.constantFrom(undefined, 'a/', 'a/bc'),
  });
  fc.assert(
    fc.property(jobs, marks, fc.boolean(), (facts, of, isOwn) => {
      const job = jobOf(facts);
      const after = lookedAt(lossOf({ ...of, ...(isOwn && { jobId: job.id }) }), job);
      const mayClose =
        facts.state === 'done' &&
        facts.mode === 'apply' &&
        !facts.now &&
        (of.prefix ?? '').startsWith(facts.prefix) &&
        (of.readTags === undefined || facts.tags) &&
        (facts.coversBeforeMs ?? 0) > SEEN_MS &&
        of.order < BEGAN &&
        of.unproven === undefined;
      expect('closedBy' in after).toBe(mayClose);
    }),
    { numRuns: 1_000 },
  );
});

describe('a mark after a look at its job', () => {
  const named = lossOf({ jobId: 'job-1', failures: 2 });

  it('stays as it is while the job runs', () => {
    for (const state of ['queued', 'running'] as const) expect(lookedAt(named, jobOf({ state }))).toBe(named);
  });

  it('waits for quiet anew, without its failures, when the job is done that was begun before its last report', () => {
    const after = lookedAt({ ...named, order: BEGAN }, doneOf());
    expect(after).toMatchObject({ failures: 0, firstReportedAtMs: SEEN_MS + 1 });
    for (const name of ['jobId', 'waits']) expect(after).not.toHaveProperty(name);
  });

  it.each<[string, JobRecord | undefined, string]>([
    ['failed', jobOf({ state: 'failed', error: { code: 'object.denied', reason: 'no' } }), 'job-1 failed: object.denied: no'],
    ['is gone', undefined, 'job-1 no longer exists'],
    ['was cancelled', jobOf({ state: 'cancelled' }), 'job-1 was cancelled, so another job follows'],
    ['is paused', jobOf({ state: 'paused' }), 'job-1 was paused, so another job follows'],
  ])('is left alone for a while when the job %s', (_, job, why) => {
    const after = lookedAt(named, job) as DirtyMark;
    expect(after).toMatchObject({ failures: 3, waits: { untilMs: NOW_MS + 4 * MINUTE_MS, why } });
    expect(after).not.toHaveProperty('jobId');
    // what is reported meanwhile begins no job sooner
    expect(reported({}, after, NOW_MS).waits).toEqual(after.waits);
  });

  it('that fails again and again is tried four times a day at least', () => {
    let mark = lossOf();
    const delays: number[] = [];
    for (let failures = 1; failures <= 12; failures += 1) {
      mark = failedOf(mark, 'no luck', NOW_MS);
      delays.push((dueAtMs(mark, NOW_MS) - NOW_MS) / MINUTE_MS);
    }
    expect(delays).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 360, 360, 360]);
  });

  it.each<[Partial<JobRecord>, string]>([
    [{ state: 'paused' }, 'run `tally jobs resume job-1`, or `tally reindex photos`, which counts them and asks you'],
    [{ state: 'cancelled' }, 'run `tally reindex photos`, which counts them and asks you'],
  ])('Fix: that announces deletions waits for the person who stopped the job (%o)', (stopped, act) => {
    const held = lookedAt({ ...named, deletes: 'announced' }, jobOf(stopped)) as DirtyMark;
    expect(nextOf(held, NOW_MS)).toMatch(new RegExp(`^it waits for you: .*${act}$`));
    expect(dueAtMs(reported(bulk, held), NOW_MS)).toBe(Infinity);
    const lost = reported({}, held);
    expect(dueAtMs(lost, NOW_MS)).toBeLessThan(Infinity);
    // a job of a person that covers it ends that
    expect(lookedAt(held, doneOf({ id: 'job-2', requestedBy: 'http' }))).toEqual({ closedBy: 'job-2' });
  });

  it('says that a clock is wrong, and waits for the moment from which a job covers it, unless more is reported', () => {
    const ahead = { ...named, lastSeenMs: NOW_MS + HOUR_MS };
    const after = lookedAt(ahead, doneOf({ startedAtMs: NOW_MS - MINUTE_MS, coversBeforeMs: NOW_MS - MINUTE_MS })) as DirtyMark;
    expect(after.waits).toEqual({
      fromMs: NOW_MS,
      untilMs: NOW_MS + HOUR_MS + 1_000,
      why: expect.stringContaining('another 3600 s: a clock is wrong, and `tally doctor photos`') as string,
      isAhead: true,
    });
    expect(reported({}, after, NOW_MS).waits).toBeUndefined();
    // once a day one begins all the same
    const far = lookedAt({ ...ahead, lastSeenMs: Date.UTC(2099, 0) }, doneOf({ coversBeforeMs: NOW_MS })) as DirtyMark;
    expect(far.waits?.untilMs).toBe(NOW_MS + DAY_MS);
    // of a change in AWS no clock is to blame
    const changed = lookedAt({ ...ahead, lastSeenMs: NOW_MS + 5 * MINUTE_MS }, doneOf({ startedAtMs: NOW_MS, coversBeforeMs: NOW_MS }));
    expect(changed).toMatchObject({ waits: { why: expect.stringContaining('until a change in AWS has taken effect') as string } });
  });

  it.each([
    ['events', "the bucket's events are known to arrive"],
    ['wiring', "the bucket's wiring is fixed"],
  ] as const)('stays, and starts no further job, while nothing proves its %s', (unproven, what) => {
    const after = lookedAt({ ...named, unproven }, doneOf()) as DirtyMark;
    expect(after).toMatchObject({ unproven, compared: true });
    expect(nextOf(after, NOW_MS)).toContain(what);
    expect(dueAtMs(after, NOW_MS)).toBe(Infinity);
    expect(lookedAt(after, doneOf({ id: 'job-2' }))).toBe(after);
    // a report asks for another job, and the proof for the last one
    expect(dueAtMs(reported({}, after, NOW_MS), NOW_MS)).toBeLessThan(Infinity);
    expect(reported({ unproven: 'none' }, after, NOW_MS).unproven).toBeUndefined();
  });

  it('forgets what a report found once a job has compared those keys and held nothing back', () => {
    const found = (prefix: string) => ({ jobId: 'r', prefix, atMs: SEEN_MS, missing: 1, stale: 0, phantom: 2 });
    const mark = { ...named, order: BEGAN, differences: [found('a/'), found('b/')] };
    expect(lookedAt(mark, doneOf())).toMatchObject({ differences: [] });
    expect(lookedAt(mark, doneOf({ counts: { ...noCounts, held: 1 } }))).toMatchObject({ differences: mark.differences });
    expect(lookedAt(mark, doneOf({ coversBeforeMs: SEEN_MS }))).toMatchObject({ differences: mark.differences });
  });
});

describe('a mark without a job, after a look at the bucket’s latest one', () => {
  it.each<[string, Partial<JobRecord>, Partial<DirtyMark>, 'gets it' | 'stays']>([
    ['that repairs it too', {}, {}, 'gets it'],
    ['that reads its tags', { tags: true }, { readTags: true }, 'gets it'],
    ['that does not read its tags', {}, { readTags: true }, 'stays'],
    ['of a wider prefix', { prefix: 'a/' }, { prefix: 'a/b' }, 'gets it'],
    ['of a part', { prefix: 'a/' }, {}, 'stays'],
    ['that only reports', { mode: 'report' }, {}, 'stays'],
    ['with --now', { now: true }, {}, 'stays'],
    ['that is paused', { state: 'paused' }, {}, 'stays'],
    ['that failed', { state: 'failed' }, {}, 'stays'],
    ['that is done, and began too early', { state: 'done', coversBeforeMs: SEEN_MS }, {}, 'stays'],
  ])('%s', (_, job, more, what) => {
    const mark = lossOf(more);
    const after = lookedAt(mark, jobOf(job));
    if (what === 'stays') expect(after).toBe(mark);
    else expect(after).toMatchObject({ jobId: 'job-1' });
  });

  it('is no longer held when a person starts a job, unless deletions were stopped', () => {
    const byPerson = jobOf({ requestedBy: 'http' });
    expect(lookedAt(lossOf({ held: { why: 'w' } }), byPerson)).not.toHaveProperty('held');
    expect(lookedAt(lossOf({ held: { why: 'w' } }), jobOf({ requestedBy: 'schedule' }))).toHaveProperty('held');
    expect(lookedAt(deletesOf({ held: { jobId: 'job-0', why: 'w' } }), byPerson)).toHaveProperty('held');
  });
});

it.each<[string, boolean, readonly DirtyMark[], Partial<JobRecord>]>([
  ['that Tally begins for a mark that announces nothing else', true, [deletesOf()], {}],
  ['beside the mark of a key', true, [deletesOf(), lossOf({ prefix: 'a' })], {}],
  ['by the mark of a key: no', false, [deletesOf({ prefix: 'a' })], {}],
  ['of a key beside them: no', false, [deletesOf()], { prefix: 'a' }],
  ['by a mark that stands for a loss too: no', false, [lossOf()], {}],
  ['that the calendar begins: no', false, [deletesOf()], { requestedBy: 'schedule' }],
  ['that a person begins: no', false, [deletesOf()], { requestedBy: 'http' }],
  ['without a mark: no', false, [], {}],
])('deletions are announced to a job %s', (_, isAnnounced, marks, job) => {
  expect(announcesAllOf(jobOf(job), marks)).toBe(isAnnounced);
});

it('closed marks are kept for 30 days, a thousand of a bucket, each with a time of its own', () => {
  let history: MarkHistory | undefined;
  for (let number = 0; number < 1_005; number += 1) history = withClosed(history, lossOf(), { jobId: `job-${number}`, nowMs: NOW_MS });
  expect(keptOf(history, NOW_MS)).toHaveLength(1_000);
  expect(new Set(history?.closed.map(({ closedAtMs }) => closedAtMs)).size).toBe(1_000);
  expect(history?.closed.at(-1)).toMatchObject({ id: markId('photos'), jobId: 'job-1004', sinceMs: SEEN_MS });
  expect(keptOf(history, NOW_MS + 31 * DAY_MS)).toEqual([]);
});

it('a job sees every change before its first page by whichever clock is behind: that of S3 or that of its worker', () => {
  expect(coversBefore({ observedAtMs: 1_000, sentMs: 2_000 })).toBe(1_000);
  expect(coversBefore({ observedAtMs: 2_000, sentMs: 1_000 })).toBe(1_000);
});
