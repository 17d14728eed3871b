import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Job } from '../../src/api/jobs.ts';
import type { TestAws } from '../support/servers/aws.ts';
import { createTestAws, until } from '../support/servers/aws.ts';
import type { World } from '../support/worlds/aws.ts';
import { checkOf, startWorld } from '../support/worlds/aws.ts';
import { startDaemon } from '../support/servers/daemon.ts';
import { indexKinds, openIndex } from '../support/worlds/flow.ts';
import { awsEndpoint } from '../support/servers/found.ts';

/** The wait for late events is a minute of S3's clock. */
const JOB_TIMEOUT_MS = 300_000;
const KEYS = [
  'a b+c 100%20.txt',
  'dir/"q" \\ ü.txt',
  'dir/\u{e000}',
  'dir/😀',
  'plain',
  ...Array.from({ length: 40 }, (_, n) => `many/${n}`),
];

// at once: they wait most of their time
describe.skipIf(awsEndpoint() === undefined).concurrent('a bucket that was filled before it was connected', () => {
  let own: TestAws;
  const endpoint = awsEndpoint() ?? '';

  beforeAll(() => {
    own = createTestAws(endpoint);
  });
  afterAll(() => own.dispose());

  async function filledBucket({ aws }: World): Promise<string> {
    const bucket = await aws.createBucket({ versioned: true });
    for (const key of KEYS) await aws.put(bucket, key, `body of ${key}`);
    return bucket;
  }

  async function jobOf({ daemon }: World, id: string): Promise<Job> {
    return (await daemon.request('GET', `/v1/jobs/${id}`)).body as Job;
  }

  async function endOf(world: World, id: string): Promise<Job> {
    let job: Job | undefined;
    await until(
      'the job has ended',
      async () => {
        job = await jobOf(world, id);
        return !['queued', 'running'].includes(job.state);
      },
      JOB_TIMEOUT_MS,
    ).catch((error: unknown) => {
      const log = world.daemon.log.slice(-10).map((line) => JSON.stringify(line));
      throw new Error([JSON.stringify(job), ...log].join('\n'), { cause: error });
    });
    return job!;
  }

  it.each(indexKinds)(
    'is in the index after a re-index (%s)',
    async (store) => {
      const workQueue = await own.createQueue();
      const world = await startWorld({ store, env: { TALLY_WORK_QUEUE_URL: workQueue.url } });
      try {
        const bucket = await filledBucket(world);
        await world.connect({ bucket });
        const { status, body } = await world.daemon.request('POST', `/v1/buckets/${bucket}/reindex`, {});
        expect(status).toBe(202);
        const { id } = body as Job;
        await until('the job waits for late events', async () => (await jobOf(world, id)).phase === 'waiting');
        expect(await world.documents(bucket)).toEqual([]);
        expect((await world.bucketRecord(bucket)).floor).toBeGreaterThan(0);
        const job = await endOf(world, id);
        expect(job).toMatchObject({
          state: 'done',
          counts: { listed: KEYS.length, missing: KEYS.length, written: KEYS.length },
          progress: 1,
        });
        const found = (await world.documents(bucket)).map(({ key }) => key);
        expect(found).toEqual(KEYS.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))));
        expect((await world.bucketRecord(bucket)).last_compared_at).toBe(job.finished_at);
        await until('no task is left', async () => (await world.messagesIn(workQueue.url)) === 0);
        expect(await world.daemon.metric('tally_reindex_objects_total', { kind: 'missing' })).toBe(KEYS.length);
        expect(await world.daemon.stop()).toEqual({ code: 0, signal: null });
      } finally {
        await world.dispose();
      }
    },
    2 * JOB_TIMEOUT_MS,
  );

  it('is not re-indexed by a process without a work queue, which says so', async () => {
    const world = await startWorld({});
    try {
      const bucket = await filledBucket(world);
      await world.connect({ bucket });
      await world.daemon.ready();
      expect(checkOf((await world.daemon.readyz())?.body, 'work-queue')).toMatchObject({ status: 'warning', code: 'no-work-queue' });
      const { body } = await world.daemon.request('POST', `/v1/buckets/${bucket}/reindex`, {});
      expect(await jobOf(world, (body as Job).id)).toMatchObject({ state: 'queued' });
    } finally {
      await world.dispose();
    }
  }, 600_000);

  it('makes a process unready whose work queue does not exist', async () => {
    const workQueue = await own.createQueue();
    const world = await startWorld({});
    const index = await openIndex('sqlite');
    const daemon = await startDaemon({
      AWS_ENDPOINT_URL: endpoint,
      TALLY_ROLES: 'reindex',
      TALLY_WORK_QUEUE_URL: `${workQueue.url}-gone`,
      ...index.env,
    });
    try {
      const isUnready = async (): Promise<boolean> => checkOf((await daemon.readyz())?.body, 'work-queue')?.status === 'failed';
      await until('the missing queue is told', isUnready);
    } finally {
      await daemon.kill();
      await index.close();
      await world.dispose();
    }
  }, 600_000);
});
