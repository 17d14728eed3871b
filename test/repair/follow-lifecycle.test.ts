import { live } from '../contracts/world.ts';
import { describe, expect, it } from 'vitest';
import { createObservingWorld } from '../support/worlds/observing.ts';
import type { BucketSource } from '../../src/records/bucket.ts';
import type { LifecycleRule } from '../../src/aws/lifecycle.rules.ts';
import type { ObjectDocument } from '../../src/ordering/document.ts';
import { FaultError } from '../../src/base/fault.ts';
import { markSchema } from '../../src/records/dirty.ts';
import { createVisitLifecycle } from '../../src/repair/lifecycle.ts';
import { createSweep } from '../../src/observing/sweep.ts';
import { createGapReports } from '../../src/observing/gaps.ts';
import { listAllRecords, readRecord, refs, updateRecord } from '../../src/store/stored.ts';
import { recordOf } from '../support/fakes/bucket-record.ts';

const MINUTE_MS = 60_000;
const RUN_MAX_MS = 45 * MINUTE_MS;
const DAY_MS = 86_400_000;
const never = new AbortController().signal;

function ruleOf(more: Partial<LifecycleRule> = {}): LifecycleRule {
  return { id: 'r', isEnabled: true, prefix: '', tags: {}, ...more };
}

type VisitParts = Parameters<typeof createVisitLifecycle>[0];

/** `parts`: what the visits use instead of the world's own. */
async function setUp(
  rules: readonly LifecycleRule[] | FaultError,
  source: BucketSource = 'routed',
  parts: (world: Pick<VisitParts, 'clock'>) => Partial<VisitParts> = () => ({}),
) {
  const world = await createObservingWorld({ source });
  const { state, objects, maintenance, scan, clock, telemetry, storage, observe } = world;
  const gaps = createGapReports({ state, clock, telemetry });
  let reads = 0;
  const lifecycle = {
    rulesOf: async () => {
      reads += 1;
      if (rules instanceof FaultError) throw rules;
      return rules;
    },
  };
  const own = { state, objects, maintenance, scan, lifecycle, observe, gaps, clock, telemetry };
  const visit = createVisitLifecycle({ ...own, ...parts(world) });
  const sweep = createSweep({ state, clock, telemetry, runMaxMs: RUN_MAX_MS }, 'lifecycle', visit);
  return {
    ...world,
    /** An object of that age in bucket and index. */
    async add(key: string, ageDays: number | 'unknown', more: Partial<ObjectDocument> = {}) {
      const ageMs = (ageDays === 'unknown' ? 1 : ageDays) * DAY_MS;
      const modified = new Date(clock.nowMs() - ageMs).toISOString();
      const age = ageDays !== 'unknown' && { last_modified: modified };
      await world.store([world.document(key, ageMs + MINUTE_MS, { source: 'listing', ...age, ...more })]);
      storage.put('photos', key, { lastModifiedMs: Date.parse(modified) });
    },
    /** S3 does what its rules say. */
    expire: (...keys: readonly string[]) => {
      for (const key of keys) storage.delete('photos', key);
    },
    check: () => sweep(never),
    /** Its process has stopped the run. */
    stoppedCheck: async () => visit((await readRecord(state, refs.bucket('photos')))!, AbortSignal.abort()),
    observed: () => storage.observed.splice(0).map((name) => name.slice('photos/'.length)),
    live: async () => (await objects.search({ bucket: 'photos', limit: 1_000 })).map(({ key }) => key),
    record: async () => (await readRecord(state, refs.bucket('photos')))?.lifecycle,
    gaps: () => listAllRecords(state, 'gap', markSchema),
    reads: () => reads,
  };
}

const past = (world: { readonly clock: { nowMs(): number } }, days: number): Partial<ObjectDocument> => ({
  expires_at: new Date(world.clock.nowMs() - days * DAY_MS).toISOString(),
});

