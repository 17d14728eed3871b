import { spec } from '../support/fakes/aws-parts.ts';
import { describe, expect, it } from 'vitest';
import type { BucketRecord, ConnectionCheck, WatchedState } from '../../src/records/bucket.ts';
import { bucketStates, bucketStatus, type BucketState, type StatusFacts } from '../../src/records/bucket-status.ts';
import { withHeld } from '../../src/records/waiting-deletes.ts';
import { markSeenAt } from '../support/fakes/gap-records.ts';
import { bucketRecord } from '../support/worlds/reindex.ts';

const NOW_MS = Date.UTC(2026, 10, 24, 14, 30);
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

const well: BucketRecord = { ...bucketRecord, provenAtMs: NOW_MS - DAY_MS, lastComparedAtMs: NOW_MS - 4 * MINUTE_MS };

const gap = markSeenAt(NOW_MS - 2 * MINUTE_MS, { bucket: 'b' });

const differences = { jobId: 'job-1', prefix: '', atMs: Date.UTC(2026, 10, 24, 14, 2), missing: 25, stale: 0, phantom: 31 };

function statusOf(
  { record = {}, ...facts }: Partial<Omit<StatusFacts, 'record'>> & { readonly record?: Partial<BucketRecord> } = {},
  base: BucketRecord = well,
) {
  return bucketStatus({
    record: { ...base, ...record },
    waitsFor: undefined,
    unread: undefined,
    gaps: [],
    nowMs: NOW_MS,
    compareIntervalMs: 7 * DAY_MS,
    ...facts,
  });
}

function check(state: WatchedState, more: Partial<ConnectionCheck> = {}): Partial<BucketRecord> {
  const findings = [{ code: 'connect.topic-missing', what: 'there is no topic' }];
  return { connectionCheck: { state, atMs: NOW_MS, sinceMs: NOW_MS - MINUTE_MS, findings, ...more } };
}

const { provenAtMs: _, ...unproven } = well;
const { lastComparedAtMs: __, ...uncompared } = well;
const without = (record: Partial<BucketRecord>, facts: Partial<StatusFacts> = {}) => statusOf({ ...facts, record }, bucketRecord);

