/** Two processes that change connections at once: each has its own connection to one real store. AWS is in memory. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSqliteStore } from '../../../src/adapters/sqlite/store.ts';
import { gapSchema } from '../../../src/domain/gaps/gap.ts';
import { RequestError } from '../../../src/domain/request-error.ts';
import type { Provisioning } from '../../../src/pipeline/provision/provisioning.ts';
import { parseEntry, readRecord, refs, updateRecord } from '../../../src/pipeline/records/stored.ts';
import { createFakeAws, INSTALLATION, provisioningOn, QUEUE_ARN, REGION, TOPIC_ARN, type FakeAws } from '../../support/fakes/aws-parts.ts';
import { createFakeClock, createFakeStorage } from '../../support/fakes/ports.ts';
import type { TwoStores } from '../../support/identity/keys-contract.ts';
import { until } from '../../support/servers/aws.ts';
import { opensearchUrl } from '../../support/servers/found.ts';
import { openTestStore } from '../../support/servers/opensearch.ts';
import { newRecord } from './world.ts';

/**
 * How often the stories are played: the processes meet at other moments each time. On OpenSearch a round takes ten seconds, so
 * it is played less often: the meetings are those on SQLite, and that OpenSearch lets one of two writers win is proven by the
 * contract of the stores.
 */
const ROUNDS = { SQLite: 5, OpenSearch: 2 } as const;
const buckets = ['photos', 'videos'] as const;

async function openSqlite(): Promise<TwoStores> {
  const folder = await mkdtemp(join(tmpdir(), 'tally-two-'));
  const path = join(folder, 'index.sqlite');
  const [a, b] = [createSqliteStore({ path }), createSqliteStore({ path })];
  await a.setup.prepare();
  await b.setup.prepare();
  return {
    a,
    b,
    async dispose() {
      await Promise.all([a.close(), b.close()]);
      await rm(folder, { recursive: true });
    },
  };
}

async function openSearch(): Promise<TwoStores> {
  const opened = openTestStore();
  await opened.store.setup.prepare();
  return { a: opened.store, b: opened.another(), dispose: () => opened.dispose() };
}

const kinds =
  opensearchUrl() === undefined
    ? ([['SQLite', openSqlite]] as const)
    : ([
        ['SQLite', openSqlite],
        ['OpenSearch', openSearch],
      ] as const);

describe.each(kinds)('two processes on %s', (kind, open) => {
  const rounds = ROUNDS[kind];
  let stores: TwoStores;
  beforeAll(async () => {
    stores = await open();
  });
  afterAll(() => stores.dispose());

  async function startProcesses() {
    const aws = createFakeAws();
    aws.parts.notifications.set('videos', { entries: [], eventBridge: false });
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
    await until(`${bucket} is applied`, async () => (await process.apply({ bucket }, {})).applied.state === 'applied');
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

  const made = ({ writes }: FakeAws): readonly string[] => writes.toSorted();

  it('make everything of one bucket once', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const { aws, a, b } = await startProcesses();
      await Promise.all([applied(a, 'photos'), applied(b, 'photos'), applied(a, 'photos'), applied(b, 'photos')]);
      expect(made(aws)).toEqual(['createTopic', 'putNotification', 'setQueuePolicy', 'setQueuePolicy', 'setTopicPolicy', 'subscribe']);
      expect((await a.plan({ bucket: 'photos' })).plan.changes).toEqual([]);
      expect(await readRecord(stores.b.state, refs.connection('photos'))).toMatchObject({ state: 'applied' });
      const gap = await stores.b.state.get('gap:photos:loss');
      expect(gap && parseEntry(gap, gapSchema)).toMatchObject({ state: 'open' });
      await removed(b, 'photos');
    }
  });

  it('make what two buckets share once, and each its own', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const { aws, a, b } = await startProcesses();
      await Promise.all([applied(a, 'photos'), applied(b, 'videos')]);
      expect(made(aws).filter((call) => call !== 'putNotification')).toEqual([
        'createTopic',
        'setQueuePolicy',
        'setQueuePolicy',
        'setTopicPolicy',
        'subscribe',
      ]);
      for (const bucket of buckets) expect((await a.plan({ bucket })).plan.changes).toEqual([]);
      await Promise.all(buckets.map((bucket) => removed(b, bucket)));
    }
  });

  it('leave what the other one makes, when one removes its bucket meanwhile', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const { aws, a, b } = await startProcesses();
      await applied(a, 'photos');
      await Promise.all([removed(a, 'photos'), applied(b, 'videos')]);
      // what went with the last bucket, as it seemed, is made again
      await applied(b, 'videos');
      expect((await b.plan({ bucket: 'videos' })).plan.changes).toEqual([]);
      expect([...aws.parts.topics.get(TOPIC_ARN)!.subscriptions.keys()]).toEqual([QUEUE_ARN]);
      expect(aws.parts.notifications.get('photos')).toEqual({ entries: [], eventBridge: false });
      await removed(b, 'videos');
      expect(JSON.stringify(aws.snapshot())).not.toContain(INSTALLATION);
    }
  });
});
