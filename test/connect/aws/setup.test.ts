/** `tally setup` on LocalStack, from an account without anything of Tally's to buckets that are connected and removed. */
import { GetBucketNotificationConfigurationCommand } from '@aws-sdk/client-s3';
import { GetTopicAttributesCommand } from '@aws-sdk/client-sns';
import { GetQueueAttributesCommand, ListQueueTagsCommand, SetQueueAttributesCommand, UntagQueueCommand } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { unwrap } from '../../../src/events/envelope.ts';
import { createTestAws, until, type TestAws } from '../../support/servers/aws.ts';
import { awsEndpoint } from '../../support/servers/found.ts';
import { setUp, setupOn, type SetUp } from '../../support/servers/set-up.ts';
import { tracesOf } from '../../support/worlds/bystanders.ts';
import { addStatement, connectedBucket } from './connected.ts';

const FAR = 'eu-west-1';

describe.skipIf(!awsEndpoint())('a setup on LocalStack', () => {
  let aws: TestAws;
  let far: TestAws;
  beforeAll(() => {
    aws = createTestAws(awsEndpoint()!);
    far = createTestAws(awsEndpoint()!, { region: FAR });
  });
  afterAll(() => Promise.all([aws.dispose(), far.dispose()]));

  /** What is about queues, as AWS answers it. */
  async function stateOf({ installation, queue, deadLetters }: Pick<SetUp, 'installation' | 'queue' | 'deadLetters'>) {
    const attributesOf = async (url: string) => {
      const { Attributes = {} } = await aws.sqs.send(new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ['All'] }));
      const { Tags } = await aws.sqs.send(new ListQueueTagsCommand({ QueueUrl: url }));
      const lasting = Object.entries(Attributes).filter(([name]) => !/^Approximate|^LastModified/.test(name));
      return { ...Object.fromEntries(lasting), Tags };
    };
    const policyOf = async (at: TestAws, use: string) => {
      const TopicArn = `arn:aws:sns:${at.region}:000000000000:tally-${installation}-${use}`;
      return (await at.sns.send(new GetTopicAttributesCommand({ TopicArn }))).Attributes?.['Policy'];
    };
    return {
      queues: [await attributesOf(queue.url), await attributesOf(deadLetters.url)],
      policies: [await policyOf(aws, 'events'), await policyOf(aws, 'routed')],
      traces: await tracesOf(aws, `tally-${installation}`, queue),
    };
  }

  it('changes nothing when it is run twice, heals what was made otherwise, and leaves what others added', async () => {
    const made = await setUp(aws);
    await addStatement(aws, made.queue);
    const before = await stateOf(made);
    expect(before.traces).not.toEqual([]);
    const request = { prefix: made.prefix };
    expect(await setupOn(aws).apply(request)).not.toHaveProperty('made');
    expect(await stateOf(made)).toEqual(before);
    await aws.sqs.send(new SetQueueAttributesCommand({ QueueUrl: made.queue.url, Attributes: { DelaySeconds: '900' } }));
    await aws.sqs.send(new UntagQueueCommand({ QueueUrl: made.queue.url, TagKeys: ['tally:registry'] }));
    expect(await setupOn(aws).apply(request)).toMatchObject({ made: [expect.stringContaining(made.queue.arn)] });
    expect(await stateOf(made)).toEqual(before);
  });

  it.each(['notification', 'eventbridge', 'routed'] as const)(
    'and a bucket by %s, added and removed, leave AWS as the setup made it',
    async (source) => {
      const { bucket, queue, letters, provisioning, installation } = await connectedBucket(aws);
      const parts = { installation, queue, deadLetters: letters };
      const before = await stateOf(parts);
      const { plan } = await provisioning.plan({ bucket, source });
      expect(plan.findings.filter(({ blocks }) => blocks)).toEqual([]);
      expect((await provisioning.apply({ bucket, source }, { token: plan.token })).applied).toMatchObject({ state: 'applied' });
      await provisioning.remove(bucket, { keepAws: false });
      expect(await stateOf(parts)).toEqual(before);
      const { $metadata: _, ...configuration } = await aws.s3.send(new GetBucketNotificationConfigurationCommand({ Bucket: bucket }));
      // the switch is never turned off
      expect(configuration).toEqual(source === 'eventbridge' ? { EventBridgeConfiguration: {} } : {});
    },
  );

  it.each(['notification', 'eventbridge'] as const)(
    'for a further region lets a bucket there be connected by %s, whose events arrive',
    async (source) => {
      const bucket = await far.createBucket();
      const unset = await connectedBucket(aws, { bucket });
      await expect(unset.provisioning.apply({ bucket, source }, {})).rejects.toMatchObject({
        code: 'connect.blocked',
        message: expect.stringContaining(`tally setup --region ${FAR} --apply`),
      });
      const { queue, provisioning } = await connectedBucket(aws, { bucket, regions: [FAR] });
      const { plan } = await provisioning.plan({ bucket, source });
      expect((await provisioning.apply({ bucket, source }, { token: plan.token })).applied).toMatchObject({ state: 'applied' });
      await far.put(bucket, 'a.txt', 'x');
      await until('the event of the object has come', async () =>
        (await aws.takeBodies(queue.url, 1)).some((body) => unwrap(body).kind === 'records'),
      );
      await provisioning.remove(bucket, { keepAws: false });
    },
  );

  it('with the name of another one is refused, and nothing of the other is touched', async () => {
    const first = await setUp(aws);
    const before = await stateOf(first);
    await expect(setUp(aws, { installation: first.installation })).rejects.toMatchObject({ code: 'connect.blocked' });
    expect(await stateOf(first)).toEqual(before);
  });
});
