/** Reads topics, writes their policies, and makes the subscriptions of the bucket queue. */
import {
  GetSubscriptionAttributesCommand,
  GetTopicAttributesCommand,
  ListSubscriptionsByTopicCommand,
  PublishCommand,
  SetSubscriptionAttributesCommand,
  SetTopicAttributesCommand,
  SubscribeCommand,
  UnsubscribeCommand,
  type SNSClient,
} from '@aws-sdk/client-sns';
import { z } from 'zod';
import { FaultError } from '../../../domain/fault.ts';
import { jsonOf } from '../../../domain/json.ts';
import { parseArn } from '../../../domain/provisioning/names.ts';
import type { ObservedSubscription } from '../../../domain/provisioning/parts.ts';
import type { At, Provisioner } from '../../../pipeline/ports/provision.ts';
import { ask, orAbsent, type ClientsFor } from './refusals.ts';

type TopicFunctions = 'topicOf' | 'setTopicPolicy' | 'publish' | 'subscribe' | 'setSubscription' | 'unsubscribe';

/** Of 100 subscriptions each. A topic of more is none that Tally can read in time. */
const PAGES_MAX = 50;

const redriveSchema = z.object({ deadLetterTargetArn: z.string() });

export function createSnsProvision({ clientFor, writerFor }: ClientsFor<SNSClient>): Pick<Provisioner, TopicFunctions> {
  const clientOf = (arn: string): SNSClient => clientFor(placeOf(arn));
  const writerOf = (arn: string): SNSClient => writerFor(placeOf(arn));

  async function subscriptionOf(arn: string, signal?: AbortSignal): Promise<ObservedSubscription> {
    // SNS lists no ARN until it is confirmed
    if (!arn.startsWith('arn:')) return { isPending: true, isRaw: false };
    const command = new GetSubscriptionAttributesCommand({ SubscriptionArn: arn });
    const { Attributes = {} } = await ask('sns:GetSubscriptionAttributes', arn, (options) => clientOf(arn).send(command, options), signal);
    return observed(arn, Attributes);
  }

  async function topicOf(topicArn: string, queueArn: string, signal?: AbortSignal) {
    const command = new GetTopicAttributesCommand({ TopicArn: topicArn });
    const { Attributes = {} } = await ask(
      'sns:GetTopicAttributes',
      topicArn,
      (options) => clientOf(topicArn).send(command, options),
      signal,
    );
    const { found, others } = await subscriptionsOf(clientOf(topicArn), topicArn, queueArn, signal);
    const { Policy: policy } = Attributes;
    const topic = { otherSubscriptions: others, ...(policy !== undefined && { policy }) };
    return { topic, subscription: found === undefined ? ('absent' as const) : await orAbsent(subscriptionOf(found, signal)) };
  }

  return {
    topicOf: (topicArn, queueArn, signal) => orAbsent(topicOf(topicArn, queueArn, signal)),
    async setTopicPolicy(topicArn, policy, signal) {
      const command = new SetTopicAttributesCommand({ TopicArn: topicArn, AttributeName: 'Policy', AttributeValue: policy });
      await ask('sns:SetTopicAttributes', topicArn, (options) => writerOf(topicArn).send(command, options), signal);
    },
    async publish(topicArn, message, signal) {
      const command = new PublishCommand({ TopicArn: topicArn, Message: message });
      await ask('sns:Publish', topicArn, (options) => writerOf(topicArn).send(command, options), signal);
    },
    async subscribe({ topicArn, queueArn, deadLetterArn }, signal) {
      const command = new SubscribeCommand({
        TopicArn: topicArn,
        Protocol: 'sqs',
        Endpoint: queueArn,
        ReturnSubscriptionArn: true,
        ...(deadLetterArn !== undefined && { Attributes: { RedrivePolicy: JSON.stringify({ deadLetterTargetArn: deadLetterArn }) } }),
      });
      await ask('sns:Subscribe', topicArn, (options) => writerOf(topicArn).send(command, options), signal);
    },
    async setSubscription(arn, attributes, signal) {
      for (const [AttributeName, AttributeValue] of Object.entries(attributes)) {
        const command = new SetSubscriptionAttributesCommand({ SubscriptionArn: arn, AttributeName, AttributeValue });
        await ask('sns:SetSubscriptionAttributes', arn, (options) => writerOf(arn).send(command, options), signal);
      }
    },
    async unsubscribe(arn, signal) {
      const command = new UnsubscribeCommand({ SubscriptionArn: arn });
      await orAbsent(ask('sns:Unsubscribe', arn, (options) => writerOf(arn).send(command, options), signal));
    },
  };
}

/** The subscription of the queue, and how many others there are. */
export async function subscriptionsOf(
  client: SNSClient,
  topicArn: string,
  queueArn: string,
  signal?: AbortSignal,
): Promise<{ readonly found: string | undefined; readonly others: number }> {
  let others = 0;
  let found: string | undefined;
  let token: string | undefined;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const command = new ListSubscriptionsByTopicCommand({ TopicArn: topicArn, ...(token !== undefined && { NextToken: token }) });
    const answer = await ask('sns:ListSubscriptionsByTopic', topicArn, (options) => client.send(command, options), signal);
    for (const { Endpoint, Protocol, SubscriptionArn: arn = PENDING } of answer.Subscriptions ?? []) {
      if (Endpoint === queueArn && Protocol === 'sqs') found = arn;
      else others += 1;
    }
    token = answer.NextToken;
    if (token === undefined || token === '') return { found, others };
  }
  throw new FaultError(
    'connect.unavailable',
    `ListSubscriptionsByTopic ${topicArn}: the topic has more than ${PAGES_MAX * 100} subscriptions`,
  );
}

const PENDING = 'PendingConfirmation';

function observed(arn: string, attributes: Readonly<Record<string, string>>): ObservedSubscription {
  const { PendingConfirmation, RawMessageDelivery, FilterPolicy, RedrivePolicy } = attributes;
  const redrive = redriveSchema.safeParse(jsonOf(RedrivePolicy ?? ''));
  return {
    arn,
    isPending: PendingConfirmation === 'true',
    isRaw: RawMessageDelivery === 'true',
    ...(FilterPolicy !== undefined && FilterPolicy !== '' && { filterPolicy: FilterPolicy }),
    ...(redrive.success && { deadLetterArn: redrive.data.deadLetterTargetArn }),
  };
}

function placeOf(arn: string): At {
  const at = parseArn(arn);
  if (at === undefined || at.region === '') throw new FaultError('connect.unavailable', `${arn} is not the ARN of a topic`);
  return at;
}
