/** Reads topics and sets their attributes, and makes and removes the bucket queue's subscriptions to them. */
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
import { FaultError } from '../../base/fault.ts';
import { arnOf } from '../names.rules.ts';
import type { Attributes, ObservedSubscription, ObservedTopic } from '../plan.rules.ts';
import { ask, orAbsent, type ClientsOf } from './ask.ts';

/** Pages of 100 subscriptions. Tally cannot read a larger topic in time. */
const PAGES_MAX = 50;

/** Creates the functions. Requests go to the region in the ARN, so a subscription is made in its topic's region. */
export function createSnsProvision({ snsFor, once }: ClientsOf<'snsFor'>) {
  const clientOf = (arn: string): SNSClient => snsFor(arnOf(arn).region);
  const writerOf = (arn: string): SNSClient => once.snsFor(arnOf(arn).region);

  async function subscriptionOf(arn: string, signal?: AbortSignal): Promise<ObservedSubscription> {
    // until it is confirmed, SNS lists no ARN
    if (!arn.startsWith('arn:')) return { attributes: {} };
    const command = new GetSubscriptionAttributesCommand({ SubscriptionArn: arn });
    return { arn, attributes: (await ask(clientOf(arn), command, arn, signal)).Attributes ?? {} };
  }

  async function topicOf(topicArn: string, queueArn: string, signal?: AbortSignal): Promise<ObservedTopic> {
    const client = clientOf(topicArn);
    const { Attributes } = await ask(client, new GetTopicAttributesCommand({ TopicArn: topicArn }), topicArn, signal);
    const found = await listedSubscription(client, topicArn, queueArn, signal);
    return { attributes: Attributes ?? {}, subscription: found === undefined ? 'absent' : await orAbsent(subscriptionOf(found, signal)) };
  }

  return {
    /** The topic, and the queue's subscription to it. */
    topicOf: (topicArn: string, queueArn: string, signal?: AbortSignal) => orAbsent(topicOf(topicArn, queueArn, signal)),
    async setTopic(TopicArn: string, attributes: Attributes, signal?: AbortSignal): Promise<void> {
      for (const [AttributeName, AttributeValue] of Object.entries(attributes)) {
        const command = new SetTopicAttributesCommand({ TopicArn, AttributeName, AttributeValue });
        await ask(writerOf(TopicArn), command, TopicArn, signal);
      }
    },
    async publish(topicArn: string, message: string, signal?: AbortSignal): Promise<void> {
      await ask(writerOf(topicArn), new PublishCommand({ TopicArn: topicArn, Message: message }), topicArn, signal);
    },
    async subscribe(topicArn: string, queueArn: string, attributes: Attributes, signal?: AbortSignal): Promise<void> {
      const to = { TopicArn: topicArn, Protocol: 'sqs', Endpoint: queueArn, ReturnSubscriptionArn: true };
      await ask(writerOf(topicArn), new SubscribeCommand({ ...to, Attributes: attributes }), topicArn, signal);
    },
    /** The subscription may already be gone. */
    async unsubscribe(arn: string, signal?: AbortSignal): Promise<void> {
      await orAbsent(ask(writerOf(arn), new UnsubscribeCommand({ SubscriptionArn: arn }), arn, signal));
    },
  };
}

/** The ARN of the queue's subscription, or SNS's placeholder until it is confirmed. */
async function listedSubscription(
  client: SNSClient,
  topicArn: string,
  queueArn: string,
  signal?: AbortSignal,
): Promise<string | undefined> {
  let token: string | undefined;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const command = new ListSubscriptionsByTopicCommand({ TopicArn: topicArn, ...(token !== undefined && { NextToken: token }) });
    const answer = await ask(client, command, topicArn, signal);
    const found = answer.Subscriptions?.find(({ Endpoint, Protocol }) => Endpoint === queueArn && Protocol === 'sqs');
    if (found !== undefined) return found.SubscriptionArn ?? PENDING;
    token = answer.NextToken;
    if (token === undefined || token === '') return undefined;
  }
  throw new FaultError(
    'connect.unavailable',
    `ListSubscriptionsByTopic ${topicArn}: the topic has more than ${PAGES_MAX * 100} subscriptions`,
  );
}

const PENDING = 'PendingConfirmation';
