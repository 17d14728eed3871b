/** Reads and makes topics, and the subscriptions of the bucket queue to them. */
import {
  CreateTopicCommand,
  GetSubscriptionAttributesCommand,
  GetTopicAttributesCommand,
  ListSubscriptionsByTopicCommand,
  ListTagsForResourceCommand,
  PublishCommand,
  SetSubscriptionAttributesCommand,
  SetTopicAttributesCommand,
  SubscribeCommand,
  TagResourceCommand,
  UnsubscribeCommand,
  type SNSClient,
} from '@aws-sdk/client-sns';
import { FaultError } from '../../base/fault.ts';
import { arnOf, tagList, tagsIn, type Tags } from '../names.rules.ts';
import type { Attributes, ObservedSubscription, ObservedTopic } from '../plan.rules.ts';
import { ask, orAbsent, type ClientsFor } from './ask.ts';

/** Pages of 100 subscriptions. Tally cannot read a larger topic in time. */
const PAGES_MAX = 50;

/** Creates the functions. Requests go to the region in the ARN, so a subscription is made in its topic's region. */
export function createSnsProvision({ clientFor, writerFor }: ClientsFor<SNSClient>) {
  const clientOf = (arn: string): SNSClient => clientFor(arnOf(arn));
  const writerOf = (arn: string): SNSClient => writerFor(arnOf(arn));

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
    async topicTags(topicArn: string, signal?: AbortSignal): Promise<Tags> {
      const command = new ListTagsForResourceCommand({ ResourceArn: topicArn });
      return tagsIn((await ask(clientOf(topicArn), command, topicArn, signal)).Tags);
    },
    async createTopic(topicArn: string, attributes: Attributes, tags: Tags, signal?: AbortSignal): Promise<void> {
      const command = new CreateTopicCommand({ Name: arnOf(topicArn).resource, Attributes: attributes, Tags: tagList(tags) });
      await ask(writerOf(topicArn), command, topicArn, signal);
    },
    async setTopic(TopicArn: string, attributes: Attributes, signal?: AbortSignal): Promise<void> {
      for (const [AttributeName, AttributeValue] of Object.entries(attributes)) {
        const command = new SetTopicAttributesCommand({ TopicArn, AttributeName, AttributeValue });
        await ask(writerOf(TopicArn), command, TopicArn, signal);
      }
    },
    async tagTopic(topicArn: string, tags: Tags, signal?: AbortSignal): Promise<void> {
      await ask(writerOf(topicArn), new TagResourceCommand({ ResourceArn: topicArn, Tags: tagList(tags) }), topicArn, signal);
    },
    async publish(topicArn: string, message: string, signal?: AbortSignal): Promise<void> {
      await ask(writerOf(topicArn), new PublishCommand({ TopicArn: topicArn, Message: message }), topicArn, signal);
    },
    async subscribe(topicArn: string, queueArn: string, attributes: Attributes, signal?: AbortSignal): Promise<void> {
      const to = { TopicArn: topicArn, Protocol: 'sqs', Endpoint: queueArn, ReturnSubscriptionArn: true };
      await ask(writerOf(topicArn), new SubscribeCommand({ ...to, Attributes: attributes }), topicArn, signal);
    },
    async setSubscription(SubscriptionArn: string, attributes: Attributes, signal?: AbortSignal): Promise<void> {
      for (const [AttributeName, AttributeValue] of Object.entries(attributes)) {
        const command = new SetSubscriptionAttributesCommand({ SubscriptionArn, AttributeName, AttributeValue });
        await ask(writerOf(SubscriptionArn), command, SubscriptionArn, signal);
      }
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
