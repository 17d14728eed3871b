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
import { FaultError } from '../../base/fault.ts';
import { parseArn } from '../names.rules.ts';
import type { Attributes, ObservedSubscription, ObservedTopic } from '../plan.rules.ts';
import { ask, orAbsent, type At, type ClientsFor } from './refusals.ts';

/** Of 100 subscriptions each. A topic of more is none that Tally can read in time. */
const PAGES_MAX = 50;

/** Creates the functions. A request goes to the region in the ARN: a subscription is made in that of the topic. */
export function createSnsProvision({ clientFor, writerFor }: ClientsFor<SNSClient>) {
  const clientOf = (arn: string): SNSClient => clientFor(placeOf(arn));
  const writerOf = (arn: string): SNSClient => writerFor(placeOf(arn));

  async function subscriptionOf(arn: string, signal?: AbortSignal): Promise<ObservedSubscription> {
    // SNS lists no ARN until it is confirmed
    if (!arn.startsWith('arn:')) return { attributes: {} };
    const command = new GetSubscriptionAttributesCommand({ SubscriptionArn: arn });
    const { Attributes: attributes = {} } = await ask(
      'sns:GetSubscriptionAttributes',
      arn,
      (options) => clientOf(arn).send(command, options),
      signal,
    );
    return { arn, attributes };
  }

  async function topicOf(topicArn: string, queueArn: string, signal?: AbortSignal): Promise<ObservedTopic> {
    const client = clientOf(topicArn);
    const command = new GetTopicAttributesCommand({ TopicArn: topicArn });
    const { Attributes: attributes = {} } = await ask(
      'sns:GetTopicAttributes',
      topicArn,
      (options) => client.send(command, options),
      signal,
    );
    const found = await listedSubscription(client, topicArn, queueArn, signal);
    return { attributes, subscription: found === undefined ? 'absent' : await orAbsent(subscriptionOf(found, signal)) };
  }

  return {
    /** The topic, and the subscription of the queue to it. */
    topicOf: (topicArn: string, queueArn: string, signal?: AbortSignal) => orAbsent(topicOf(topicArn, queueArn, signal)),
    async setTopic(TopicArn: string, attributes: Attributes, signal?: AbortSignal): Promise<void> {
      for (const [AttributeName, AttributeValue] of Object.entries(attributes)) {
        const command = new SetTopicAttributesCommand({ TopicArn, AttributeName, AttributeValue });
        await ask('sns:SetTopicAttributes', TopicArn, (options) => writerOf(TopicArn).send(command, options), signal);
      }
    },
    async publish(topicArn: string, message: string, signal?: AbortSignal): Promise<void> {
      const command = new PublishCommand({ TopicArn: topicArn, Message: message });
      await ask('sns:Publish', topicArn, (options) => writerOf(topicArn).send(command, options), signal);
    },
    async subscribe(topicArn: string, queueArn: string, attributes: Attributes, signal?: AbortSignal): Promise<void> {
      const command = new SubscribeCommand({
        TopicArn: topicArn,
        Protocol: 'sqs',
        Endpoint: queueArn,
        ReturnSubscriptionArn: true,
        Attributes: attributes,
      });
      await ask('sns:Subscribe', topicArn, (options) => writerOf(topicArn).send(command, options), signal);
    },
    /** It may be gone already. */
    async unsubscribe(arn: string, signal?: AbortSignal): Promise<void> {
      const command = new UnsubscribeCommand({ SubscriptionArn: arn });
      await orAbsent(ask('sns:Unsubscribe', arn, (options) => writerOf(arn).send(command, options), signal));
    },
  };
}

/** The ARN of the queue's subscription, or what SNS says until it is confirmed. */
async function listedSubscription(
  client: SNSClient,
  topicArn: string,
  queueArn: string,
  signal?: AbortSignal,
): Promise<string | undefined> {
  let token: string | undefined;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const command = new ListSubscriptionsByTopicCommand({ TopicArn: topicArn, ...(token !== undefined && { NextToken: token }) });
    const answer = await ask('sns:ListSubscriptionsByTopic', topicArn, (options) => client.send(command, options), signal);
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

function placeOf(arn: string): At {
  const at = parseArn(arn);
  if (at === undefined || at.region === '') throw new FaultError('connect.unavailable', `${arn} is not the ARN of a topic`);
  return at;
}
