import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Job } from '../../src/api/jobs.ts';
import type { TestAws } from '../support/servers/aws.ts';
import { createTestAws, until } from '../support/servers/aws.ts';
import type { World } from '../support/worlds/aws.ts';
import { checkOf, startWorld } from '../support/worlds/aws.ts';
import { onlyInLong } from '../support/breadth.ts';
import { indexKinds } from '../support/worlds/flow.ts';
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

// drift.test.ts has a first re-index on SQLite
describe.skipIf(awsEndpoint() === undefined)('a bucket that was filled before it was connected', () => {
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

  it.each(indexKinds.slice(-1))(
    'is in the index after a re-index (%s)',
    async (store) => {
      const world = await startWorld({ store });
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
        expect(await world.daemon.metric('tally_reindex_objects_total', { kind: 'missing' })).toBe(KEYS.length);
        expect(await world.daemon.stop()).toEqual({ code: 0, signal: null });
      } finally {
        await world.dispose();
      }
    },
    2 * JOB_TIMEOUT_MS,
  );

  // unclaimed-jobs.test.ts decides when it is said
  onlyInLong(it)(
    'is not re-indexed where no process has the role, which every process says',
    async () => {
      const world = await startWorld({ env: { TALLY_ROLES: 'ingest,http' } });
      try {
        const bucket = await filledBucket(world);
        await world.connect({ bucket });
        await world.daemon.ready();
        const { body } = await world.daemon.request('POST', `/v1/buckets/${bucket}/reindex`, {});
        const isSaid = async (): Promise<boolean> => checkOf((await world.daemon.readyz())?.body, 'jobs')?.status === 'warning';
        // three minutes without a worker, and the next look
        await until('the process says that no worker takes the job', isSaid, 240_000);
        expect(checkOf((await world.daemon.readyz())?.body, 'jobs')).toMatchObject({ code: 'no-worker' });
        expect(await jobOf(world, (body as Job).id)).toMatchObject({ state: 'queued' });
      } finally {
        await world.dispose();
      }
    },
    600_000,
  );
});
