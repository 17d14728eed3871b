/**
 * Makes what all buckets share: queues, topics, and the subscriptions of the bucket queue to them. Every function throws
 * `connect.denied` (a RequestError with the missing action) and the faults `connect.unavailable` and `connect.credentials`.
 */
import { CreateTopicCommand, ListTagsForResourceCommand, SetSubscriptionAttributesCommand, TagResourceCommand } from '@aws-sdk/client-sns';
import { CreateQueueCommand, TagQueueCommand } from '@aws-sdk/client-sqs';
import { GetCallerIdentityCommand } from '@aws-sdk/client-sts';
import type { AwsClients } from '../../aws/clients.ts';
import { FaultError } from '../../base/fault.ts';
import { arnOf, tagList, tagsIn, type Tags } from '../names.rules.ts';
import type { Attributes } from '../plan.rules.ts';
import { attributeTexts, confirmed, type FoundPart, type SharedPart } from '../shared.rules.ts';
import { ask, orAbsent } from './ask.ts';
import { type Provisioner, existingQueue } from './provisioner.ts';

/** Attributes and tags to set. All others stay. */
interface Settings {
  readonly attributes: Attributes;
  readonly tags: Tags;
}

export type SharedParts = ReturnType<typeof createSharedParts>;

export function createSharedParts(aws: AwsClients, parts: Provisioner) {
  async function tagsOfTopic(topicArn: string, signal?: AbortSignal): Promise<Tags> {
    const command = new ListTagsForResourceCommand({ ResourceArn: topicArn });
    return tagsIn((await ask(aws.snsFor(arnOf(topicArn).region), command, topicArn, signal)).Tags);
  }

  async function changeQueue(arn: string, url: string, { attributes, tags }: Settings, signal?: AbortSignal): Promise<void> {
    if (Object.keys(tags).length > 0) {
      const command = new TagQueueCommand({ QueueUrl: url, Tags: tags });
      await existingQueue(`TagQueue ${arn}`, arn, ask(aws.once.sqsFor(url, arnOf(arn).region), command, arn, signal));
    }
    if (Object.keys(attributes).length > 0) await parts.setQueue(arn, attributes, signal);
  }

  async function changeTopic(arn: string, { attributes, tags }: Settings, signal?: AbortSignal): Promise<void> {
    const command = new TagResourceCommand({ ResourceArn: arn, Tags: tagList(tags) });
    if (Object.keys(tags).length > 0) await ask(aws.once.snsFor(arnOf(arn).region), command, arn, signal);
    await parts.setTopic(arn, attributes, signal);
  }

  async function changeSubscription(topicArn: string, queueArn: string, attributes: Attributes, signal?: AbortSignal): Promise<void> {
    const SubscriptionArn = confirmed(await parts.topicOf(topicArn, queueArn, signal))?.arn ?? topicArn;
    for (const [AttributeName, AttributeValue] of Object.entries(attributes)) {
      const command = new SetSubscriptionAttributesCommand({ SubscriptionArn, AttributeName, AttributeValue });
      await ask(aws.once.snsFor(arnOf(topicArn).region), command, SubscriptionArn, signal);
    }
  }

  return {
    queueTags: (queueUrl: string, signal?: AbortSignal) => parts.queueTags(queueUrl, signal),
    /** The account of the credentials. */
    async account(signal?: AbortSignal): Promise<string> {
      const { Account } = await ask(await aws.identityIn(aws.region), new GetCallerIdentityCommand({}), '', signal);
      if (Account === undefined) throw new FaultError('connect.unavailable', 'GetCallerIdentity: the answer names no account');
      return Account;
    },
    /** The part with all its attributes. A subscription that is not confirmed does not exist. */
    async read({ kind, arn, endpoint = '' }: SharedPart, signal?: AbortSignal): Promise<FoundPart | 'absent'> {
      if (kind === 'queue') {
        const queue = await parts.queueOf(arn, signal);
        return queue === 'absent' ? queue : { ...queue, tags: await parts.queueTags(queue.url, signal) };
      }
      const topic = await parts.topicOf(arn, endpoint, signal);
      if (kind === 'subscription') {
        const subscription = confirmed(topic);
        return subscription === undefined ? 'absent' : { attributes: subscription.attributes, tags: {} };
      }
      const tags = topic === 'absent' ? topic : await orAbsent(tagsOfTopic(arn, signal));
      return topic === 'absent' || tags === 'absent' ? 'absent' : { attributes: topic.attributes, tags };
    },
    async create(part: SharedPart, signal?: AbortSignal): Promise<void> {
      const { kind, arn, endpoint = '', tags } = part;
      const { region, resource: Name } = arnOf(arn);
      const Attributes = attributeTexts(part);
      switch (kind) {
        case 'queue':
          // SQS refuses it if a queue with this name exists and has other attributes
          return void (await ask(aws.once.sqsIn(region), new CreateQueueCommand({ QueueName: Name, Attributes, tags }), Name, signal));
        case 'topic':
          return void (await ask(aws.once.snsFor(region), new CreateTopicCommand({ Name, Attributes, Tags: tagList(tags) }), arn, signal));
        case 'subscription':
          return parts.subscribe(arn, endpoint, Attributes, signal);
      }
    },
    /** Sets these of a part that exists. */
    change({ kind, arn, endpoint = '', url = '' }: SharedPart & Pick<FoundPart, 'url'>, to: Settings, signal?: AbortSignal): Promise<void> {
      switch (kind) {
        case 'queue':
          return changeQueue(arn, url, to, signal);
        case 'topic':
          return changeTopic(arn, to, signal);
        case 'subscription':
          return changeSubscription(arn, endpoint, to.attributes, signal);
      }
    },
  };
}
