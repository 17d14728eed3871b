/**
 * What Tally reads and makes in AWS so that a bucket's events reach the bucket queue. Every function throws `connect.denied` (a
 * RequestError with the missing action) and the faults `connect.unavailable` and `connect.credentials`; functions about buckets also
 * throw S3's faults, such as `bucket.missing`. Each write is sent once. Before repeating one, the caller must read again: someone else
 * may have written in between, or the first attempt may have had its effect.
 */
import type { Clock } from '../../process/clock.ts';
import type { AwsClients } from '../../aws/clients.ts';
import { GetQueueAttributesCommand, GetQueueUrlCommand, ListQueueTagsCommand, SetQueueAttributesCommand } from '@aws-sdk/client-sqs';
import { FaultError } from '../../base/fault.ts';
import { arnOf, parseArn, type Tags, tagList, tagsIn } from '../names.rules.ts';
import type { Attributes, ObservedQueue, ObservedSubscription, ObservedTopic, ObservedRule, Rule, ObservedTrail } from '../plan.rules.ts';
import { queueMissing } from '../shared.rules.ts';
import { regionInQueueUrl, urlBeside } from '../../aws/addresses.rules.ts';
import { isMissing, questionText, s3Fault, type S3Question, type S3Refusal } from '../../aws/faults.ts';
import { ask, orAbsent, type ClientsOf, refusalOf } from './ask.ts';
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
import {
  DeleteRuleCommand,
  DescribeRuleCommand,
  ListRulesCommand,
  ListTagsForResourceCommand,
  ListTargetsByRuleCommand,
  PutRuleCommand,
  PutTargetsCommand,
  RemoveTargetsCommand,
  type PutTargetsResultEntry,
} from '@aws-sdk/client-eventbridge';
import { defined } from '../../base/defined.ts';
import {
  DescribeTrailsCommand,
  GetEventSelectorsCommand,
  GetTrailStatusCommand,
  PutEventSelectorsCommand,
  type PutEventSelectorsCommandInput,
  type Trail,
} from '@aws-sdk/client-cloudtrail';
import { z } from 'zod';
import { parseSelectors, selectorsInput, type Selectors } from '../trail.rules.ts';
import { buffer } from 'node:stream/consumers';
import {
  GetBucketNotificationConfigurationCommand,
  PutBucketNotificationConfigurationCommand,
  type NotificationConfiguration as SdkNotification,
} from '@aws-sdk/client-s3';
import { sdkConfiguration, type NotificationConfiguration } from '../notification.rules.ts';
import { printable } from '../../base/texts.ts';
import { RequestError, type RequestErrorCode } from '../../base/request-error.ts';
import { createAsk, hasBody, isFromS3 } from '../../aws/s3-ask.ts';

