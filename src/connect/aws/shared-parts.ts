/**
 * Reads and makes what all buckets share: queues, topics, and the subscriptions of the bucket queue to them. Every function throws
 * `connect.denied` (a RequestError with the missing action) and the faults `connect.unavailable` and `connect.credentials`.
 */
import {
  CreateTopicCommand,
  ListTagsForResourceCommand,
  SetSubscriptionAttributesCommand,
  TagResourceCommand,
  type SNSClient,
} from '@aws-sdk/client-sns';
import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  ListQueueTagsCommand,
  SetQueueAttributesCommand,
  TagQueueCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { GetCallerIdentityCommand, type STSClient } from '@aws-sdk/client-sts';
import { FaultError } from '../../base/fault.ts';
import { parseArn, tagList, tagsIn, type Arn, type Tags } from '../names.rules.ts';
import { attributeTexts, type FoundPart, type SharedPart } from '../shared.rules.ts';
import type { Provisioner } from './provisioner.ts';
import { ask, orAbsent } from './refusals.ts';
import { setTopic, subscribe, subscriptionAttributes, subscriptionsOf, topicAttributes } from './topics.ts';

interface Dependencies {
  readonly reads: Pick<Provisioner, 'queueTags'>;
  readonly sqsIn: (region: string) => SQSClient;
  readonly snsFor: (region: string) => SNSClient;
  readonly identity: () => Promise<STSClient>;
}

/** Attributes and tags to set. All others stay. */
interface Settings {
  readonly attributes: Readonly<Record<string, string>>;
  readonly tags: Tags;
}

/** What can be done with one kind of part. */
interface Kind {
  /** The part with all its attributes. A subscription that is not confirmed does not exist. */
  readonly read: (part: SharedPart, signal?: AbortSignal) => Promise<FoundPart>;
  /** Makes a part with its tags. SQS refuses a queue if one with this name exists and has other attributes. */
  readonly create: (part: SharedPart, signal?: AbortSignal) => Promise<void>;
  readonly change: (part: SharedPart, to: Settings, signal?: AbortSignal) => Promise<void>;
}

export type SharedParts = ReturnType<typeof createSharedParts>;

export function createSharedParts({ sqsIn, snsFor, identity, reads }: Dependencies) {
  const kinds: Readonly<Record<SharedPart['kind'], Kind>> = {
    queue: queues(sqsIn),
    topic: topics(snsFor),
    subscription: subscriptions(snsFor),
  };
  return {
    queueTags: (queueUrl: string, signal?: AbortSignal) => reads.queueTags(queueUrl, signal),
    /** The account of the credentials. */
    async account(signal?: AbortSignal): Promise<string> {
      const client = await identity();
      const command = new GetCallerIdentityCommand({});
      const { Account } = await ask('sts:GetCallerIdentity', '', (options) => client.send(command, options), signal);
      if (Account === undefined) throw new FaultError('connect.unavailable', 'GetCallerIdentity: the answer names no account');
      return Account;
    },
    read: (part: SharedPart, signal?: AbortSignal) => orAbsent(kinds[part.kind].read(part, signal)),
    create: (part: SharedPart, signal?: AbortSignal) => kinds[part.kind].create(part, signal),
    change: (part: SharedPart, to: Settings, signal?: AbortSignal) => kinds[part.kind].change(part, to, signal),
  };
}

