/**
 * Other teams beside Tally: a bucket with everything that they may have made for it, and what AWS answers about all of that.
 * Every read is by the SDK's own clients, without code of Tally's.
 */
import { randomBytes } from 'node:crypto';
import {
  DescribeRuleCommand,
  EventBridgeClient,
  ListRuleNamesByTargetCommand,
  ListRulesCommand,
  ListTagsForResourceCommand as ListRuleTagsCommand,
  ListTargetsByRuleCommand,
} from '@aws-sdk/client-eventbridge';
import {
  GetBucketPolicyCommand,
  GetBucketTaggingCommand,
  GetBucketVersioningCommand,
  PutBucketNotificationConfigurationCommand,
  PutBucketPolicyCommand,
  PutBucketTaggingCommand,
} from '@aws-sdk/client-s3';
import {
  GetSubscriptionAttributesCommand,
  GetTopicAttributesCommand,
  ListSubscriptionsByTopicCommand,
  ListSubscriptionsCommand,
  ListTagsForResourceCommand as ListTopicTagsCommand,
  ListTopicsCommand,
  TagResourceCommand,
} from '@aws-sdk/client-sns';
import {
  GetQueueAttributesCommand,
  ListQueuesCommand,
  ListQueueTagsCommand,
  SetQueueAttributesCommand,
  TagQueueCommand,
} from '@aws-sdk/client-sqs';
import type { TestAws, TestQueue } from '../servers/aws.ts';

export type Bystanders = Awaited<ReturnType<typeof createBystanders>>;

const TAGS = [{ Key: 'team', Value: 'media' }];

/** Makes a bucket that a queue and EventBridge get events of, and statements of theirs in the policies of Tally's queues. */
export async function createBystanders(
  aws: TestAws,
  tally: { readonly queue: TestQueue; readonly deadLetters: TestQueue },
  { sendsToTopic }: { readonly sendsToTopic: boolean },
) {
  const events = new EventBridgeClient({ endpoint: aws.endpoint, region: aws.region, credentials: aws.credentials });
  const [bucket, queue, topicArn] = [await aws.createBucket(), await aws.createQueue(), await aws.createTopic()];
  await aws.subscribe(topicArn, queue);
  await aws.sns.send(new TagResourceCommand({ ResourceArn: topicArn, Tags: TAGS }));
  await aws.createRule({ pattern: { source: ['aws.s3'], detail: { bucket: { name: [bucket] } } }, targetArn: queue.arn });
  for (const { url, arn } of [queue, tally.queue, tally.deadLetters]) {
    const theirs = { Sid: 'Theirs', Effect: 'Allow', Principal: { AWS: '*' }, Action: 'sqs:SendMessage', Resource: arn };
    const { Attributes = {} } = await aws.sqs.send(new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ['Policy'] }));
    const present = JSON.parse(Attributes['Policy'] || '{"Version":"2012-10-17","Statement":[]}') as { Statement: object[] };
    const Policy = JSON.stringify({ ...present, Statement: [theirs, ...present.Statement] });
    await aws.sqs.send(new SetQueueAttributesCommand({ QueueUrl: url, Attributes: { Policy } }));
    await aws.sqs.send(new TagQueueCommand({ QueueUrl: url, Tags: { team: 'media' } }));
  }
  await aws.s3.send(new PutBucketTaggingCommand({ Bucket: bucket, Tagging: { TagSet: TAGS } }));
  const Resource = `arn:aws:s3:::${bucket}/public/*`;
  const read = { Sid: 'Theirs', Effect: 'Allow', Principal: { AWS: '*' }, Action: 's3:GetObject', Resource };
  const Policy = JSON.stringify({ Version: '2012-10-17', Id: 'media', Statement: [read] });
  const Filter = { Key: { FilterRules: [{ Name: 'prefix' as const, Value: 'public/' }] } };
  await aws.s3.send(new PutBucketPolicyCommand({ Bucket: bucket, Policy }));
  await aws.s3.send(
    new PutBucketNotificationConfigurationCommand({
      Bucket: bucket,
      NotificationConfiguration: {
        ...(sendsToTopic && {
          TopicConfigurations: [{ Id: 'all', TopicArn: topicArn, Events: ['s3:ObjectCreated:*', 's3:ObjectRemoved:*'] }],
        }),
        QueueConfigurations: [
          { Id: 'tags', QueueArn: queue.arn, Events: ['s3:ObjectTagging:*'], Filter },
          {
            Id: `scan-${randomBytes(3).toString('hex')}`,
            QueueArn: queue.arn,
            Events: ['s3:ObjectRestore:Completed', 's3:ReducedRedundancyLostObject'],
          },
        ],
        EventBridgeConfiguration: {},
      },
    }),
  );

  return {
    bucket,
    /** Gets the notifications of tags, everything from their topic, and what their rule matches. */
    queue,
    /** Their topic: with `sendsToTopic` the bucket sends all changes to it. */
    topicArn,
    /** Everything of theirs as AWS answers it, for comparison. */
    async snapshot() {
      const { RuleNames: rules = [] } = await events.send(new ListRuleNamesByTargetCommand({ TargetArn: queue.arn }));
      return {
        bucket: await bucketOf(aws, bucket),
        queues: await Promise.all([queue, tally.queue, tally.deadLetters].map(({ url }) => queueOf(aws, url))),
        topic: await topicOf(aws, topicArn),
        rules: await Promise.all(rules.map((name) => ruleOf(events, name))),
      };
    },
    close: () => events.destroy(),
  };
}