interface Dependencies {
  readonly aws: AwsClients;
  /** The bucket queue; undefined if the settings name none. */
  readonly queueUrl: string | undefined;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

export type Provisioner = ReturnType<typeof createProvisioner>;

export function createProvisioner({ aws, queueUrl, clock }: Dependencies) {
  return {
    ...createS3Notification(aws, clock),
    ...createSnsProvision(aws),
    ...createSqsProvision(aws, queueUrl),
    ...createEventsProvision(aws),
    ...createTrailProvision(aws),
  };
}

// ── queues ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** How a queue is reached. */
interface KnownQueue {
  readonly url: string;
  /** For a URL whose host contains none. */
  readonly region?: string | undefined;
}

/** `bucketQueueUrl`: Tally looks up its region's other queues at the same address. */
function createSqsProvision(aws: ClientsOf<'sqsFor' | 'sqsIn'> & Pick<AwsClients, 'region'>, bucketQueueUrl: string | undefined) {
  /** Queues' URLs by ARN: the settings' queues and their dead-letter queues. */
  const urls = new Map<string, string>();
  const regionOf = (queueUrl: string): string => regionInQueueUrl(queueUrl) ?? aws.region;

  async function reach(queueArn: string, signal?: AbortSignal): Promise<KnownQueue> {
    return { url: await urlOf(queueArn, signal), region: parseArn(queueArn)?.region };
  }

  async function urlOf(queueArn: string, signal?: AbortSignal): Promise<string> {
    const known = urls.get(queueArn);
    if (known !== undefined) return known;
    const arn = arnOf(queueArn);
    const near = bucketQueueUrl !== undefined && regionOf(bucketQueueUrl) === arn.region ? bucketQueueUrl : undefined;
    // known, so that the daemon needs no permission to look it up
    if (near?.endsWith(`/${arn.account}/${arn.resource}`) === true) return near;
    const command = new GetQueueUrlCommand({ QueueName: arn.resource, QueueOwnerAWSAccountId: arn.account });
    const client = near === undefined ? aws.sqsIn(arn.region) : aws.sqsFor(near, arn.region);
    const { QueueUrl } = await ask(client, command, queueArn, signal);
    if (QueueUrl === undefined) throw new FaultError('connect.unavailable', `GetQueueUrl ${queueArn}: the answer has no URL`);
    const url = near === undefined ? QueueUrl : urlBeside(QueueUrl, near);
    urls.set(queueArn, url);
    return url;
  }

  /** If the queue does not exist, AWS's own error is thrown. */
  async function readQueue({ url, region }: KnownQueue, signal?: AbortSignal): Promise<ObservedQueue> {
    const command = new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ['All'] });
    const { Attributes: attributes = {} } = await ask(aws.sqsFor(url, region), command, url, signal);
    const { QueueArn: arn } = attributes;
    if (arn === undefined) throw new FaultError('connect.unavailable', `GetQueueAttributes ${url}: the answer has no QueueArn`);
    urls.set(arn, url);
    return { arn, url, attributes };
  }

  return {
    /** The queue with this URL. */
    queueAt: (queueUrl: string, signal?: AbortSignal) =>
      existingQueue(`GetQueueAttributes ${queueUrl}`, queueUrl, readQueue({ url: queueUrl }, signal)),
    /** The tags of the queue with this URL. */
    async queueTags(queueUrl: string, signal?: AbortSignal): Promise<Tags> {
      const asked = ask(aws.sqsFor(queueUrl), new ListQueueTagsCommand({ QueueUrl: queueUrl }), queueUrl, signal);
      return (await existingQueue(`ListQueueTags ${queueUrl}`, queueUrl, asked)).Tags ?? {};
    },
    /** The queue with this ARN, in this account or another. */
    async queueOf(queueArn: string, signal?: AbortSignal): Promise<ObservedQueue | 'absent'> {
      const observed = await orAbsent(reach(queueArn, signal).then((queue) => readQueue(queue, signal)));
      // a recreated queue may have another URL
      if (observed === 'absent') urls.delete(queueArn);
      return observed;
    },
    /** An empty policy removes it. */
    async setQueue(queueArn: string, attributes: Attributes, signal?: AbortSignal): Promise<void> {
      const what = `SetQueueAttributes ${queueArn}`;
      const { url, region } = await existingQueue(what, queueArn, reach(queueArn, signal));
      const command = new SetQueueAttributesCommand({ QueueUrl: url, Attributes: attributes });
      await existingQueue(what, url, ask(aws.once.sqsFor(url, region), command, queueArn, signal));
    },
  };
}

/** Throws `connect.queue-missing` if the queue, by its URL or ARN, does not exist. */
export async function existingQueue<Answer>(what: string, queue: string, answer: Promise<Answer>): Promise<Answer> {
  try {
    return await answer;
  } catch (error) {
    throw isMissing(error) ? queueMissing(what, parseArn(queue)?.region ?? regionInQueueUrl(queue)) : error;
  }
}

// ── topics, and the bucket queue's subscriptions to them ───────────────────────────────────────────────────────────

/** Pages of 100 subscriptions. Tally cannot read a larger topic in time. */
const SUBSCRIPTION_PAGES_MAX = 50;

