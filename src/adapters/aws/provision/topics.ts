/** Reads and makes topics and the subscriptions of the bucket queue. */
import {
  CreateTopicCommand,
  DeleteTopicCommand,
  GetSubscriptionAttributesCommand,
  GetTopicAttributesCommand,
  ListSubscriptionsByTopicCommand,
  ListTagsForResourceCommand,
  SetSubscriptionAttributesCommand,
  SetTopicAttributesCommand,
  SubscribeCommand,
  UnsubscribeCommand,
  type SNSClient,
} from '@aws-sdk/client-sns';
import { z } from 'zod';
import { FaultError } from '../../../domain/fault.ts';
import { RequestError } from '../../../domain/request-error.ts';
import { jsonOf } from '../../../domain/json.ts';
import { parseArn, tagList, tagsIn } from '../../../domain/provisioning/names.ts';
import type { ObservedSubscription } from '../../../domain/provisioning/observed.ts';
import type { At, OwnedSubscription, Provisioner } from '../../../pipeline/ports/provision.ts';
import { ask, isMissing, orAbsent, type ClientsFor } from './refusals.ts';

type TopicFunctions =
  | 'topicOf'
  | 'topicTags'
  | 'createTopic'
  | 'setTopicPolicy'
  | 'subscribe'
  | 'setSubscription'
  | 'unsubscribe'
  | 'deleteTopic';

/** Of 100 subscriptions each. A topic of more is none that Tally can read in time. */
const PAGES_MAX = 50;

const redriveSchema = z.object({ deadLetterTargetArn: z.string() });

