/** Reads topics, writes their policies, and makes the subscriptions of the bucket queue. */
import {
  GetSubscriptionAttributesCommand,
  GetTopicAttributesCommand,
  ListSubscriptionsByTopicCommand,
  PublishCommand,
  SetTopicAttributesCommand,
  SubscribeCommand,
  UnsubscribeCommand,
  type SNSClient,
} from '@aws-sdk/client-sns';
import { z } from 'zod';
import { FaultError } from '../../base/fault.ts';
import { jsonOf } from '../../base/json.ts';
import { parseArn } from '../names.rules.ts';
import type { ObservedSubscription, ObservedTopic, Subscription } from '../parts.rules.ts';
import { ask, orAbsent, type At, type ClientsFor } from './refusals.ts';

/** Of 100 subscriptions each. A topic of more is none that Tally can read in time. */
const PAGES_MAX = 50;

const redriveSchema = z.object({ deadLetterTargetArn: z.string() });

/** Creates the functions. A request goes to the region in the ARN: a subscription is made in that of the topic. */
export function createSnsProvision({ clientFor, writerFor }: ClientsFor<SNSClient>) {
  const clientOf = (arn: string): SNSClient => clientFor(placeOf(arn));
  const writerOf = (arn: string): SNSClient => writerFor(placeOf(arn));

  async function subscriptionOf(arn: string, signal?: AbortSignal): Promise<ObservedSubscription> {
    // SNS lists no ARN until it is confirmed
    if (!arn.startsWith('arn:')) return { isPending: true, isRaw: false };
    return observed(arn, await subscriptionAttributes(clientOf(arn), arn, signal));
  }

  async function topicOf(topicArn: string, queueArn: string, signal?: AbortSignal): Promise<ReadTopic> {
    const { Policy: policy } = await topicAttributes(clientOf(topicArn), topicArn, signal);
    const { found, others } = await subscriptionsOf(clientOf(topicArn), topicArn, queueArn, signal);
    const topic = { otherSubscriptions: others, ...(policy !== undefined && { policy }) };
    return { topic, subscription: found === undefined ? 'absent' : await orAbsent(subscriptionOf(found, signal)) };
  }

  return {
    /** The topic, and the subscription of the queue to it. */
    topicOf: (topicArn: string, queueArn: string, signal?: AbortSignal) => orAbsent(topicOf(topicArn, queueArn, signal)),
    setTopicPolicy: (topicArn: string, policy: string, signal?: AbortSignal) =>
      setTopic(writerOf(topicArn), topicArn, { Policy: policy }, signal),
    async publish(topicArn: string, message: string, signal?: AbortSignal): Promise<void> {
      const command = new PublishCommand({ TopicArn: topicArn, Message: message });
      await ask('sns:Publish', topicArn, (options) => writerOf(topicArn).send(command, options), signal);
    },
    subscribe({ topicArn, queueArn, deadLetterArn }: Subscription, signal?: AbortSignal): Promise<void> {
      const attributes: Attributes =
        deadLetterArn === undefined ? {} : { RedrivePolicy: JSON.stringify({ deadLetterTargetArn: deadLetterArn }) };
      return subscribe(writerOf(topicArn), { topicArn, queueArn, attributes }, signal);
    },
    /** It may be gone already. */
    async unsubscribe(arn: string, signal?: AbortSignal): Promise<void> {
      const command = new UnsubscribeCommand({ SubscriptionArn: arn });
      await orAbsent(ask('sns:Unsubscribe', arn, (options) => writerOf(arn).send(command, options), signal));
    },
  };
}

interface ReadTopic {
  readonly topic: ObservedTopic;
  readonly subscription: ObservedSubscription | 'absent';
}

type Attributes = Readonly<Record<string, string>>;

export async function topicAttributes(client: SNSClient, TopicArn: string, signal?: AbortSignal): Promise<Attributes> {
  const command = new GetTopicAttributesCommand({ TopicArn });
  return (await ask('sns:GetTopicAttributes', TopicArn, (options) => client.send(command, options), signal)).Attributes ?? {};
}

export async function setTopic(client: SNSClient, TopicArn: string, attributes: Attributes, signal?: AbortSignal): Promise<void> {
  for (const [AttributeName, AttributeValue] of Object.entries(attributes)) {
    const command = new SetTopicAttributesCommand({ TopicArn, AttributeName, AttributeValue });
    await ask('sns:SetTopicAttributes', TopicArn, (options) => client.send(command, options), signal);
  }
}

export async function subscriptionAttributes(client: SNSClient, SubscriptionArn: string, signal?: AbortSignal): Promise<Attributes> {
  const command = new GetSubscriptionAttributesCommand({ SubscriptionArn });
  return (await ask('sns:GetSubscriptionAttributes', SubscriptionArn, (options) => client.send(command, options), signal)).Attributes ?? {};
}

export async function subscribe(
  client: SNSClient,
  { topicArn, queueArn, attributes }: { readonly topicArn: string; readonly queueArn: string; readonly attributes: Attributes },
  signal?: AbortSignal,
): Promise<void> {
  const command = new SubscribeCommand({
    TopicArn: topicArn,
    Protocol: 'sqs',
    Endpoint: queueArn,
    ReturnSubscriptionArn: true,
    Attributes: attributes,
  });
  await ask('sns:Subscribe', topicArn, (options) => client.send(command, options), signal);
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

function observed(arn: string, attributes: Attributes): ObservedSubscription {
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