/** Creates the functions. Requests go to the region in the ARN, so a subscription is made in its topic's region. */
function createSnsProvision({ snsFor, once }: ClientsOf<'snsFor'>) {
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
  for (let page = 0; page < SUBSCRIPTION_PAGES_MAX; page += 1) {
    const command = new ListSubscriptionsByTopicCommand({ TopicArn: topicArn, ...(token !== undefined && { NextToken: token }) });
    const answer = await ask(client, command, topicArn, signal);
    const found = answer.Subscriptions?.find(({ Endpoint, Protocol }) => Endpoint === queueArn && Protocol === 'sqs');
    if (found !== undefined) return found.SubscriptionArn ?? PENDING;
    token = answer.NextToken;
    if (token === undefined || token === '') return undefined;
  }
  throw new FaultError(
    'connect.unavailable',
    `ListSubscriptionsByTopic ${topicArn}: the topic has more than ${SUBSCRIPTION_PAGES_MAX * 100} subscriptions`,
  );
}

const PENDING = 'PendingConfirmation';

// ── rules of EventBridge on the default bus ────────────────────────────────────────────────────────────────────────

/** Pages of 100 rules: more than ten times AWS's quota for a bus. */
const RULE_PAGES_MAX = 50;

/** Where a rule is. */
interface At {
  readonly region: string;
}

/** Creates the functions. One page holds all of a rule's targets, because it has at most five. The SDK's client is loaded with the first rule. */
function createEventsProvision({ eventsFor, once }: ClientsOf<'eventsFor'>) {
  async function ruleOf({ region }: At, name: string, signal?: AbortSignal): Promise<ObservedRule> {
    const client = await eventsFor(region);
    const { Arn, State, EventPattern: pattern } = await ask(client, new DescribeRuleCommand({ Name: name }), name, signal);
    const { Tags } = await ask(client, new ListTagsForResourceCommand({ ResourceARN: Arn }), name, signal);
    const { Targets = [] } = await ask(client, new ListTargetsByRuleCommand({ Rule: name }), name, signal);
    const targets = Targets.map(({ Id = '', Arn: to = '', ...rest }) => ({ ...rest, Id, Arn: to }));
    return { tags: tagsIn(Tags), isEnabled: State !== 'DISABLED', targets, ...defined({ pattern }) };
  }

  return {
    /** The rule on the default bus. */
    ruleOf: (at: At, name: string, signal?: AbortSignal) => orAbsent(ruleOf(at, name, signal)),
    /** How many rules the default bus has. */
    async ruleCount({ region }: At, signal?: AbortSignal): Promise<number> {
      const client = await eventsFor(region);
      let count = 0;
      let NextToken: string | undefined;
      for (let page = 0; page < RULE_PAGES_MAX; page += 1) {
        const answer = await ask(client, new ListRulesCommand({ Limit: 100, ...defined({ NextToken }) }), '', signal);
        count += answer.Rules?.length ?? 0;
        ({ NextToken } = answer);
        if (NextToken === undefined) break;
      }
      return count;
    },
    /** Makes or changes the rule, with its pattern as a whole. The tags are those of a new one: EventBridge ignores them if the rule exists. */
    async putRule({ region }: At, { name, pattern }: Rule, tags: Tags, signal?: AbortSignal): Promise<void> {
      const rule = { Name: name, EventPattern: JSON.stringify(pattern), State: 'ENABLED' } as const;
      await ask(await once.eventsFor(region), new PutRuleCommand({ ...rule, Tags: tagList(tags) }), name, signal);
    },
    async putTarget({ region }: At, { name, target }: Rule, signal?: AbortSignal): Promise<void> {
      const answer = await orAbsent(
        ask(await once.eventsFor(region), new PutTargetsCommand({ Rule: name, Targets: [target] }), name, signal),
      );
      // AWS may not show a new rule yet: the next look finds what is missing
      if (answer === 'absent') return;
      const { FailedEntryCount = 0, FailedEntries = [] } = answer;
      if (FailedEntryCount > 0) throw refusalOf('events:PutTargets', name, failedEntry(FailedEntries[0]));
    },
    /** Removes the rule's target and the rule. Either may be gone already. */
    async removeRule({ region }: At, { name, target }: Rule, signal?: AbortSignal): Promise<void> {
      const client = await once.eventsFor(region);
      const untarget = new RemoveTargetsCommand({ Rule: name, Ids: [target.Id] });
      if ((await orAbsent(ask(client, untarget, name, signal))) === 'absent') return;
      await orAbsent(ask(client, new DeleteRuleCommand({ Name: name }), name, signal));
    },
  };
}