export function createSnsProvision({ clientFor, writerFor }: ClientsFor<SNSClient>): Pick<Provisioner, TopicFunctions> {
  const clientOf = (arn: string): SNSClient => clientFor(placeOf(arn));
  const writerOf = (arn: string): SNSClient => writerFor(placeOf(arn));
  const writerOfOwner = ({ arn, owner }: OwnedSubscription): SNSClient => writerFor(withOwner(placeOf(arn), owner));

  /** The subscription of the queue, and how many others there are. */
  async function subscriptionsOf(topicArn: string, queueArn: string, signal?: AbortSignal) {
    const client = clientOf(topicArn);
    let others = 0;
    let found: OwnedSubscription | undefined;
    let token: string | undefined;
    for (let page = 0; page < PAGES_MAX; page += 1) {
      const command = new ListSubscriptionsByTopicCommand({ TopicArn: topicArn, ...(token !== undefined && { NextToken: token }) });
      const answer = await ask('sns:ListSubscriptionsByTopic', topicArn, (options) => client.send(command, options), signal);
      for (const { Endpoint, Protocol, SubscriptionArn: arn = PENDING, Owner: owner } of answer.Subscriptions ?? []) {
        if (Endpoint === queueArn && Protocol === 'sqs') found = { arn, owner };
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

  async function subscriptionOf({ arn, owner }: OwnedSubscription, signal?: AbortSignal): Promise<ObservedSubscription | 'absent'> {
    // SNS lists no ARN until it is confirmed
    if (!arn.startsWith('arn:')) return { isPending: true, isRaw: false };
    const { account: ofTopic } = placeOf(arn);
    const refusals: unknown[] = [];
    // it belongs to who made it. Emulators keep it with its topic
    for (const account of new Set([owner ?? ofTopic, ofTopic])) {
      try {
        return observed({ arn, owner: account }, await attributesOf({ arn, owner: account }, signal));
      } catch (error) {
        if (!isMissing(error) && !(error instanceof RequestError && error.code === 'connect.denied')) throw error;
        refusals.push(error);
      }
    }
    if (refusals.every(isMissing)) return 'absent';
    throw refusals.find((error) => !isMissing(error));
  }

  async function attributesOf(subscription: OwnedSubscription, signal?: AbortSignal): Promise<Readonly<Record<string, string>>> {
    const { arn, owner } = subscription;
    const command = new GetSubscriptionAttributesCommand({ SubscriptionArn: arn });
    const client = clientFor(withOwner(placeOf(arn), owner));
    const { Attributes = {} } = await ask('sns:GetSubscriptionAttributes', arn, (options) => client.send(command, options), signal);
    return Attributes;
  }

  async function topicOf(topicArn: string, queueArn: string, signal?: AbortSignal) {
    const command = new GetTopicAttributesCommand({ TopicArn: topicArn });
    const { Attributes = {} } = await ask(
      'sns:GetTopicAttributes',
      topicArn,
      (options) => clientOf(topicArn).send(command, options),
      signal,
    );
    const { found, others } = await subscriptionsOf(topicArn, queueArn, signal);
    const { Policy, KmsMasterKeyId, FifoTopic } = Attributes;
    const topic = {
      isFifo: FifoTopic === 'true',
      otherSubscriptions: others,
      ...(Policy !== undefined && { policy: Policy }),
      ...(KmsMasterKeyId !== undefined && KmsMasterKeyId !== '' && { kmsKeyId: KmsMasterKeyId }),
    };
    return { topic, subscription: found === undefined ? ('absent' as const) : await subscriptionOf(found, signal) };
  }

  return {
    topicOf: (topicArn, queueArn, signal) => orAbsent(topicOf(topicArn, queueArn, signal)),
    async topicTags(topicArn, signal) {
      const command = new ListTagsForResourceCommand({ ResourceArn: topicArn });
      const client = clientOf(topicArn);
      const found = await orAbsent(ask('sns:ListTagsForResource', topicArn, (options) => client.send(command, options), signal));
      return found === 'absent' ? found : tagsIn(found.Tags);
    },
    async createTopic(topicArn, tags, signal) {
      const command = new CreateTopicCommand({ Name: parseArn(topicArn)?.resource, Tags: tagList(tags) });
      await ask('sns:CreateTopic', topicArn, (options) => writerOf(topicArn).send(command, options), signal);
    },
    async setTopicPolicy(topicArn, policy, signal) {
      const command = new SetTopicAttributesCommand({ TopicArn: topicArn, AttributeName: 'Policy', AttributeValue: policy });
      await ask('sns:SetTopicAttributes', topicArn, (options) => writerOf(topicArn).send(command, options), signal);
    },
    async subscribe({ topicArn, queueArn, deadLetterArn }, signal) {
      const command = new SubscribeCommand({
        TopicArn: topicArn,
        Protocol: 'sqs',
        Endpoint: queueArn,
        ReturnSubscriptionArn: true,
        ...(deadLetterArn !== undefined && { Attributes: { RedrivePolicy: JSON.stringify({ deadLetterTargetArn: deadLetterArn }) } }),
      });
      // SNS asks for no confirmation if the account of the queue subscribes it
      const writer = writerFor(withOwner(placeOf(topicArn), parseArn(queueArn)?.account));
      await ask('sns:Subscribe', topicArn, (options) => writer.send(command, options), signal);
    },
    async setSubscription(subscription, attributes, signal) {
      const { arn } = subscription;
      for (const [AttributeName, AttributeValue] of Object.entries(attributes)) {
        const command = new SetSubscriptionAttributesCommand({ SubscriptionArn: arn, AttributeName, AttributeValue });
        await ask('sns:SetSubscriptionAttributes', arn, (options) => writerOfOwner(subscription).send(command, options), signal);
      }
    },
    async unsubscribe(subscription, signal) {
      const { arn } = subscription;
      const command = new UnsubscribeCommand({ SubscriptionArn: arn });
      await orAbsent(ask('sns:Unsubscribe', arn, (options) => writerOfOwner(subscription).send(command, options), signal));
    },
    async deleteTopic(topicArn, signal) {
      const command = new DeleteTopicCommand({ TopicArn: topicArn });
      await orAbsent(ask('sns:DeleteTopic', topicArn, (options) => writerOf(topicArn).send(command, options), signal));
    },
  };
}

const PENDING = 'PendingConfirmation';

function observed({ arn, owner }: OwnedSubscription, attributes: Readonly<Record<string, string>>): ObservedSubscription {
  const { PendingConfirmation, RawMessageDelivery, FilterPolicy, RedrivePolicy, ConfirmationWasAuthenticated } = attributes;
  const redrive = redriveSchema.safeParse(jsonOf(RedrivePolicy ?? ''));
  return {
    arn,
    ...(owner !== undefined && { owner }),
    isPending: PendingConfirmation === 'true',
    isRaw: RawMessageDelivery === 'true',
    ...(FilterPolicy !== undefined && FilterPolicy !== '' && { filterPolicy: FilterPolicy }),
    ...(redrive.success && { deadLetterArn: redrive.data.deadLetterTargetArn }),
    ...(ConfirmationWasAuthenticated !== undefined && { wasAuthenticated: ConfirmationWasAuthenticated === 'true' }),
  };
}

function placeOf(arn: string): At {
  const at = parseArn(arn);
  if (at === undefined || at.region === '') throw new FaultError('connect.unavailable', `${arn} is not the ARN of a topic`);
  return at;
}

function withOwner({ account, region }: At, owner: string | undefined): At {
  return { account: owner ?? account, region };
}
