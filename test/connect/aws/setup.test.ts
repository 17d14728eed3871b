/** `tally setup` on LocalStack. Buckets that are connected after it, there and in another region, and removed: flow/connections-story.test.ts. */
import { GetTopicAttributesCommand } from '@aws-sdk/client-sns';
import { GetQueueAttributesCommand, ListQueueTagsCommand, SetQueueAttributesCommand, UntagQueueCommand } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestAws, type TestAws } from '../../support/servers/aws.ts';
import { awsEndpoint } from '../../support/servers/found.ts';
import { setUp, setupOn, type SetUp } from '../../support/servers/set-up.ts';
import { tracesOf } from '../../support/worlds/bystanders.ts';
import { addStatement } from './connected.ts';

describe.skipIf(!awsEndpoint())('a setup on LocalStack', () => {
  let aws: TestAws;
  beforeAll(() => {
    aws = createTestAws(awsEndpoint()!);
  });
  afterAll(() => aws.dispose());

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
    const setup = setupOn(aws, made.queue.url);
    expect(await setup.apply({})).not.toHaveProperty('made');
    expect(await stateOf(made)).toEqual(before);
    await aws.sqs.send(new SetQueueAttributesCommand({ QueueUrl: made.queue.url, Attributes: { DelaySeconds: '900' } }));
    await aws.sqs.send(new UntagQueueCommand({ QueueUrl: made.queue.url, TagKeys: ['tally:registry'] }));
    expect(await setup.apply({})).toMatchObject({ made: [expect.stringContaining(made.queue.arn)] });
    expect(await stateOf(made)).toEqual(before);
  });
});
