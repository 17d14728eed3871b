/** The permissions that Tally needs, in one table: which call, for what, and who needs it. */
import type { BucketSource } from '../bucket.ts';
import { domainOf } from './names.ts';

export const iamRoles = ['daemon', 'connecting'] as const;
/** `daemon`: the process that serves, with the reads of the doctor. `connecting`: who plans, applies and removes. */
export type IamRole = (typeof iamRoles)[number];

/** What a statement is about. */
export type Resource =
  | 'queues'
  | 'wired-queues'
  | 'letter-queues'
  | 'undelivered'
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
  /** Where the bucket belongs to another account: whether a role of that account needs it. Else the process does. */
  readonly besideBucket?: true;
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
    resource: 'wired-queues',
  },
  // a redrive policy names the ARN of the dead-letter queue, and requests need its URL
  {
    sid: 'FindTheDeadLetterQueue',
    why: 'the URL of the dead-letter queue, of which the redrive policy names the ARN only',
    roles: BOTH,
    actions: ['sqs:GetQueueUrl'],
    resource: 'letter-queues',
  },
  // a bucket of another region has a queue there for what cannot be delivered
  {
    sid: 'ReadUndelivered',
    why: 'only for buckets of other regions than the bucket queue: what could not be delivered',
    roles: ['daemon'],
    actions: ['sqs:GetQueueAttributes', 'sqs:GetQueueUrl'],
    resource: 'undelivered',
  },
  {
    sid: 'MakeUndelivered',
    why: 'only for buckets of other regions than the bucket queue: the queue there for what cannot be delivered',
    roles: ['connecting'],
    actions: ['sqs:GetQueueAttributes', 'sqs:GetQueueUrl', 'sqs:CreateQueue', 'sqs:SetQueueAttributes', 'sqs:DeleteQueue'],
    resource: 'undelivered',
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
    why: 'whether a topic exists, with its policy and its list of subscriptions, and the doctor',
    roles: BOTH,
    sources: THROUGH_TOPICS,
    actions: ['sns:GetTopicAttributes', 'sns:ListSubscriptionsByTopic'],
    resource: 'topics',
    besideBucket: true,
  },
  {
    sid: 'ReadSubscriptions',
    why: 'the subscription of the queue, with its filter and its dead-letter queue',
    roles: BOTH,
    sources: THROUGH_TOPICS,
    actions: ['sns:GetSubscriptionAttributes'],
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
    besideBucket: true,
  },
  {
    sid: 'ReadTheBucket',
    why: 're-index, the region and the versioning of the bucket',
    roles: BOTH,
    actions: ['s3:ListBucket', 's3:GetBucketVersioning'],
    resource: 'bucket',
  },
  {
    sid: 'ReadNotifications',
    why: 'the notification configuration of the bucket, and the doctor',
    roles: BOTH,
    actions: ['s3:GetBucketNotification'],
    resource: 'bucket',
    besideBucket: true,
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
    besideBucket: true,
  },
  // a rule that a person made for a bucket has any name, and is known by the list of all rules
  {
    sid: 'FindRules',
    why: 'a rule that was made by hand and has any name',
    roles: BOTH,
    sources: BY_RULES,
    actions: ['events:ListRules', 'events:ListTargetsByRule'],
    resource: 'all-rules',
    besideBucket: true,
  },
  {
    sid: 'FindTrails',
    why: 'only if `TALLY_TRAIL_ARN` or `TALLY_TRAIL_BUCKET` is set',
    roles: BOTH,
    sources: ['routed'],
    actions: ['cloudtrail:DescribeTrails'],
    resource: 'all-trails',
    besideBucket: true,
  },
  {
    sid: 'ReadTrails',
    why: 'whether the trail records the bucket, if one of the two is set',
    roles: BOTH,
    sources: ['routed'],
    actions: ['cloudtrail:GetTrailStatus', 'cloudtrail:GetEventSelectors'],
    resource: 'trails',
    besideBucket: true,
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
    besideBucket: true,
  },
  {
    sid: 'AdmitSenders',
    why: 'the statements for SNS and EventBridge in the policies of the queues',
    roles: ['connecting'],
    actions: ['sqs:SetQueueAttributes'],
    resource: 'wired-queues',
  },
  {
    sid: 'MakeTopics',
    why: 'the topics that Tally makes',
    roles: ['connecting'],
    sources: ['notification', 'routed'],
    actions: ['sns:CreateTopic', 'sns:TagResource', 'sns:SetTopicAttributes', 'sns:DeleteTopic'],
    resource: 'own-topics',
    besideBucket: true,
  },
  {
    sid: 'AdmitEventBridge',
    why: 'the statement for EventBridge in the policy of your own topic, which `--topic` names',
    roles: ['connecting'],
    sources: ['routed'],
    actions: ['sns:SetTopicAttributes'],
    resource: 'named-topics',
    besideBucket: true,
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
    besideBucket: true,
  },
  {
    sid: 'MakeRules',
    why: 'the rule of the bucket',
    roles: ['connecting'],
    sources: BY_RULES,
    actions: ['events:PutRule', 'events:TagResource', 'events:PutTargets', 'events:RemoveTargets', 'events:DeleteRule'],
    resource: 'rules',
    besideBucket: true,
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
  readonly bucket: string;
  /** The region and the account of the bucket, and so of its topic and rule. Absent: those above. */
  readonly bucketRegion?: string | undefined;
  readonly bucketAccount?: string | undefined;
  readonly installation: string;
  /** The roles that plan and apply, one in each account; none: that of the process. */
  readonly connectRoleArns?: readonly string[] | undefined;
  /** The key of the queues; absent: that of SQS. */
  readonly keyArn?: string | undefined;
  /** The trail that Tally may change, whose settings are the only ones that make it write to a trail. Absent: it writes to none. */
  readonly trailArn?: string | undefined;
  /** Whether the settings name the logs of a trail of others, which is read. */
  readonly readsTrails?: boolean | undefined;
  /** The topics of others with the source `topic` or `routed`, in this account or others; absent: all topics of this account with `topic`. */
  readonly topicArns?: readonly string[] | undefined;
}

