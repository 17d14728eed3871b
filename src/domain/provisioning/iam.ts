/** The permissions that Tally needs, in one table: which call, for what, and who needs it. */
import type { BucketSource } from '../bucket.ts';

export const iamRoles = ['daemon', 'connecting', 'queues'] as const;
/** `daemon`: the process that serves, with the reads of the doctor. `connecting`: who plans, applies and removes. `queues`: who makes the queues. */
export type IamRole = (typeof iamRoles)[number];

/** What a statement is about. */
export type Resource =
  | 'queues'
  | 'new-queues'
  | 'letter-queues'
  | 'topics'
  | 'own-topics'
  | 'named-topics'
  | 'bucket'
  | 'objects'
  | 'rules'
  | 'all-rules'
  | 'all-trails'
  | 'trails'
  | 'own-trail'
  | 'role'
  | 'key'
  | 'key-policies';

export interface Permission {
  readonly sid: string;
  /** What it is for, as the pages say it. */
  readonly why: string;
  readonly roles: readonly IamRole[];
  /** Absent: every source. */
  readonly sources?: readonly BucketSource[];
  readonly actions: readonly string[];
  readonly resource: Resource;
}

const BOTH = ['daemon', 'connecting'] as const;
const THROUGH_TOPICS = ['notification', 'topic', 'routed'] as const;
const BY_RULES = ['eventbridge', 'routed'] as const;

