/**
 * Two processes that change connections at once: each has its own connection to one real store. AWS is in memory. That the other
 * store lets one of two writers win is proven by the contract of the stores.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RequestError } from '../../../src/domain/request-error.ts';
import type { Provisioning } from '../../../src/pipeline/provision/provisioning.ts';
import { refs, updateRecord } from '../../../src/pipeline/records/stored.ts';
import { createFakeAws, provisioningOn, QUEUE_ARN, REGION, THEIR_TOPIC } from '../../support/fakes/aws-parts.ts';
import { createFakeClock, createFakeStorage } from '../../support/fakes/ports.ts';
import type { TwoStores } from '../../support/identity/keys-contract.ts';
import { until } from '../../support/servers/aws.ts';
import { openTwoSqlite } from '../../support/stores/two-sqlite.ts';
import { newRecord } from './world.ts';

/** How often the stories are played: the processes meet at other moments each time. */
const ROUNDS = 5;
const buckets = ['photos', 'videos'] as const;

describe('two processes on one SQLite file', () => {
  let stores: TwoStores;
  beforeAll(async () => {
    stores = await openTwoSqlite();
  });
  afterAll(() => stores.dispose());

  async function startProcesses() {
    const aws = createFakeAws();
    aws.parts.notifications.set('videos', { entries: [], eventBridge: false });
    aws.parts.topics.set(THEIR_TOPIC, { policy: '{"Statement":[]}', subscriptions: new Map() });
    const clock = createFakeClock();
    const storage = createFakeStorage(clock);
    for (const bucket of buckets) {
      storage.createBucket(bucket, { region: REGION });
      await updateRecord(stores.a.state, refs.bucket(bucket), () => newRecord(bucket, clock.nowMs()));
    }
    const of = ({ state }: TwoStores['a']): Provisioning => provisioningOn(aws, { state, storage, clock });
    return { aws, a: of(stores.a), b: of(stores.b) };
  }

  /** Repeats the request as a client does. */
  async function applied(process: Provisioning, bucket: string): Promise<void> {
    await until(
      `${bucket} is applied`,
      async () => (await process.apply({ bucket, source: 'topic', topic_arn: THEIR_TOPIC }, {})).applied.state === 'applied',
    );
  }

  async function removed(process: Provisioning, bucket: string): Promise<void> {
    await until(`${bucket} is removed`, async () => {
      try {
        await process.remove(bucket, { keepAws: false });
        return true;
      } catch (error) {
        if (error instanceof RequestError && error.code === 'connect.busy') return false;
        throw error;
      }
    });
  }

  it('make what two buckets share once, and each its own', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const { aws, a, b } = await startProcesses();
      await Promise.all([applied(a, 'photos'), applied(b, 'videos')]);
      expect(aws.writes.toSorted().filter((call) => call !== 'putNotification')).toEqual(['setQueuePolicy', 'setQueuePolicy', 'subscribe']);
      for (const bucket of buckets) expect((await a.plan({ bucket, source: 'topic', topic_arn: THEIR_TOPIC })).plan.changes).toEqual([]);
      await Promise.all(buckets.map((bucket) => removed(b, bucket)));
    }
  });

  it('leave what the other one makes, when one removes its bucket meanwhile', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const { aws, a, b } = await startProcesses();
      await applied(a, 'photos');
      await Promise.all([removed(a, 'photos'), applied(b, 'videos')]);
      // what went with the last bucket, as it seemed, is made again
      await applied(b, 'videos');
      expect((await b.plan({ bucket: 'videos', source: 'topic', topic_arn: THEIR_TOPIC })).plan.changes).toEqual([]);
      expect([...aws.parts.topics.get(THEIR_TOPIC)!.subscriptions.keys()]).toEqual([QUEUE_ARN]);
      await removed(b, 'videos');
      expect([aws.parts.topics.get(THEIR_TOPIC)!.subscriptions.size, JSON.stringify(aws.snapshot()).includes('-named')]).toEqual([
        0,
        false,
      ]);
    }
  });
});