/** The policy of a role as an IAM document. `besideBucket`: only what a role of the bucket's account needs, or only the rest. */
export function iamPolicy(role: IamRole, sources: readonly BucketSource[], names: IamNames, besideBucket?: boolean): object {
  const wanted = permissions.filter(
    (permission) =>
      isOfRole(permission, role, names) &&
      isOfSources(permission, sources, names) &&
      (besideBucket === undefined || (permission.besideBucket === true) === besideBucket),
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

function isOfRole({ roles, resource }: Permission, role: IamRole, { account, bucketAccount = account }: IamNames): boolean {
  // without a daemon, who connects a bucket of another account assumes the role there
  return roles.includes(role) || (resource === 'role' && bucketAccount !== account);
}

function isOfSources({ sources: only, resource }: Permission, sources: readonly BucketSource[], names: IamNames): boolean {
  if (only === undefined || only.some((source) => sources.includes(source))) return true;
  // a rule sends to a queue of another region or account through a topic
  const isByTopic = sources.includes('eventbridge') && isElsewhere(names);
  return isByTopic && only.includes('routed') && (resource === 'topics' || resource === 'own-topics');
}

function isElsewhere({ region, account, bucketRegion = region, bucketAccount = account }: IamNames): boolean {
  return bucketRegion !== region || bucketAccount !== account;
}

/** Who is to get which policy where a bucket belongs to another account. */
export interface BothSides {
  /** For the principal: the process that serves, or the person who connects. */
  readonly process: object;
  /** For the role of the bucket's account that the process assumes. */
  readonly role: object;
  /** Who may assume that role. */
  readonly trust_of_role: object;
  /** What the policy of the bucket lets the process read. */
  readonly bucket_policy: object;
}

interface Principal {
  /** The ARN of the role, or of the account, of the process. */
  readonly arn: string;
  readonly externalId?: string | undefined;
}

/** The policies of both accounts, for a bucket of another one than that of the queues. */
export function iamPolicies(role: IamRole, sources: readonly BucketSource[], names: IamNames, principal: Principal): BothSides {
  const reads = permissions.filter(
    (permission) =>
      permission.besideBucket !== true &&
      permission.roles.includes('daemon') &&
      isOfSources(permission, sources, names) &&
      (permission.resource === 'bucket' || permission.resource === 'objects'),
  );
  return {
    process: iamPolicy(role, sources, names, false),
    role: iamPolicy('connecting', sources, names, true),
    trust_of_role: {
      Version: '2012-10-17',
      Statement: [
        {
          Effect: 'Allow',
          Principal: { AWS: principal.arn },
          Action: 'sts:AssumeRole',
          ...(principal.externalId !== undefined && { Condition: { StringEquals: { 'sts:ExternalId': principal.externalId } } }),
        },
      ],
    },
    bucket_policy: {
      Version: '2012-10-17',
      Statement: reads.map(({ sid, actions, resource }) => ({
        Sid: `Tally${sid}`,
        Effect: 'Allow',
        Principal: { AWS: principal.arn },
        Action: [...actions],
        Resource: resourcesOf(resource, sources, names),
      })),
    },
  };
}

/** The name of a service in conditions. */
function serviceOf(service: string, { partition, region }: IamNames): string {
  return `${service}.${region}.${domainOf(partition)}`;
}

/** The resources of a statement; none: there is nothing that it could be about. */
function resourcesOf(resource: Resource, sources: readonly BucketSource[], names: IamNames): string | readonly string[] {
  const { partition, region, account, bucketQueues, letterQueues, bucket, installation } = names;
  const { bucketRegion = region, bucketAccount = account } = names;
  switch (resource) {
    case 'queues':
      return [...bucketQueues, ...letterQueues];
    case 'wired-queues':
      return [...bucketQueues, ...letterQueues];
    case 'letter-queues':
      return letterQueues;
    case 'undelivered':
      return bucketRegion === region ? [] : `arn:${partition}:sqs:${bucketRegion}:${account}:tally-${installation}-*-undelivered`;
    case 'topics':
      return topicsOf(sources, names);
    case 'own-topics':
      return `arn:${partition}:sns:${bucketRegion}:${bucketAccount}:tally-${installation}-*`;
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
      return names.trailArn ?? (names.readsTrails === true ? '*' : []);
    case 'own-trail':
      return names.trailArn ?? [];
    case 'key':
    case 'key-policies':
      return names.keyArn ?? [];
    case 'role':
      return names.connectRoleArns ?? [];
    case 'rules':
      return `arn:${partition}:events:${bucketRegion}:${bucketAccount}:rule/tally-${installation}-*`;
  }
}

/** Tally's own topics, and with the sources `topic` and `routed` those of others: a topic of another account only if it is named. */
function topicsOf(
  sources: readonly BucketSource[],
  { partition, installation, topicArns, ...place }: IamNames,
): string | readonly string[] {
  const { bucketRegion: region = place.region, bucketAccount: account = place.account } = place;
  const own = `arn:${partition}:sns:${region}:${account}:tally-${installation}-*`;
  const isForeign = sources.includes('topic') || (sources.includes('routed') && topicArns !== undefined);
  if (!isForeign) return own;
  if (topicArns === undefined) return `arn:${partition}:sns:${region}:${account}:*`;
  return sources.some((source) => source === 'notification' || source === 'routed') ? [own, ...topicArns] : topicArns;
}
