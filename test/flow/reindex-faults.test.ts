import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../support/servers/aws.ts';
import type { Daemon } from '../support/servers/daemon.ts';
import { createKeySpace } from '../support/servers/listing/key-space.ts';
import type { Fault } from '../support/servers/listing/listing-faults.ts';
import { openReindexFlow } from '../support/worlds/reindex-flow.ts';
import type { ReindexFlow, TestBucket } from '../support/worlds/reindex-flow.ts';
import { awsEndpoint, opensearchUrl } from '../support/servers/found.ts';

/**
 * Enough that what is gone at the end of the bucket is never on a good page, nor in the first half of a bad one: a page that
 * begins just before MIDDLE ends before 3,000, and a range that is split off has 1,000 keys at least.
 */
const COUNT = 5_000;
/** Where every listing fails: after two whole pages, in the middle of the third. */
const MIDDLE = createKeySpace('deep', COUNT).keyAt(2_000);
/** So many objects at the end of the bucket are gone, without an event: behind the fault, and before it. */
const GONE_BEHIND = 40;
const GONE_BEFORE = 10;

/** A bucket and its index, of which some objects are gone. */
async function bucketWithPhantoms(flow: ReindexFlow): Promise<TestBucket> {
  const bucket = await flow.createBucket({ count: COUNT, indexed: COUNT });
  const space = createKeySpace('deep', COUNT);
  for (let at = 0; at < GONE_BEFORE; at += 1) bucket.contents.remove(space.keyAt(at * 10));
  for (let at = 0; at < GONE_BEHIND; at += 1) bucket.contents.remove(space.keyAt(COUNT - 1 - at * 10));
  return bucket;
}

/** Keys of objects that the bucket holds and the index lacks. */
async function lost(bucket: TestBucket): Promise<readonly string[]> {
  const difference = (await bucket.difference()) as { readonly missing: readonly string[] } | undefined;
  return difference?.missing ?? [];
}

/**
 * Those that no second look makes better: the job fails with them. One with each code stands for the others, of which the adapter's
 * own tests find the code, and which random-reindexes.test.ts meets through the same adapter.
 */
const lasting: readonly (readonly [name: string, fault: Fault, code: string])[] = [
  ['is cut short within its XML', { kind: 'cut-xml' }, 'listing.incomplete'],
  ['is out of order', { kind: 'swapped' }, 'listing.disorder'],
];

/** Those that may pass: the job waits for it. */
const passing: readonly (readonly [name: string, fault: Fault])[] = [
  ['is refused for its rate', { kind: 'slow-down' }],
  ['is denied', { kind: 'error', status: 403, code: 'AccessDenied' }],
];

describe.skipIf(awsEndpoint() === undefined || opensearchUrl() === undefined)('a re-index', () => {
  let flow: ReindexFlow;
  let worker: Daemon;

  beforeAll(async () => {
    flow = await openReindexFlow();
    worker = await flow.startWorker({ TALLY_REINDEX_LISTINGS: '16' });
  }, 600_000);
  afterAll(async () => {
    expect(worker.isRunning).toBe(true);
    await flow.close();
  });

  test.concurrent.each(lasting)(
    'whose listing %s from some page on fails, and deletes nothing that it did not list',
    async (_, fault, code) => {
      const bucket = await bucketWithPhantoms(flow);
      flow.listing.addFault({ ...fault, bucket: bucket.name, fromKey: MIDDLE });
      const job = await bucket.ended((await bucket.reindex()).id);
      expect(job).toMatchObject({ state: 'failed', error: { code } });
      expect(job.counts!.tombstones).toBeLessThanOrEqual(GONE_BEFORE);
      expect(await lost(bucket)).toEqual([]);
      expect(await phantomsOf(bucket)).toBeGreaterThanOrEqual(GONE_BEHIND);
    },
    600_000,
  );

  test.concurrent.each(passing)(
    'whose listing %s for a while waits, deletes nothing that it did not list, and ends equal',
    async (_, fault) => {
      const bucket = await bucketWithPhantoms(flow);
      const remove = flow.listing.addFault({ ...fault, bucket: bucket.name, fromKey: MIDDLE });
      const { id } = await bucket.reindex();
      await until('a fault is told', async () => (await bucket.job(id)).last_fault !== undefined);
      expect((await bucket.job(id)).state).toBe('running');
      expect(await lost(bucket)).toEqual([]);
      expect(await phantomsOf(bucket)).toBeGreaterThanOrEqual(GONE_BEHIND);
      remove();
      expect(await bucket.ended(id)).toMatchObject({ state: 'done', counts: { listed: COUNT - GONE_BEHIND - GONE_BEFORE } });
      expect(await bucket.difference()).toBeUndefined();
    },
    600_000,
  );

  test.concurrent('whose listing lies about its end deletes nothing that is there', async () => {
    const bucket = await bucketWithPhantoms(flow);
    flow.listing.addFault({ kind: 'early-end', bucket: bucket.name, fromKey: MIDDLE });
    const job = await bucket.ended((await bucket.reindex()).id);
    expect(job).toMatchObject({ state: 'done', counts: { tombstones: GONE_BEFORE + GONE_BEHIND } });
    expect(await bucket.difference()).toBeUndefined();
  }, 600_000);

  test.concurrent('whose HEADs fail deletes nothing, and goes on when they are answered', async () => {
    const bucket = await bucketWithPhantoms(flow);
    const remove = flow.listing.addFault({ kind: 'slow-down', bucket: bucket.name, operations: ['head'] });
    const { id } = await bucket.reindex();
    await until('a fault is told', async () => (await bucket.job(id)).last_fault !== undefined);
    expect(await phantomsOf(bucket)).toBe(GONE_BEFORE + GONE_BEHIND);
    remove();
    expect(await bucket.ended(id)).toMatchObject({ state: 'done', counts: { tombstones: GONE_BEFORE + GONE_BEHIND } });
    expect(await bucket.difference()).toBeUndefined();
  }, 600_000);

  test.concurrent('of a bucket that was deleted deletes nothing', async () => {
    const count = 1_500;
    const bucket = await flow.createBucket({ count, indexed: count });
    flow.listing.removeBucket(bucket.name);
    expect(await bucket.ended((await bucket.reindex()).id)).toMatchObject({ state: 'failed', error: { code: 'bucket.missing' } });
    expect(await bucket.documents()).toBe(count);
  }, 600_000);
});

/** Documents of objects that the bucket does not hold. */
async function phantomsOf(bucket: TestBucket): Promise<number> {
  return (await bucket.documents()) - bucket.contents.size();
}