/** Everything in AWS with this name in its own, and whatever leads to this queue. */
export async function tracesOf(aws: TestAws, name: string, queue: TestQueue): Promise<readonly string[]> {
  const events = new EventBridgeClient({ endpoint: aws.endpoint, region: aws.region, credentials: aws.credentials });
  try {
    const topics = await every(async (NextToken) => aws.sns.send(new ListTopicsCommand({ NextToken })), 'Topics');
    const subscriptions = await every(async (NextToken) => aws.sns.send(new ListSubscriptionsCommand({ NextToken })), 'Subscriptions');
    const rules = await every(async (NextToken) => events.send(new ListRulesCommand({ NextToken })), 'Rules');
    const { RuleNames = [] } = await events.send(new ListRuleNamesByTargetCommand({ TargetArn: queue.arn }));
    const { QueueUrls = [] } = await aws.sqs.send(new ListQueuesCommand({ QueueNamePrefix: name }));
    return [
      ...QueueUrls,
      ...topics.map(({ TopicArn = '' }) => TopicArn).filter((arn) => arn.includes(name)),
      ...subscriptions.filter(({ Endpoint, TopicArn = '' }) => Endpoint === queue.arn || TopicArn.includes(name)).map(said),
      ...rules.filter(({ Name = '' }) => Name.includes(name)).map(said),
      ...RuleNames,
    ];
  } finally {
    events.destroy();
  }
}

function said(value: unknown): string {
  return JSON.stringify(value);
}

/** All pages of a list. */
async function every<Name extends string, Item>(
  page: (
    token: string | undefined,
  ) => Promise<{ readonly [name in Name]?: Item[] | undefined } & { readonly NextToken?: string | undefined }>,
  name: Name,
): Promise<readonly Item[]> {
  const items: Item[] = [];
  let token: string | undefined;
  do {
    const answer = await page(token);
    items.push(...(answer[name] ?? []));
    token = answer.NextToken;
  } while (token !== undefined && token !== '');
  return items;
}

async function bucketOf({ s3, endpoint }: TestAws, bucket: string): Promise<unknown> {
  // the document itself: the SDK's reader leaves out what it does not know
  const notification = await (await fetch(`${endpoint}/${bucket}?notification`)).text();
  const { Policy } = await s3.send(new GetBucketPolicyCommand({ Bucket: bucket }));
  const { TagSet } = await s3.send(new GetBucketTaggingCommand({ Bucket: bucket }));
  const { Status } = await s3.send(new GetBucketVersioningCommand({ Bucket: bucket }));
  return { notification, Policy, TagSet, Status };
}

async function queueOf({ sqs }: TestAws, url: string): Promise<unknown> {
  const { Attributes = {} } = await sqs.send(new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ['All'] }));
  const { Tags } = await sqs.send(new ListQueueTagsCommand({ QueueUrl: url }));
  // what messages and writes of equal values change
  const lasting = Object.entries(Attributes).filter(([name]) => !/^ApproximateNumberOf|^LastModified/.test(name));
  return { ...parsed(Object.fromEntries(lasting)), Tags };
}

async function topicOf({ sns }: TestAws, topicArn: string): Promise<unknown> {
  const { Attributes = {} } = await sns.send(new GetTopicAttributesCommand({ TopicArn: topicArn }));
  const { Tags } = await sns.send(new ListTopicTagsCommand({ ResourceArn: topicArn }));
  const { Subscriptions = [] } = await sns.send(new ListSubscriptionsByTopicCommand({ TopicArn: topicArn }));
  const subscriptions = [];
  for (const { SubscriptionArn } of Subscriptions) {
    const { Attributes: attributes = {} } = await sns.send(new GetSubscriptionAttributesCommand({ SubscriptionArn }));
    subscriptions.push(attributes);
  }
  // LocalStack counts subscriptions that were deleted; they are listed beside it
  const { SubscriptionsDeleted: _, ...rest } = Attributes;
  return { ...parsed(rest), Tags, subscriptions };
}

async function ruleOf(events: EventBridgeClient, name: string): Promise<unknown> {
  const { $metadata: _, ...rule } = await events.send(new DescribeRuleCommand({ Name: name }));
  const { Targets } = await events.send(new ListTargetsByRuleCommand({ Rule: name }));
  const { Tags } = await events.send(new ListRuleTagsCommand({ ResourceARN: rule.Arn }));
  return { ...rule, Targets, Tags };
}

/** The documents among some attributes as values, since their spaces mean nothing. */
function parsed(attributes: Readonly<Record<string, string>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(attributes).map(([name, text]) => [name, text.startsWith('{') ? (JSON.parse(text) as unknown) : text]),
  );
}
