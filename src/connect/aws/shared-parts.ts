/**
 * Makes what all buckets share: queues, topics, and the subscriptions of the bucket queue to them. Every function throws
 * `connect.denied` (a RequestError with the missing action) and the faults `connect.unavailable` and `connect.credentials`.
 */
import {
  CreateTopicCommand,
  ListTagsForResourceCommand,
  SetSubscriptionAttributesCommand,
  TagResourceCommand,
  type SNSClient,
} from '@aws-sdk/client-sns';
import { CreateQueueCommand, TagQueueCommand, type SQSClient } from '@aws-sdk/client-sqs';
import { GetCallerIdentityCommand, type STSClient } from '@aws-sdk/client-sts';
import { FaultError } from '../../base/fault.ts';
import { parseArn, tagList, tagsIn, type Arn, type Tags } from '../names.rules.ts';
import type { Attributes } from '../plan.rules.ts';
import { attributeTexts, confirmed, type FoundPart, type SharedPart } from '../shared.rules.ts';
import type { Provisioner } from './provisioner.ts';
import { ask, orAbsent } from './refusals.ts';

interface Dependencies {
  readonly parts: Pick<Provisioner, 'queueOf' | 'queueTags' | 'setQueue' | 'topicOf' | 'setTopic' | 'subscribe'>;
  readonly sqsIn: (region: string) => SQSClient;
  readonly snsFor: (region: string) => SNSClient;
  readonly identity: () => Promise<STSClient>;
}

/** Attributes and tags to set. All others stay. */
interface Settings {
  readonly attributes: Attributes;
  readonly tags: Tags;
}

/** What can be done with one kind of part. */
interface Kind {
  /** The part with all its attributes. A subscription that is not confirmed does not exist. */
  readonly read: (part: SharedPart, signal?: AbortSignal) => Promise<FoundPart | 'absent'>;
  /** Makes a part with its tags. SQS refuses a queue if one with this name exists and has other attributes. */
  readonly create: (part: SharedPart, signal?: AbortSignal) => Promise<void>;
  readonly change: (part: SharedPart, to: Settings, signal?: AbortSignal) => Promise<void>;
}

export type SharedParts = ReturnType<typeof createSharedParts>;

export function createSharedParts({ parts, sqsIn, snsFor, identity }: Dependencies) {
  const queue: Kind = {
    async read({ arn }, signal) {
      const found = await parts.queueOf(arn, signal);
      return found === 'absent' ? found : { ...found, tags: await parts.queueTags(found.url, signal) };
    },
    async create(part, signal) {
      const { resource, region } = arnOf(part);
      const command = new CreateQueueCommand({ QueueName: resource, Attributes: attributeTexts(part), tags: { ...part.tags } });
      await ask('sqs:CreateQueue', resource, (options) => sqsIn(region).send(command, options), signal);
    },
    async change(part, { attributes, tags }, signal) {
      const found = await parts.queueOf(part.arn, signal);
      if (found !== 'absent' && Object.keys(tags).length > 0) {
        const tag = new TagQueueCommand({ QueueUrl: found.url, Tags: { ...tags } });
        await ask('sqs:TagQueue', found.url, (options) => sqsIn(arnOf(part).region).send(tag, options), signal);
      }
      if (Object.keys(attributes).length > 0) await parts.setQueue(part.arn, attributes, signal);
    },
  };

  const topic: Kind = {
    async read(part, signal) {
      const found = await parts.topicOf(part.arn, '', signal);
      if (found === 'absent') return found;
      const list = new ListTagsForResourceCommand({ ResourceArn: part.arn });
      const sent = ask('sns:ListTagsForResource', part.arn, (options) => snsFor(arnOf(part).region).send(list, options), signal);
      const listed = await orAbsent(sent);
      return listed === 'absent' ? listed : { attributes: found.attributes, tags: tagsIn(listed.Tags) };
    },
    async create(part, signal) {
      const { resource, region } = arnOf(part);
      const command = new CreateTopicCommand({ Name: resource, Attributes: attributeTexts(part), Tags: tagList(part.tags) });
      await ask('sns:CreateTopic', part.arn, (options) => snsFor(region).send(command, options), signal);
    },
    async change(part, { attributes, tags }, signal) {
      if (Object.keys(tags).length > 0) {
        const tag = new TagResourceCommand({ ResourceArn: part.arn, Tags: tagList(tags) });
        await ask('sns:TagResource', part.arn, (options) => snsFor(arnOf(part).region).send(tag, options), signal);
      }
      await parts.setTopic(part.arn, attributes, signal);
    },
  };

  const subscription: Kind = {
    async read(part, signal) {
      const found = confirmed(await parts.topicOf(part.arn, part.endpoint ?? '', signal));
      return found === undefined ? 'absent' : { attributes: found.attributes, tags: {} };
    },
    create: (part, signal) => parts.subscribe(part.arn, part.endpoint ?? '', attributeTexts(part), signal),
    async change(part, { attributes }, signal) {
      const { arn: SubscriptionArn = part.arn } = confirmed(await parts.topicOf(part.arn, part.endpoint ?? '', signal)) ?? {};
      for (const [AttributeName, AttributeValue] of Object.entries(attributes)) {
        const command = new SetSubscriptionAttributesCommand({ SubscriptionArn, AttributeName, AttributeValue });
        const sns = snsFor(arnOf(part).region);
        await ask('sns:SetSubscriptionAttributes', SubscriptionArn, (options) => sns.send(command, options), signal);
      }
    },
  };

  const kinds: Readonly<Record<SharedPart['kind'], Kind>> = { queue, topic, subscription };
  return {
    queueTags: parts.queueTags,
    /** The account of the credentials. */
    async account(signal?: AbortSignal): Promise<string> {
      const client = await identity();
      const command = new GetCallerIdentityCommand({});
      const { Account } = await ask('sts:GetCallerIdentity', '', (options) => client.send(command, options), signal);
      if (Account === undefined) throw new FaultError('connect.unavailable', 'GetCallerIdentity: the answer names no account');
      return Account;
    },
    read: (part: SharedPart, signal?: AbortSignal) => kinds[part.kind].read(part, signal),
    create: (part: SharedPart, signal?: AbortSignal) => kinds[part.kind].create(part, signal),
    change: (part: SharedPart, to: Settings, signal?: AbortSignal) => kinds[part.kind].change(part, to, signal),
  };
}

function arnOf({ arn }: SharedPart): Arn {
  const parsed = parseArn(arn);
  if (parsed === undefined) throw new FaultError('connect.unavailable', `${arn} is not an ARN`);
  return parsed;
}