/** EventBridge reports a refused entry in an answer with status 200, by its error code. */
function failedEntry({ ErrorCode, ErrorMessage }: PutTargetsResultEntry = {}): Error {
  return Object.assign(new Error(ErrorMessage ?? 'the target was refused'), { name: ErrorCode ?? 'FailedEntry' });
}

// ── CloudTrail's trails and their selectors ────────────────────────────────────────────────────────────────────────

/** The plan has checked the selectors, so they are sent unchanged. */
const inputSchema = z.custom<Pick<PutEventSelectorsCommandInput, 'EventSelectors' | 'AdvancedEventSelectors'>>(
  (value) => typeof value === 'object',
);

/** Creates the functions. The SDK's client is loaded only when a trail is needed. */
function createTrailProvision({ trailsFor, once }: ClientsOf<'trailsFor'>) {
  async function observe(
    { TrailARN: arn = '', HomeRegion = '', S3BucketName: logBucket }: Trail,
    signal?: AbortSignal,
  ): Promise<ObservedTrail> {
    // only its home region answers completely about a trail
    const client = await trailsFor(HomeRegion);
    const { IsLogging } = await ask(client, new GetTrailStatusCommand({ Name: arn }), arn, signal);
    const selectors = await ask(client, new GetEventSelectorsCommand({ TrailName: arn }), arn, signal);
    return {
      arn,
      homeRegion: HomeRegion,
      isLogging: IsLogging === true,
      selectors: parseSelectors(selectors),
      ...defined({ logBucket }),
    };
  }

  return {
    /** The trail with this ARN. */
    async trailOf(trailArn: string, signal?: AbortSignal): Promise<ObservedTrail | 'absent'> {
      // includes an organisation's trails, which its members' accounts list too
      const describe = new DescribeTrailsCommand({ includeShadowTrails: true });
      const { trailList = [] } = await ask(await trailsFor(arnOf(trailArn).region), describe, '', signal);
      const found = trailList.find(({ TrailARN }) => TrailARN === trailArn);
      return found === undefined ? 'absent' : observe(found, signal);
    },
    /** Replaces all selectors of the trail, in its home region. */
    async putSelectors(trailArn: string, selectors: Selectors, signal?: AbortSignal): Promise<void> {
      const command = new PutEventSelectorsCommand({ TrailName: trailArn, ...inputSchema.parse(selectorsInput(selectors)) });
      await ask(await once.trailsFor(arnOf(trailArn).region), command, trailArn, signal);
    },
  };
}

// ── a bucket's notification configuration ──────────────────────────────────────────────────────────────────────────

/** Replaces a body that was read here, for the SDK to parse. */
const READ_ALREADY = new TextEncoder().encode('<NotificationConfiguration/>');

/** The SDK sends event names unchanged, even if its types do not know them. */
const sdkNotification = z.custom<SdkNotification>((value) => typeof value === 'object');

/** A bucket and the account that must own it. S3 refuses every request if another account does, because a freed name may belong to someone else by now. */
export interface OwnedBucket {
  readonly bucket: string;
  readonly region: string;
  readonly account: string;
}