describe('lifecycle expirations that nobody tells', () => {
  it('are not followed while deletions of the bucket wait for a person', async () => {
    const world = await setUp([]);
    await world.add('due', 40, past(world, 1));
    world.expire('due');
    await world.hold('open');
    await world.check();
    expect(world.observed()).toEqual([]);
    expect(await world.live()).toEqual(['due']);
    await world.hold('closed');
    await world.check();
    expect(await world.live()).toEqual([]);
  });

  it('are followed daily until S3 has done them, those that a rule expires and whose objects still said nothing else too', async () => {
    const world = await setUp([ruleOf({ expiresAfterDays: 30 })]);
    await world.add('due', 9, past(world, 1));
    await world.add('late', 40);
    await world.add('not due', 9, past(world, -5));
    for (let day = 0; day < 3; day += 1) {
      await world.check();
      // a HEAD that told no expiration any more takes it from the document
      expect(world.observed()).toEqual(day === 0 ? ['due', 'late'] : ['late']);
      await world.clock.sleep(DAY_MS - MINUTE_MS);
      await world.check();
      expect(world.observed()).toEqual([]);
      await world.clock.sleep(MINUTE_MS);
    }
    world.expire('late');
    await world.check();
    expect(await world.live()).toEqual(['due', 'not due']);
    await world.clock.sleep(DAY_MS);
    world.observed();
    await world.check();
    expect(world.observed()).toEqual([]);
  });

  it('are computed from rules where objects said nothing: prefix, size and age', async () => {
    const world = await setUp([
      ruleOf({ prefix: 'logs/', expiresAfterDays: 30, sizeAbove: 10, sizeBelow: 20 }),
      ruleOf({ prefix: 'tmp/', expiresAtMs: 1 }),
      ruleOf({ prefix: 'off/', expiresAfterDays: 1, isEnabled: false }),
      ruleOf({ prefix: 'transition/' }),
    ]);
    await world.add('logs/old', 31, { size: 11 });
    await world.add('logs/small', 31, { size: 10 });
    await world.add('logs/large', 31, { size: 20 });
    await world.add('logs/less large', 31, { size: 19 });
    await world.add('logs/unknown size', 31);
    await world.add('logs/young', 29, { size: 11 });
    await world.add('logs/unknown age', 'unknown', { size: 11 });
    await world.add('tmp/x', 0);
    await world.add('off/x', 99);
    await world.add('transition/x', 99);
    await world.check();
    expect(world.observed().toSorted()).toEqual(['logs/less large', 'logs/old', 'logs/unknown age', 'logs/unknown size', 'tmp/x']);
    expect(await world.record()).toEqual({ checkedAtMs: world.clock.nowMs(), rules: 'known', expiring: 2 });
  });

  it('are not observed twice in one check', async () => {
    const world = await setUp([ruleOf({ expiresAfterDays: 1 }), ruleOf({ prefix: 'a', expiresAfterDays: 1 })]);
    await world.add('a', 9, past(world, 2));
    await world.check();
    expect(world.observed()).toEqual(['a']);
  });

  it('of many objects mark the bucket once listing is cheaper, and then observe no more', async () => {
    const world = await setUp([ruleOf({ prefix: 'logs/', expiresAfterDays: 1 })]);
    for (let at = 0; at < 1_150; at += 1) await world.add(`logs/${String(at).padStart(4, '0')}`, 9);
    await world.check();
    expect(world.observed()).toHaveLength(1_000);
    expect(await world.gaps()).toMatchObject([{ deletes: 'announced', reasons: [{ kind: 'lifecycle' }] }]);
  });

  it('that objects told themselves mark the bucket too', async () => {
    const world = await setUp([ruleOf({ prefix: 'logs/a/', expiresAfterDays: 900 }), ruleOf({ prefix: 'logs/b/', expiresAfterDays: 900 })]);
    for (let at = 0; at < 1_050; at += 1) await world.add(`logs/a/${at}`, 9, past(world, 1));
    await world.check();
    expect(await world.gaps()).toMatchObject([{ deletes: 'announced', reasons: [{ kind: 'lifecycle' }] }]);
  });

  it.each(['notification', 'eventbridge'] as const)('are not asked for where the source (%s) tells them', async (source) => {
    const world = await setUp([ruleOf({ expiresAfterDays: 1 })], source);
    await world.add('a', 9, past(world, 2));
    await world.check();
    expect(world.observed()).toEqual([]);
    expect(world.reads()).toBe(0);
  });
});

it('Fix: a check marks the bucket at its bound, however many documents do not fit a rule, and leaves later buckets their turn', async () => {
  let [pages, pageMs] = [0, 50];
  const marked: string[] = [];
  const { state, clock, check } = await setUp([ruleOf({ expiresAfterDays: 1, tags: { class: 'tmp' } })], 'routed', (world) => ({
    objects: {
      async search({ bucket, limit }) {
        if (bucket !== 'aaa') return [];
        pages += 1;
        await world.clock.sleep(pageMs);
        return Array.from({ length: limit }, () => live('aaa', 'of other tags', { tags: {} }));
      },
    },
    scan: { countLive: async () => 1_000_000 },
    gaps: { report: async ({ bucket }) => void marked.push(bucket) },
  }));
  for (const bucket of ['aaa', 'bbb']) await updateRecord(state, refs.bucket(bucket), () => recordOf(bucket, { source: 'routed' }));
  await check();
  // a hundred thousand documents, of which the first page was of those with a time of expiration
  expect([pages, marked]).toEqual([999, ['aaa']]);
  for (const bucket of ['aaa', 'bbb']) expect((await readRecord(state, refs.bucket(bucket)))?.lifecycle).toBeDefined();
  pageMs = 3_000;
  await clock.sleep(DAY_MS);
  const beginMs = clock.monotonicMs();
  await check();
  expect(clock.monotonicMs() - beginMs).toBe(5 * MINUTE_MS);
  expect(marked).toEqual(['aaa', 'aaa']);
});

describe('rules that', () => {
  it('may not be read are unknown, which is said; what objects told themselves is followed all the same', async () => {
    const world = await setUp(new FaultError('lifecycle.denied', '403'));
    await world.add('due', 9, past(world, 2));
    await world.add('old', 99);
    world.expire('due');
    await world.check();
    expect(await world.live()).toEqual(['old']);
    expect(await world.record()).toMatchObject({ rules: 'unknown', expiring: 0 });
    expect(world.telemetry.recorded('requestFailed')).toEqual([['read the lifecycle rules of a bucket', 'lifecycle.denied', '403']]);
  });

  it('cannot be read now are asked for again after five minutes, not every minute, and at once after a run that was stopped', async () => {
    const world = await setUp(new FaultError('s3.unavailable', '503'));
    await expect(world.stoppedCheck()).rejects.toThrow('503');
    for (let minutes = 0; minutes < 10; minutes += 1) {
      await world.check();
      await world.clock.sleep(MINUTE_MS);
    }
    expect(world.reads()).toBe(1 + 2);
    expect(await world.record()).toBeUndefined();
    const ended = { sweep: 'lifecycle', bucket: 'photos', result: 's3.unavailable', objects: 0 };
    expect(world.telemetry.logged('sweep ended')[0]).toEqual(ended);
  });
});