function queues(sqsIn: Dependencies['sqsIn']): Kind {
  async function urlOf({ resource, region }: Arn, signal?: AbortSignal): Promise<string> {
    const find = new GetQueueUrlCommand({ QueueName: resource });
    const { QueueUrl = '' } = await ask('sqs:GetQueueUrl', resource, (options) => sqsIn(region).send(find, options), signal);
    return QueueUrl;
  }

  return {
    async read(part, signal) {
      const arn = arnOf(part);
      const [sqs, url] = [sqsIn(arn.region), await urlOf(arn, signal)];
      const read = new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ['All'] });
      const { Attributes = {} } = await ask('sqs:GetQueueAttributes', url, (options) => sqs.send(read, options), signal);
      const list = new ListQueueTagsCommand({ QueueUrl: url });
      const { Tags = {} } = await ask('sqs:ListQueueTags', url, (options) => sqs.send(list, options), signal);
      return { url, attributes: Attributes, tags: Tags };
    },
    async create(part, signal) {
      const { resource, region } = arnOf(part);
      const command = new CreateQueueCommand({ QueueName: resource, Attributes: attributeTexts(part), tags: { ...part.tags } });
      await ask('sqs:CreateQueue', resource, (options) => sqsIn(region).send(command, options), signal);
    },
    async change(part, { attributes, tags }, signal) {
      const arn = arnOf(part);
      const [sqs, QueueUrl] = [sqsIn(arn.region), await urlOf(arn, signal)];
      if (Object.keys(tags).length > 0) {
        const tag = new TagQueueCommand({ QueueUrl, Tags: { ...tags } });
        await ask('sqs:TagQueue', QueueUrl, (options) => sqs.send(tag, options), signal);
      }
      if (Object.keys(attributes).length === 0) return;
      const command = new SetQueueAttributesCommand({ QueueUrl, Attributes: attributes });
      await ask('sqs:SetQueueAttributes', QueueUrl, (options) => sqs.send(command, options), signal);
    },
  };
}

function topics(snsFor: Dependencies['snsFor']): Kind {
  return {
    async read(part, signal) {
      const [{ arn }, sns] = [part, snsFor(arnOf(part).region)];
      const attributes = await topicAttributes(sns, arn, signal);
      const list = new ListTagsForResourceCommand({ ResourceArn: arn });
      const { Tags } = await ask('sns:ListTagsForResource', arn, (options) => sns.send(list, options), signal);
      return { attributes, tags: tagsIn(Tags) };
    },
    async create(part, signal) {
      const { resource, region } = arnOf(part);
      const command = new CreateTopicCommand({ Name: resource, Attributes: attributeTexts(part), Tags: tagList(part.tags) });
      await ask('sns:CreateTopic', part.arn, (options) => snsFor(region).send(command, options), signal);
    },
    async change(part, { attributes, tags }, signal) {
      const [{ arn }, sns] = [part, snsFor(arnOf(part).region)];
      if (Object.keys(tags).length > 0) {
        const tag = new TagResourceCommand({ ResourceArn: arn, Tags: tagList(tags) });
        await ask('sns:TagResource', arn, (options) => sns.send(tag, options), signal);
      }
      await setTopic(sns, arn, attributes, signal);
    },
  };
}

function subscriptions(snsFor: Dependencies['snsFor']): Kind {
  /** Undefined: there is none, or it is not confirmed. */
  async function arnOfSubscription(part: SharedPart, signal?: AbortSignal): Promise<string | undefined> {
    const { found } = await subscriptionsOf(snsFor(arnOf(part).region), part.arn, part.endpoint ?? '', signal);
    return found?.startsWith('arn:') === true ? found : undefined;
  }

  return {
    async read(part, signal) {
      const SubscriptionArn = await arnOfSubscription(part, signal);
      if (SubscriptionArn === undefined) throw Object.assign(new Error('there is no subscription'), { name: 'NotFound' });
      return { attributes: await subscriptionAttributes(snsFor(arnOf(part).region), SubscriptionArn, signal), tags: {} };
    },
    create(part, signal) {
      const { arn: topicArn, endpoint: queueArn = '' } = part;
      return subscribe(snsFor(arnOf(part).region), { topicArn, queueArn, attributes: attributeTexts(part) }, signal);
    },
    async change(part, { attributes }, signal) {
      const SubscriptionArn = (await arnOfSubscription(part, signal)) ?? part.arn;
      for (const [AttributeName, AttributeValue] of Object.entries(attributes)) {
        const command = new SetSubscriptionAttributesCommand({ SubscriptionArn, AttributeName, AttributeValue });
        const sns = snsFor(arnOf(part).region);
        await ask('sns:SetSubscriptionAttributes', SubscriptionArn, (options) => sns.send(command, options), signal);
      }
    },
  };
}

function arnOf({ arn }: SharedPart): Arn {
  const parsed = parseArn(arn);
  if (parsed === undefined) throw new FaultError('connect.unavailable', `${arn} is not an ARN`);
  return parsed;
}