/** Creates both functions. They need s3:GetBucketNotification and s3:PutBucketNotification. LocalStack ignores ExpectedBucketOwner; AWS answers 403. */
function createS3Notification({ s3For, once }: ClientsOf<'s3For'>, clock: Pick<Clock, 'monotonicMs'>) {
  const { ask: askS3 } = createAsk(s3For, clock);
  const { ask: askS3Once } = createAsk(once.s3For, clock);
  return {
    /** The notification configuration as S3's own XML. */
    async notificationOf({ bucket, region, account }: OwnedBucket, signal?: AbortSignal): Promise<string> {
      const question = { bucket, region, operation: 'GetBucketNotificationConfiguration' };
      const command = new GetBucketNotificationConfigurationCommand({ Bucket: bucket, ExpectedBucketOwner: account });
      let xml: string | undefined;
      const reply = await askS3(question, command, signal, async (response) => {
        if (!hasBody(response)) return;
        xml = (await buffer(response.body)).toString('utf8');
        Object.assign(response, { body: READ_ALREADY });
      });
      if (!reply.ok) throw readFault(question, reply, account);
      if (xml === undefined || !isFromS3(reply.answer)) {
        throw new FaultError('connect.unavailable', `${questionText(question)}: the answer has no body, or does not come from S3`);
      }
      return xml;
    },
    /**
     * Replaces the whole configuration. Throws `connect.overlap` for S3's two errors about overlaps, `connect.destination` if S3 cannot
     * validate a destination, and `connect.busy` if another change of the bucket is under way.
     */
    async putNotification(
      { bucket, region, account }: OwnedBucket,
      configuration: NotificationConfiguration,
      { skipValidation }: { readonly skipValidation: boolean },
      signal?: AbortSignal,
    ): Promise<void> {
      const question = { bucket, region, operation: 'PutBucketNotificationConfiguration' };
      const command = new PutBucketNotificationConfigurationCommand({
        Bucket: bucket,
        ExpectedBucketOwner: account,
        NotificationConfiguration: sdkNotification.parse(sdkConfiguration(configuration)),
        ...(skipValidation && { SkipDestinationValidation: true }),
      });
      const reply = await askS3Once(question, command, signal);
      if (!reply.ok) throw writeFault(question, reply, account);
    },
  };
}

/** The most characters of AWS's text in a reason. */
const TEXT_MAX = 500;

function readFault(question: S3Question, refusal: S3Refusal, account: string): Error {
  return denial(question, refusal, { account, action: 's3:GetBucketNotification' }) ?? s3Fault(question, refusal);
}

/** S3's own texts: the codes of these errors are too general. https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html */
const REFUSALS: readonly (readonly [RequestErrorCode, RegExp])[] = [
  ['connect.overlap', /Configurations overlap|Configuration is ambiguously defined/i],
  ['connect.destination', /Unable to validate the following destination configurations/i],
];

function writeFault(question: S3Question, refusal: S3Refusal, account: string): Error {
  const { error } = refusal;
  const text = error instanceof Error ? error.message : '';
  const [code] = REFUSALS.find(([, pattern]) => pattern.test(text)) ?? [];
  if (code !== undefined) return new RequestError(code, `${questionText(question)}: ${printable(text, TEXT_MAX)}`);
  if (error instanceof Error && error.name === 'OperationAborted') {
    return new RequestError(
      'connect.busy',
      `${questionText(question)}: another change to the bucket is in progress (${printable(text, TEXT_MAX)}): repeat this in a minute`,
    );
  }
  return denial(question, refusal, { account, action: 's3:PutBucketNotification' }) ?? s3Fault(question, refusal);
}

function denial(
  question: S3Question,
  refusal: S3Refusal,
  { account, action }: { readonly account: string; readonly action: string },
): Error | undefined {
  const fault = s3Fault(question, refusal);
  if (fault.code !== 'object.denied') return undefined;
  const reason = `the permission ${action} is missing, or the bucket does not belong to the account ${account}`;
  return new RequestError('connect.denied', `${questionText(question)} is denied: ${reason}`, { action });
}