/** Every call of Tally to AWS. */
export const permissions: readonly Permission[] = [
  {
    sid: 'ReceiveAndSettleMessages',
    why: 'events and dead letters: to receive, hide, delete and send them, and to send letters back',
    roles: ['daemon'],
    actions: ['sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:ChangeMessageVisibility', 'sqs:SendMessage'],
    resource: 'queues',
  },
  {
    sid: 'ReadQueues',
    why: 'the backlog, the redrive policy and the doctor',
    roles: ['daemon'],
    actions: ['sqs:GetQueueAttributes'],
    resource: 'queues',
  },
  {
    sid: 'ReadWiredQueues',
    why: 'the policies and redrive policies of the queues',
    roles: ['connecting'],
    actions: ['sqs:GetQueueAttributes'],
    resource: 'queues',
  },
  // a redrive policy names the ARN of the dead-letter queue, and requests need its URL
  {
    sid: 'FindTheDeadLetterQueue',
    why: 'the URL of the dead-letter queue, of which the redrive policy names the ARN only',
    roles: BOTH,
    actions: ['sqs:GetQueueUrl'],
    resource: 'letter-queues',
  },
  {
    sid: 'ConfirmSubscriptions',
    why: 'the subscription, if the topic belongs to another account',
    roles: ['daemon'],
    sources: THROUGH_TOPICS,
    actions: ['sns:ConfirmSubscription'],
    resource: 'topics',
  },
  {
    sid: 'ReadTopics',
    why: 'whether a topic exists, with its policy and the subscription of the queue, and the doctor',
    roles: BOTH,
    sources: THROUGH_TOPICS,
    actions: ['sns:GetTopicAttributes', 'sns:ListSubscriptionsByTopic', 'sns:GetSubscriptionAttributes'],
    resource: 'topics',
  },
  // whose a topic is, whatever its name
  {
    sid: 'ReadTags',
    why: 'which registry has made a topic',
    roles: BOTH,
    sources: ['notification', 'routed'],
    actions: ['sns:ListTagsForResource'],
    resource: 'own-topics',
  },
  {
    sid: 'ReadTheBucket',
    why: 're-index, the versioning of the bucket, its notification configuration, and the doctor',
    roles: BOTH,
    actions: ['s3:ListBucket', 's3:GetBucketVersioning', 's3:GetBucketNotification'],
    resource: 'bucket',
  },
  // the other sources report each expiration
  {
    sid: 'ReadLifecycleRules',
    why: 'the lifecycle rules, for sources that may not report expirations',
    roles: ['daemon'],
    sources: ['topic', 'routed'],
    actions: ['s3:GetLifecycleConfiguration'],
    resource: 'bucket',
  },
  {
    sid: 'LookAtObjects',
    why: 'the present state of an object (HEAD). Tally never reads the bytes of an object',
    roles: ['daemon'],
    actions: ['s3:GetObject'],
    resource: 'objects',
  },
  {
    sid: 'EnrichDocuments',
    why: 'only if a bucket is connected with `--enrich head` or `--enrich tags`',
    roles: ['daemon'],
    actions: ['s3:GetObjectVersion', 's3:GetObjectTagging', 's3:GetObjectVersionTagging'],
    resource: 'objects',
  },
  {
    sid: 'ReadRules',
    why: 'the rule of a bucket, and which registry has made it',
    roles: BOTH,
    sources: BY_RULES,
    actions: ['events:DescribeRule', 'events:ListTagsForResource'],
    resource: 'rules',
  },
  // a rule that a person made for a bucket has any name, and is known by the list of all rules
  {
    sid: 'FindRules',
    why: 'a rule that was made by hand and has any name',
    roles: BOTH,
    sources: BY_RULES,
    actions: ['events:ListRules', 'events:ListTargetsByRule'],
    resource: 'all-rules',
  },
  {
    sid: 'FindTrails',
    why: 'only if `TALLY_TRAIL_ARN` or `TALLY_TRAIL_BUCKET` is set',
    roles: BOTH,
    sources: ['routed'],
    actions: ['cloudtrail:DescribeTrails'],
    resource: 'all-trails',
  },
  {
    sid: 'ReadTrails',
    why: 'whether the trail records the bucket, if one of the two is set',
    roles: BOTH,
    sources: ['routed'],
    actions: ['cloudtrail:GetTrailStatus', 'cloudtrail:GetEventSelectors'],
    resource: 'trails',
  },
  // only where the queues have a key of the user's own: SQS uses it in the name of who sends and receives
  {
    sid: 'UseTheKeyOfTheQueues',
    why: 'only if the queues are encrypted with your own key',
    roles: ['daemon'],
    actions: ['kms:Decrypt', 'kms:GenerateDataKey'],
    resource: 'key',
  },
  {
    sid: 'ReadKeyPolicies',
    why: 'the policy of that key, for plans and the doctor',
    roles: BOTH,
    actions: ['kms:DescribeKey', 'kms:GetKeyPolicy'],
    resource: 'key-policies',
  },
  // only where TALLY_CONNECT_ROLE_ARN is set
  {
    sid: 'AssumeTheConnectingRole',
    why: 'only if `TALLY_CONNECT_ROLE_ARN` is set',
    roles: ['daemon'],
    actions: ['sts:AssumeRole'],
    resource: 'role',
  },
  {
    sid: 'SelectInTrails',
    why: 'only if `TALLY_TRAIL_ARN` is set: a trail of that permission can be blinded',
    roles: ['connecting'],
    sources: ['routed'],
    actions: ['cloudtrail:PutEventSelectors'],
    resource: 'own-trail',
  },
  {
    sid: 'AdmitSenders',
    why: 'the statements for SNS and EventBridge in the policies of the queues',
    roles: ['connecting'],
    actions: ['sqs:SetQueueAttributes'],
    resource: 'queues',
  },
  {
    sid: 'MakeTopics',
    why: 'the topics that Tally makes',
    roles: ['connecting'],
    sources: ['notification', 'routed'],
    actions: ['sns:CreateTopic', 'sns:TagResource', 'sns:SetTopicAttributes', 'sns:DeleteTopic'],
    resource: 'own-topics',
  },
  {
    sid: 'AdmitEventBridge',
    why: 'the statement for EventBridge in the policy of your own topic, which `--topic` names',
    roles: ['connecting'],
    sources: ['routed'],
    actions: ['sns:SetTopicAttributes'],
    resource: 'named-topics',
  },
  {
    sid: 'SubscribeTheQueue',
    why: 'the subscription of the bucket queue',
    roles: ['connecting'],
    sources: THROUGH_TOPICS,
    actions: ['sns:Subscribe', 'sns:SetSubscriptionAttributes', 'sns:Unsubscribe'],
    resource: 'topics',
  },
  {
    sid: 'NotifyTally',
    why: 'the notification configuration of the bucket',
    roles: ['connecting'],
    sources: ['notification', 'eventbridge'],
    actions: ['s3:PutBucketNotification'],
    resource: 'bucket',
  },
  {
    sid: 'MakeQueues',
    why: '`tally queue create`: the bucket queue and its dead-letter queue',
    roles: ['queues'],
    actions: ['sqs:CreateQueue', 'sqs:GetQueueUrl', 'sqs:GetQueueAttributes'],
    resource: 'new-queues',
  },
  {
    sid: 'MakeRules',
    why: 'the rule of the bucket',
    roles: ['connecting'],
    sources: BY_RULES,
    actions: ['events:PutRule', 'events:TagResource', 'events:PutTargets', 'events:RemoveTargets', 'events:DeleteRule'],
    resource: 'rules',
  },
];

/** The names of a policy's resources. `*` where one is not known. */
export interface IamNames {
  readonly partition: string;
  readonly region: string;
  readonly account: string;
  /** The ARNs of the bucket queues. */
  readonly bucketQueues: readonly string[];
  /** The ARNs of their dead-letter queues. */
  readonly letterQueues: readonly string[];
  /** The ARNs of the queues that are to be made, for who makes queues. */
  readonly newQueues?: readonly string[];
  readonly bucket: string;
  readonly installation: string;
  /** The role that plans and applies; absent: that of the process. */
  readonly connectRoleArn?: string | undefined;
  /** The key of the queues; absent: that of SQS. */
  readonly keyArn?: string | undefined;
  /** The trail that Tally may change, whose settings are the only ones that make it write to a trail. Absent: it writes to none. */
  readonly trailArn?: string | undefined;
  /** Whether the settings name the logs of a trail of others, which is read. */
  readonly readsTrails?: boolean | undefined;
  /** The topics of others with the source `topic` or `routed`, in this account or others; absent: all topics of this account with `topic`. */
  readonly topicArns?: readonly string[] | undefined;
}

