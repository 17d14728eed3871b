import { GetSubscriptionAttributesCommand, SubscribeCommand } from '@aws-sdk/client-sns';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { confirmSubscription } from '../../src/aws/sns-topics.ts';
import type { TestAws } from '../support/servers/aws.ts';
import { createTestAws } from '../support/servers/aws.ts';
import { awsEndpoint } from '../support/servers/found.ts';

const TOPIC_ARN = 'arn:aws:sns:eu-west-1:000000000000:some-topic';

describe.skipIf(!awsEndpoint())('confirming a subscription on LocalStack', () => {
  let aws: TestAws;
  beforeAll(() => {
    aws = createTestAws(awsEndpoint()!);
  });
  afterAll(() => aws.dispose());

  async function isPending(SubscriptionArn: string): Promise<string | undefined> {
    const { Attributes } = await aws.sns.send(new GetSubscriptionAttributesCommand({ SubscriptionArn }));
    return Attributes?.['PendingConfirmation'];
  }

  it('is done with the token that the topic sent', async () => {
    const topicArn = await aws.createTopic();
    // SQS subscriptions of one's own account need no confirmation; this endpoint never hears of its token
    const endpoint = { Protocol: 'http', Endpoint: 'http://127.0.0.1:1/', ReturnSubscriptionArn: true };
    const { SubscriptionArn } = await aws.sns.send(new SubscribeCommand({ TopicArn: topicArn, ...endpoint }));
    const answer = await fetch(`${aws.endpoint}/_aws/sns/subscription-tokens/${SubscriptionArn!}`);
    const { subscription_token: token } = z.object({ subscription_token: z.string() }).parse(await answer.json());
    expect(await isPending(SubscriptionArn!)).toBe('true');
    await confirmSubscription(aws.clients().snsFor, topicArn, token);
    expect(await isPending(SubscriptionArn!)).toBe('false');
  });

  it('fails with a token that is none', async () => {
    const topicArn = await aws.createTopic();
    await expect(confirmSubscription(aws.clients().snsFor, topicArn, 'no-token')).rejects.toMatchObject({
      code: 'message.confirmation-failed',
    });
  });
});

describe('a subscription to a topic that cannot be asked', () => {
  it('is not confirmed; the region is that of its ARN', async () => {
    const regions: string[] = [];
    const aws = createTestAws('http://127.0.0.1:1');
    const clients = aws.clients();
    const unreachable = (region: string) => {
      regions.push(region);
      return clients.snsFor(region);
    };
    await expect(confirmSubscription(unreachable, TOPIC_ARN, 'token')).rejects.toMatchObject({
      code: 'message.confirmation-failed',
      reason: expect.stringContaining('ECONNREFUSED') as string,
    });
    expect(regions).toEqual(['eu-west-1']);
    const reason = new Error('enough');
    const aborted = AbortSignal.abort(reason);
    await expect(confirmSubscription(unreachable, TOPIC_ARN, 'token', aborted)).rejects.toBe(reason);
    await aws.dispose();
  });

  it.each(['', 'arn:aws:sqs:eu-west-1:000000000000:q', 'arn:aws:sns:evil.example/:000000000000:t', `${TOPIC_ARN}\n`])(
    'is none where the ARN is %j',
    async (topicArn) => {
      const clientFor = () => {
        throw new Error('asked');
      };
      await expect(confirmSubscription(clientFor, topicArn, 'token')).rejects.toMatchObject({
        reason: expect.stringContaining('not the ARN of an SNS topic') as string,
      });
    },
  );
});
