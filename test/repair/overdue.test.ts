/** What a bucket's own rules should have done, asked when a compare of all of it has ended. */
import { describe, expect, it } from 'vitest';
import type { LifecycleRule } from '../../src/aws/lifecycle.rules.ts';
import type { BucketLifecycle } from '../../src/aws/storage.ts';
import { FaultError } from '../../src/base/fault.ts';
import type { ObjectDocument } from '../../src/ordering/document.ts';
import { lookForOverdue } from '../../src/repair/lifecycle.ts';
import { createJobsWorld } from '../support/worlds/jobs.ts';
import { createObservingWorld } from '../support/worlds/observing.ts';
import { bucketRecord } from '../support/worlds/reindex.ts';

const DAY_MS = 86_400_000;
const denied = new FaultError('lifecycle.denied', 'AccessDenied');

const RULE: LifecycleRule = { id: 'r', isEnabled: true, prefix: '', tags: {}, expiresAfterDays: 10 };
const ruleOf = (more: Partial<LifecycleRule>): LifecycleRule => ({ ...RULE, ...more });

function lifecycleOf(
  rules: readonly LifecycleRule[] | FaultError,
  uploads?: FaultError | Awaited<ReturnType<BucketLifecycle['uploadsOf']>>,
): BucketLifecycle {
  const answer = <Value>(value: Value | FaultError) => (value instanceof FaultError ? Promise.reject(value) : Promise.resolve(value));
  return { rulesOf: () => answer(rules), uploadsOf: () => answer(uploads) };
}

async function setUp() {
  const world = await createObservingWorld({});
  const { clock, telemetry, usage } = world;
  const midnightMs = Math.floor(clock.nowMs() / DAY_MS) * DAY_MS;
  return {
    ...world,
    /** An object that was last modified so many days before midnight. */
    add: (key: string, days: number, more: Partial<ObjectDocument> = {}) =>
      world.store([world.document(key, 60_000, { last_modified: new Date(midnightMs - days * DAY_MS).toISOString(), size: 100, ...more })]),
    look: (lifecycle: BucketLifecycle) => lookForOverdue({ clock, telemetry, usage, lifecycle }, { ...bucketRecord, bucket: 'photos' }),
  };
}

describe('what should have expired', () => {
  it('is counted from three days after its time, by the rule that has left the most', async () => {
    const world = await setUp();
    await world.add('logs/late', 14);
    await world.add('logs/later', 40);
    await world.add('logs/may-be-on-its-way', 12);
    await world.add('tmp/one', 400);
    await world.add('tmp/tombstone', 400, { deleted: true });
    const rules = [ruleOf({ id: 'tmp', prefix: 'tmp/' }), ruleOf({ id: 'logs', prefix: 'logs/' }), ruleOf({ id: 'off', isEnabled: false })];
    expect(await world.look(lifecycleOf(rules))).toEqual({ expired: { rule: 'logs', objects: 2, bytes: 200 } });
    expect(await world.look(lifecycleOf([ruleOf({ prefix: 'other/' })]))).toEqual({});
    expect(await world.look(lifecycleOf([]))).toEqual({});
  });

  it.each([
    ['a date that is three days past', { expiresAtMs: -3 * DAY_MS }, 3],
    ['a date of the day before', { expiresAtMs: -DAY_MS }, 0],
    ['a size above', { expiresAfterDays: 10, sizeAbove: 100 }, 1],
    ['a size below', { expiresAfterDays: 10, sizeBelow: 100 }, 1],
    ['tags, which only documents with tags are known to have', { expiresAfterDays: 10, tags: { kind: 'tmp' } }, 1],
  ])('is what is certain to be of a rule with %s', async (_, { expiresAtMs, ...more }: Partial<LifecycleRule>, objects) => {
    const world = await setUp();
    await world.add('small', 40, { size: 99 });
    await world.add('equal', 40, { tags: { kind: 'tmp' } });
    await world.add('large', 40, { size: 101, tags: { kind: 'other' } });
    const { expiresAfterDays: __, ...rule } = ruleOf(more);
    const at = expiresAtMs === undefined ? { expiresAfterDays: 10 } : { expiresAtMs: world.clock.nowMs() + expiresAtMs };
    const found = await world.look(lifecycleOf([{ ...rule, ...at }]));
    expect(found.expired?.objects ?? 0).toBe(objects);
  });

  it('is not known without the permission, which is no failure, nor where S3 does not answer, which is told', async () => {
    const world = await setUp();
    await world.add('late', 40);
    const uploads = { count: 3, is_more: false, oldest_at: '1970-01-01T00:00:00.005Z' };
    expect(await world.look(lifecycleOf(denied, uploads))).toEqual({ uploads });
    expect(await world.look(lifecycleOf([ruleOf({})], denied))).toEqual({ expired: { rule: 'r', objects: 1, bytes: 100 } });
    expect(world.telemetry.recorded('requestFailed')).toEqual([]);
    const throttled = new FaultError('s3.throttled', 'SlowDown');
    expect(await world.look(lifecycleOf(throttled, throttled))).toEqual({});
    expect(world.telemetry.recorded('requestFailed')).toHaveLength(2);
  });

  it('is kept of a job that compared the whole bucket, and of its bucket', async () => {
    const overdue = { expired: { rule: 'logs', objects: 2, bytes: 200 } };
    const world = await createJobsWorld();
    const asked: string[] = [];
    world.startWorker({
      lookForOverdue: async ({ bucket }) => {
        asked.push(bucket);
        return overdue;
      },
    });
    const run = async (request: Parameters<typeof world.request>[0]) => world.ended((await world.request(request)).id);
    const whole = await run({ mode: 'report' });
    expect(whole.overdue).toEqual(overdue);
    expect((await world.bucketRecord())?.overdue).toEqual(overdue);
    expect((await run({ mode: 'report', prefix: 'a/' })).overdue).toBeUndefined();
    expect(asked).toEqual([whole.bucket]);
  });
});