/** The policy of a role as an IAM document. */
export function iamPolicy(role: IamRole, sources: readonly BucketSource[], names: IamNames): object {
  const wanted = permissions.filter(
    ({ roles, sources: only }) => roles.includes(role) && (only === undefined || only.some((source) => sources.includes(source))),
  );
  return {
    Version: '2012-10-17',
    Statement: wanted.flatMap(({ sid, actions, resource }) => {
      const resources = resourcesOf(resource, sources, names);
      if (resources.length === 0) return [];
      return {
        Sid: sid,
        Effect: 'Allow',
        Action: [...actions],
        Resource: resources,
        // the key is for the queues: no request to KMS itself is permitted
        ...(resource === 'key' && { Condition: { StringEquals: { 'kms:ViaService': serviceOf('sqs', names) } } }),
      };
    }),
  };
}

/** The partitions of AWS besides `aws`: how their regions begin, and the domain of their services. */
const partitions: readonly { readonly regions: string; readonly name: string; readonly domain: string }[] = [
  { regions: 'cn-', name: 'aws-cn', domain: 'amazonaws.com.cn' },
  { regions: 'us-gov-', name: 'aws-us-gov', domain: 'amazonaws.com' },
  { regions: 'us-iso-', name: 'aws-iso', domain: 'c2s.ic.gov' },
  { regions: 'us-isob-', name: 'aws-iso-b', domain: 'sc2s.sgov.gov' },
  { regions: 'eu-isoe-', name: 'aws-iso-e', domain: 'cloud.adc-e.uk' },
  { regions: 'us-isof-', name: 'aws-iso-f', domain: 'csp.hci.ic.gov' },
  { regions: 'eusc-', name: 'aws-eusc', domain: 'amazonaws.eu' },
];

/** Returns the partition of a region. */
export function partitionOf(region: string): string {
  return partitions.find(({ regions }) => region.startsWith(regions))?.name ?? 'aws';
}

/** The name of a service in conditions. */
function serviceOf(service: string, { partition, region }: IamNames): string {
  return `${service}.${region}.${partitions.find(({ name }) => name === partition)?.domain ?? 'amazonaws.com'}`;
}

/** The resources of a statement; none: there is nothing that it could be about. */
function resourcesOf(resource: Resource, sources: readonly BucketSource[], names: IamNames): string | readonly string[] {
  const { partition, region, account, bucketQueues, letterQueues, bucket, installation } = names;
  switch (resource) {
    case 'queues':
      return [...bucketQueues, ...letterQueues];
    case 'new-queues':
      return names.newQueues ?? [];
    case 'letter-queues':
      return letterQueues;
    case 'topics':
      return topicsOf(sources, names);
    case 'own-topics':
      return `arn:${partition}:sns:${region}:${account}:tally-${installation}-*`;
    case 'named-topics':
      return names.topicArns ?? [];
    case 'bucket':
      return `arn:${partition}:s3:::${bucket}`;
    case 'objects':
      return `arn:${partition}:s3:::${bucket}/*`;
    case 'all-trails':
      // DescribeTrails takes no resource
      return names.trailArn !== undefined || names.readsTrails === true ? '*' : [];
    case 'all-rules':
      // ListRules takes no resource
      return '*';
    case 'trails':
      // a trail is found by its logs, and may have any name
      return trailsOf(names);
    case 'own-trail':
      return names.trailArn ?? [];
    case 'key':
    case 'key-policies':
      return names.keyArn ?? [];
    case 'role':
      return names.connectRoleArn ?? [];
    case 'rules':
      return `arn:${partition}:events:${region}:${account}:rule/tally-${installation}-*`;
  }
}

function trailsOf({ trailArn, readsTrails }: IamNames): string | readonly string[] {
  return trailArn ?? (readsTrails === true ? '*' : []);
}

/** Tally's own topics, and with the sources `topic` and `routed` those of others: a topic of another account only if it is named. */
function topicsOf(
  sources: readonly BucketSource[],
  { partition, region, account, installation, topicArns }: IamNames,
): string | readonly string[] {
  const own = `arn:${partition}:sns:${region}:${account}:tally-${installation}-*`;
  const isForeign = sources.includes('topic') || (sources.includes('routed') && topicArns !== undefined);
  if (!isForeign) return own;
  if (topicArns === undefined) return `arn:${partition}:sns:${region}:${account}:*`;
  return sources.some((source) => source === 'notification' || source === 'routed') ? [own, ...topicArns] : topicArns;
}
