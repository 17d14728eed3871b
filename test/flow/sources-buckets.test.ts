import { afterAll, describe, expect, it } from 'vitest';
import { until } from '../support/servers/aws.ts';
import type { World } from '../support/worlds/aws.ts';
import { checkOf, startWorld } from '../support/worlds/aws.ts';
import type { Environment } from '../support/servers/daemon.ts';
import { awsEndpoint } from '../support/servers/found.ts';

/** A provisional answer that a slow machine wrote out of order is put right by its settle, some 45 s later. */
const AGREE_TIMEOUT_MS = 300_000;

// at once: each waits some seconds until its daemon notices that there is a bucket
describe.skipIf(!awsEndpoint()).concurrent('which buckets are indexed', { timeout: 4 * AGREE_TIMEOUT_MS }, () => {
  const worlds: World[] = [];
  async function start(env?: Environment): Promise<World> {
    const world = await startWorld(env === undefined ? {} : { env });
    worlds.push(world);
    return world;
  }
  afterAll(async () => {
    await Promise.all(worlds.map((world) => world.dispose()));
  });

  /** A bucket that notifies the bucket queue itself. */
  async function notifyingBucket({ aws, queue }: World): Promise<string> {
    const bucket = await aws.createBucket();
    await aws.notify(bucket, { queue });
    return bucket;
  }

  const found = async (world: World, bucket: string, key: string): Promise<boolean> => (await world.find(bucket, key)) !== undefined;

  it('receives nothing and says so until a bucket is connected, then goes on without a restart', async () => {
    const world = await start();
    const { aws, daemon, queue } = world;
    const bucket = await notifyingBucket(world);
    await aws.put(bucket, 'k', 'hello');
    // S3's test event and the object's
    await until('both messages are there', async () => (await world.messagesIn(queue.url)) === 2);
    await until('it says so', async () => (await daemon.metric('tally_receiving', { state: 'no-bucket' })) === 1);
    const answer = await daemon.readyz();
    expect(answer).toMatchObject({ status: 503, body: { ready: false, roles: { ingest: { ready: false }, http: { ready: true } } } });
    expect(checkOf(answer?.body, 'buckets')).toMatchObject({ status: 'failed', code: 'no-bucket' });
    expect(await world.messagesIn(queue.url)).toBe(2);

    await world.connect({ bucket });
    await daemon.ready();
    await until('the object is found', () => found(world, bucket, 'k'), AGREE_TIMEOUT_MS);
    expect((await world.bucketList()).unconnected).toEqual([]);
  });

  it('counts and shows the events of a bucket that is not connected, and indexes what comes after it was', async () => {
    const world = await start();
    const { aws, daemon } = world;
    await world.connect({ bucket: await aws.createBucket() });
    await daemon.ready();
    const bucket = await notifyingBucket(world);
    for (const key of ['a', 'b', 'c']) await aws.put(bucket, key, 'before');
    await until('three events were counted', async () => (await world.bucketList()).unconnected[0]?.count === 3);
    expect((await world.bucketList()).unconnected).toMatchObject([{ bucket, count: 3 }]);
    expect((await daemon.request('GET', `/v1/buckets/${bucket}`)).status).toBe(404);
    expect(await world.documents(bucket)).toEqual([]);

    await world.connect({ bucket });
    expect(await world.everyGap(bucket)).toMatchObject([{ bucket, kind: 'loss', state: 'open', reason: 'never compared' }]);
    expect((await world.bucketList()).unconnected).toEqual([]);
    // whoever asked for its record just now may believe the answer for some seconds: those events are told by the gap
    await until(
      'a new object is found',
      async () => {
        await aws.put(bucket, 'd', 'after');
        return found(world, bucket, 'd');
      },
      AGREE_TIMEOUT_MS,
    );
    expect(await world.documents(bucket)).toMatchObject([{ key: 'd' }]);
  });

  it('connects a bucket at its first event where that is asked for, up to the maximum', async () => {
    const world = await start({ TALLY_AUTO_CONNECT: 'true', TALLY_AUTO_CONNECT_MAX: '2' });
    const { aws, daemon } = world;
    await daemon.ready();
    const [first, second, third] = [await notifyingBucket(world), await notifyingBucket(world), await notifyingBucket(world)];
    for (const bucket of [first, second]) {
      await aws.put(bucket, 'k', 'hello');
      await until('the object is found', () => found(world, bucket, 'k'), AGREE_TIMEOUT_MS);
      expect(await world.bucketRecord(bucket)).toMatchObject({ bucket, created_by: 'auto-connect', region: 'us-east-1' });
    }
    await aws.put(third, 'k', 'hello');
    await until('the event was counted', async () => (await world.bucketList()).unconnected.length > 0);
    const { items, unconnected } = await world.bucketList();
    expect(items.map(({ bucket }) => bucket)).toEqual([first, second].toSorted());
    expect(unconnected).toMatchObject([{ bucket: third, count: 1 }]);
    expect(await world.documents(third)).toEqual([]);
  });

  it('asks S3 what a delete came to in a bucket without versions', async () => {
    const world = await start();
    const { aws, daemon } = world;
    const bucket = await notifyingBucket(world);
    expect(await world.connect({ bucket })).toMatchObject({ versioning: { status: 'never' } });
    for (const key of ['gone', 'kept']) await aws.put(bucket, key, 'hello');
    await until('both are found', async () => (await world.documents(bucket)).length === 2, AGREE_TIMEOUT_MS);
    const absent = await daemon.metric('tally_head_requests_total', { result: 'absent' });
    await aws.remove(bucket, 'gone');
    await until('it is found no longer', async () => (await world.documents(bucket)).length === 1, AGREE_TIMEOUT_MS);
    expect(await world.find(bucket, 'kept')).toBeDefined();
    expect(await daemon.metric('tally_head_requests_total', { result: 'absent' })).toBeGreaterThan(absent);
  });

  it('learns from a version id that a bucket has versions now', async () => {
    const world = await start();
    const { aws } = world;
    const bucket = await notifyingBucket(world);
    expect(await world.connect({ bucket })).toMatchObject({ versioning: { status: 'never' } });
    await aws.put(bucket, 'k', 'without a version');
    await until('it is found', () => found(world, bucket, 'k'), AGREE_TIMEOUT_MS);
    expect(await world.bucketRecord(bucket)).toMatchObject({ versioning: { status: 'never' } });
    await aws.setVersioning(bucket, 'Enabled');
    await aws.put(bucket, 'k', 'with a version');
    await until('the record says so', async () => (await world.bucketRecord(bucket)).versioning.status === 'enabled', AGREE_TIMEOUT_MS);
    await until('the version is found', async () => (await world.find(bucket, 'k'))?.version_id !== undefined, AGREE_TIMEOUT_MS);
    await aws.remove(bucket, 'k');
    await until('it is found no longer', async () => !(await found(world, bucket, 'k')), AGREE_TIMEOUT_MS);
  });
});
