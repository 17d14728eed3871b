/** A daemon that makes the AWS side of its buckets itself, from the first request to the last. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ListTopicsCommand } from '@aws-sdk/client-sns';
import { awsEndpoint } from '../support/servers/found.ts';
import { until } from '../support/servers/aws.ts';
import { startWorld, type World } from '../support/worlds/aws.ts';

/** Another run may use the same server, and one that was killed may have left its parts there. */
const INSTALLATION = randomBytes(4).toString('hex');
/** What changes AWS has the credentials of this role; what reads and the doctor have those of the process. */
const ROLE = {
  TALLY_CONNECT_ROLE_ARN: 'arn:aws:iam::000000000000:role/tally-connect',
  TALLY_CONNECT_ROLE_EXTERNAL_ID: 'tally-7',
};

describe.skipIf(!awsEndpoint())('a bucket that Tally connects by a role', () => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld({ env: { TALLY_INSTALLATION: INSTALLATION, ...ROLE } });
  });
  afterAll(() => world.dispose());

  const topicsOfOurs = async (): Promise<readonly unknown[]> => {
    const { Topics = [] } = await world.aws.sns.send(new ListTopicsCommand({}));
    return Topics.filter(({ TopicArn = '' }) => TopicArn.includes(INSTALLATION));
  };

  it('is searchable at once, found healthy, changes its source without a hole, and leaves no trace', async () => {
    const { aws, daemon } = world;
    const bucket = await aws.createBucket();
    const added = await daemon.request('POST', '/v1/buckets', { bucket, apply: true, reindex: false });
    expect(added).toMatchObject({ status: 201, body: { connection: { state: 'applied' } } });
    expect(await world.bucketRecord(bucket)).toMatchObject({ account: '000000000000' });
    await aws.put(bucket, 'by-notification.txt', 'x');
    await until('the first object is found', async () => (await world.find(bucket, 'by-notification.txt')) !== undefined);
    expect(await daemon.request('GET', `/v1/buckets/${bucket}/doctor`)).toMatchObject({
      status: 200,
      body: { status: 'ok', findings: [] },
    });
    expect(await world.everyGap(bucket)).toMatchObject([{ kind: 'loss', state: 'open', not_before: expect.any(String) }]);

    const plan = await daemon.request('GET', `/v1/buckets/${bucket}/plan?source=eventbridge`);
    const { token } = plan.body as { token: string };
    const refused = await daemon.request('POST', `/v1/buckets/${bucket}/apply`, { source: 'eventbridge' });
    expect(refused).toMatchObject({ status: 409, body: { code: 'connect.plan-needed', token } });
    const applied = await daemon.request('POST', `/v1/buckets/${bucket}/apply`, { source: 'eventbridge', plan: token });
    expect(applied).toMatchObject({ status: 200, body: { state: 'applied', source: 'eventbridge' } });
    expect(await world.bucketRecord(bucket)).toMatchObject({ source: 'eventbridge' });
    await aws.put(bucket, 'by-both.txt', 'x');
    await until('the second object is found', async () => (await world.find(bucket, 'by-both.txt')) !== undefined);

    const removed = await daemon.request('DELETE', `/v1/buckets/${bucket}`);
    expect(removed).toMatchObject({ status: 200, body: { bucket, kept: [{ name: `the switch for EventBridge of ${bucket}` }] } });
    expect((await daemon.request('GET', `/v1/buckets/${bucket}`)).status).toBe(404);
    expect(await topicsOfOurs()).toEqual([]);
  });
});