describe('the status of a bucket', () => {
  it('is ok only where nothing is known to the contrary, events are known to arrive, and the whole was compared', () => {
    expect(statusOf()).toEqual({ state: 'ok', severity: 'ok', sentence: 'No known difference; compared 4 minutes ago', gaps: 0 });
  });

  it('says why changes may be missing since the oldest gap, and what happens next', () => {
    const next = { ...gap, sinceMs: NOW_MS, waits: { fromMs: NOW_MS, untilMs: NOW_MS + 7 * MINUTE_MS, why: 'AWS needs some minutes' } };
    expect(statusOf({ gaps: [next] })).toEqual({
      state: 'gap_open',
      severity: 'warning',
      sentence: 'Changes may be missing (lost): AWS needs some minutes (in 7 minutes)',
      sinceMs: NOW_MS,
      gaps: 1,
    });
    expect(statusOf({ gaps: [next, { ...gap, jobId: 'job-1' }] }).sentence).toBe(
      'Changes may be missing (lost, and 1 other gap): a re-index is repairing it',
    );
  });

  it('says how many deletions wait for a person, and what to do; of those that were declined, that the index differs', () => {
    const of = (...all: readonly (readonly [prefix: string, count: number, declinedAtMs?: number])[]) => {
      const waiting = all.map(([prefix, count, declinedAtMs]) => ({ prefix, count, declinedAtMs, jobId: 'job-1', order: 1, sinceMs: 3 }));
      return statusOf({ record: { waiting } });
    };
    expect(of(['', 1_035], ['a/', 35])).toMatchObject({
      state: 'deletions_held',
      sentence: '1,035 deletions wait for you: look at the bucket, then allow or decline them',
      sinceMs: 3,
    });
    expect(of(['a/', 3], ['b/', 4]).sentence).toMatch(/^7 deletions wait/);
    expect(of(['a/', 3], ['b/', 4, 5]).sentence).toMatch(/^3 deletions wait/);
    expect(of(['a/', 1, 5])).toMatchObject({
      state: 'differs',
      severity: 'bad',
      sentence: '1 object is not in S3, because you declined to delete its document: the next comparison asks you again',
      act: 'reindex',
    });
  });

  it('Bug: is that of a healthy bucket after a person stops a job that has held no deletion back', () => {
    const stopped = withHeld([], { id: 'job-1', prefix: '', beginOrder: 1 }, { held: 0, isWhole: false, nowMs: NOW_MS, lastOrder: 1 });
    expect(stopped).toHaveLength(1);
    expect(statusOf({ record: { waiting: [...stopped] } })).toEqual(statusOf());
    const held = [
      { prefix: 'a/', count: 2, jobId: 'job-2', order: 2, sinceMs: 4 },
      { prefix: '', count: 3, jobId: 'job-3', order: 3, sinceMs: 9 },
    ];
    expect(statusOf({ record: { waiting: [...stopped, ...held] } })).toMatchObject({ state: 'deletions_held', differing: 3, sinceMs: 4 });
    const declined = held.map((each) => ({ ...each, declinedAtMs: 12 }));
    expect(statusOf({ record: { waiting: [...stopped, ...declined] } })).toMatchObject({ state: 'differs', differing: 3, sinceMs: 4 });
  });

  it('Fix: asks for a job where so many prefixes wait that no job of theirs can ask', () => {
    const one = (number: number) => ({ prefix: `p${number}/`, count: 2, jobId: `job-${number}`, order: number, sinceMs: number });
    const job = { id: 'job-100', prefix: 'p100/', beginOrder: 100 };
    const known = { held: 2, isWhole: true, nowMs: NOW_MS, lastOrder: 100 };
    const hundred = Array.from({ length: 100 }, (___, number) => one(number));
    const merged = withHeld(hundred, job, known);
    const sentence = '202 deletions wait for you: a re-index counts them again and asks you';
    const asks = { state: 'deletions_held', severity: 'bad', sentence, sinceMs: 0, act: 'reindex', differing: 202 };
    expect(statusOf({ record: { waiting: [...merged] } })).toMatchObject(asks);
  });

  it('says what the last report found, and when', () => {
    const sentence =
      '25 objects are missing, 31 objects are not in S3 as of 14:02 UTC: a re-index begins once no other job of the bucket runs';
    const shown = { state: 'differs', severity: 'bad', sentence, differing: 56 };
    expect(statusOf({ gaps: [{ ...gap, differences: [differences] }] })).toEqual({ ...shown, sinceMs: differences.atMs, gaps: 1 });
    const earlier = { ...differences, atMs: differences.atMs - DAY_MS, missing: 0, phantom: 0, stale: 1 };
    expect(statusOf({ gaps: [{ ...gap, differences: [earlier] }] }).sentence).toBe(
      '1 object is outdated as of 2026-11-23 14:02 UTC: a re-index begins once no other job of the bucket runs',
    );
  });

  it('Bug: asks a person for something only where no re-index begins by itself', () => {
    const actOf = (more: Partial<typeof gap>) => statusOf({ gaps: [{ ...gap, ...more }] }).act;
    expect(actOf({})).toBeUndefined();
    expect(actOf({ jobId: 'job-1', failures: 1 })).toBeUndefined();
    expect(actOf({ held: { why: 'connected without a first index' } })).toBe('reindex');
    expect(actOf({ compared: true, unproven: 'events' })).toBe('doctor');
    expect(actOf({ refusedSinceMs: NOW_MS })).toBe('doctor');
    expect(actOf({ failures: 1 })).toBe('jobs');
  });

  it('says what is missing where no event is known to arrive', () => {
    const sentence = 'No event has arrived since it was connected';
    expect(without(unproven)).toMatchObject({ state: 'events_unproven', sentence, act: 'doctor' });
    expect(without({ ...unproven, source: 'eventbridge', lastEventAtMs: NOW_MS }).sentence).toBe(
      'No event has arrived through its source eventbridge since it was connected',
    );
    for (const [arrived, missing] of [
      [['created'], 'a deletion'],
      [['removed', 'other'], 'a created object'],
      [['other'], 'a created object or a deletion'],
    ] as const)
      expect(without({ ...unproven, arrived: [...arrived] }).sentence).toBe(`Events have arrived, but none of ${missing} yet`);
    const broken = { state: 'events_unproven', sentence: `${sentence}: there is no topic`, act: 'plan' };
    expect(without({ ...unproven, ...check('broken', { brokenSinceMs: NOW_MS }) })).toMatchObject(broken);
  });

  it('says what is awaited until the whole is compared', () => {
    expect(without(uncompared)).toMatchObject({ state: 'never_compared', act: 'reindex' });
    const waits = { fromMs: NOW_MS, untilMs: NOW_MS + 7 * MINUTE_MS, why: 'AWS needs some minutes' };
    expect(without(uncompared, { gaps: [{ ...gap, waits }] }).sentence).toBe(
      'It has never been fully compared: AWS needs some minutes (in 7 minutes)',
    );
    expect(without(uncompared, { gaps: [{ ...gap, jobId: 'job-2' }] }).sentence).toBe(
      'It is being compared for the first time: a re-index is repairing it',
    );
  });

  it('names a compare that is older than two intervals, unless none is scheduled', () => {
    const late = { lastComparedAtMs: NOW_MS - 14 * DAY_MS - 1 };
    const overdue = { state: 'overdue', sentence: 'It was last fully compared 14 days ago', act: 'reindex' };
    expect(statusOf({ record: late })).toMatchObject(overdue);
    expect(statusOf({ record: { lastComparedAtMs: NOW_MS - 14 * DAY_MS } }).state).toBe('ok');
    expect(statusOf({ record: late, compareIntervalMs: 0 }).state).toBe('ok');
  });

  it('names what should have expired, which is no difference', () => {
    const expired = { rule: 'logs', objects: 1_200, bytes: 3_000_000_000 };
    expect(statusOf({ record: { overdue: { expired } } })).toMatchObject({
      state: 'ok',
      sentence:
        'No known difference; compared 4 minutes ago; 1,200 objects (2.8 GiB) should have expired more than 3 days ago by the lifecycle rule logs',
    });
    const uploads = { count: 1, is_more: false, oldest_at: '1970-01-01T00:00:00.000Z' };
    expect(statusOf({ record: { overdue: { uploads } } }).sentence).toBe('No known difference; compared 4 minutes ago');
  });

  it('of a bucket whose store posts its events is measured by a day, and says why', () => {
    const webhook = { source: 'webhook' } as const;
    expect(statusOf({ record: webhook }).sentence).toBe(
      'No known difference; compared 4 minutes ago; events of this source can be lost, so it is compared daily',
    );
    expect(statusOf({ record: webhook, compareIntervalMs: 0 }).sentence).toBe('No known difference; compared 4 minutes ago');
    expect(statusOf({ record: { ...webhook, lastComparedAtMs: NOW_MS - 2 * DAY_MS - 1 } }).state).toBe('overdue');
    expect(statusOf({ record: { ...webhook, lastComparedAtMs: NOW_MS - 2 * DAY_MS } }).state).toBe('ok');
  });

  it('Fix: differs while S3 refuses what enrichment reads, and until it is filled in', () => {
    const unread = { level: 'enrichment', name: 'b', code: 'object.denied', reason: 'HEAD: 403', sinceMs: 3 } as const;
    const lack = 'Documents lack what enrich tags asks for: HEAD: 403';
    const differs = { state: 'differs', severity: 'bad', sentence: lack, sinceMs: 3, act: 'doctor' };
    expect(statusOf({ unread, record: { enrich: 'tags' } })).toMatchObject(differs);
    const { connectionCheck } = check('degraded', { unread: { reason: 'HEAD: 403', sinceMs: 4, key: 'k' } });
    expect(statusOf({ record: { enrich: 'tags', connectionCheck } })).toMatchObject({ sentence: lack, sinceMs: 4 });
    const unenriched = { jobId: 'job-1', count: 5, atMs: 6 };
    expect(statusOf({ record: { enrich: 'head', unenriched } })).toMatchObject({
      state: 'differs',
      sentence: '5 documents lack what enrich head asks for, because S3 refused it to the last re-index that filled it in',
    });
    // nothing is asked for any longer
    expect(statusOf({ unread, record: { enrich: 'none', unenriched } }).state).toBe('ok');
  });

  it('Bug: leads to the doctor, who looks at AWS, only while the cause is not the index', () => {
    const waits = (level: 'cluster' | 'endpoint', code: string) =>
      statusOf({ waitsFor: { level, name: '', code, reason: 'no', sinceMs: 1 } });
    const sentence = 'Its events are waiting: s3.unavailable: no';
    expect(waits('endpoint', 's3.unavailable')).toMatchObject({ state: 'waiting', severity: 'bad', sentence, sinceMs: 1, act: 'doctor' });
    for (const code of ['index.blocked', 'bucket.index-missing']) expect(waits('cluster', code)).not.toHaveProperty('act');
    // of a newer version
    expect(waits('cluster', 'index.new')).toMatchObject({ act: 'doctor' });
  });

  it('is that of the worst of all, and remembers that events are being lost while AWS cannot be read', () => {
    expect(statusOf({ record: check('unknown', { brokenSinceMs: 1 }) }).state).toBe('events_lost');
    const unread = { level: 'enrichment', name: 'b', code: 'object.denied', reason: 'HEAD: 403', sinceMs: 3 } as const;
    const circuit = { level: 'bucket', name: 'b', code: 'bucket.missing', reason: 'no such bucket', sinceMs: 1, seenAtMs: 2 } as const;
    const connection = { ...spec, made: [], changedAtMs: 1 };
    // each fact with those that are less bad
    const facts: readonly (readonly [BucketState, Partial<BucketRecord>, Partial<StatusFacts>])[] = [
      ['unchecked', check('unknown'), {}],
      ['degraded', check('degraded'), {}],
      ['overdue', { lastComparedAtMs: 0 }, {}],
      ['gap_open', {}, { gaps: [gap] }],
      ['differs', { enrich: 'head' }, { unread }],
      ['differs', { refused: { jobId: 'job-1', count: 3, atMs: NOW_MS } }, {}],
      ['differs', {}, { gaps: [{ ...gap, differences: [differences] }] }],
      ['deletions_held', { waiting: [{ prefix: '', count: 3, jobId: 'job-1', order: 1, sinceMs: 1 }] }, {}],
      ['waiting', {}, { waitsFor: circuit }],
      ['paused', { connection: { ...connection, state: 'paused' } }, {}],
      ['events_lost', { ...check('broken', { brokenSinceMs: 1 }), connection: { ...connection, state: 'applied' } }, {}],
      ['events_lost', { connection: { ...connection, state: 'removing' } }, {}],
    ];
    let record: Partial<BucketRecord> = {};
    let others: Partial<StatusFacts> = {};
    for (const [state, more, another] of facts) {
      record = Object.assign({}, record, more);
      others = Object.assign({}, others, another);
      expect(statusOf({ ...others, record }).state).toBe(state);
    }
    // of the removal, and not of the wiring that is broken as well
    expect(statusOf({ ...others, record }).act).toBe('remove');
    const order = facts.map(([state]) => bucketStates.indexOf(state));
    expect(order).toEqual(order.toSorted((a, b) => b - a));
  });

  it('Bug: says of a bucket that is gone that it can be disconnected, whatever met that first', () => {
    const gone = { state: 'waiting', sentence: 'S3 has no bucket b in us-east-1: disconnect it, or create it again', act: 'remove' };
    const reason = 'bucket.missing: ListObjectsV2 b: 404 NoSuchBucket';
    expect(statusOf({ gaps: [{ ...gap, jobId: 'job-1', stuck: reason }] })).toMatchObject({ ...gone, sinceMs: gap.sinceMs });
    const waits = { fromMs: NOW_MS, untilMs: NOW_MS + 1, why: `the bucket cannot be re-indexed now: ${reason}` };
    expect(statusOf({ gaps: [{ ...gap, waits }] })).toMatchObject(gone);
    const circuit = { level: 'bucket', name: 'b', code: 'bucket.missing', reason: 'no such bucket', sinceMs: 1, seenAtMs: 2 } as const;
    expect(statusOf({ waitsFor: circuit })).toMatchObject({ ...gone, sinceMs: 1 });
    expect(statusOf({ gaps: [{ ...gap, jobId: 'job-1', stuck: 's3.unavailable: down' }] })).toMatchObject({
      state: 'gap_open',
      sentence: 'Changes may be missing (lost): its re-index waits: s3.unavailable: down',
    });
  });
});
