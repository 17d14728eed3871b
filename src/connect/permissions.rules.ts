/**
 * The permissions that Tally needs, in one table: which call, for what, and who needs it; and the policies that are made of it. What
 * bears the installation's name is named in every region: buckets of other regions have their topics, rules and letters there.
 */
import type { BucketSource } from '../records/bucket.ts';
import { domainOf } from './names.rules.ts';

export const iamRoles = ['daemon', 'connecting', 'setup'] as const;
/** `daemon`: the process that serves, with the reads of the doctor. `connecting`: who plans, applies and removes. `setup`: who runs `tally setup`. */
export type IamRole = (typeof iamRoles)[number];

/** What a statement is about. */
export type Resource =
  | 'queues'
  | 'bucket-queues'
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
  | 'trail'
  | 'key';

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
const BY_RULES = ['eventbridge', 'routed'] as const;
const BY_NAME = ['topic', 'routed'] as const;

/** Every call of Tally to AWS. */
export const permissions: readonly Permission[] = [
  {
    sid: 'ReceiveAndSettleMessages',
    why: 'events and dead letters: receiving, hiding, deleting and sending them, and sending letters back',
    roles: ['daemon'],
    actions: ['sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:ChangeMessageVisibility', 'sqs:SendMessage'],
    resource: 'queues',
  },
  {
    sid: 'ReadQueues',
    why: 'the backlog, the policies and redrive policies, and the doctor',
    roles: BOTH,
    actions: ['sqs:GetQueueAttributes'],
    resource: 'queues',
  },
  {
    sid: 'KnowTheInstallation',
    why: 'the tags on the bucket queue that name the installation',
    roles: BOTH,
    actions: ['sqs:ListQueueTags'],
    resource: 'bucket-queues',
  },
  {
    sid: 'FindTheDeadLetterQueue',
    why: "the dead-letter queue's URL; the redrive policy has only its ARN",
    roles: BOTH,
    actions: ['sqs:GetQueueUrl'],
    resource: 'letter-queues',
  },
  {
    sid: 'ConfirmSubscriptions',
    why: 'the subscription, if the topic belongs to another account',
    roles: ['daemon'],
    actions: ['sns:ConfirmSubscription'],
    resource: 'topics',
  },
  {
    sid: 'ReadTopics',
    why: "whether a topic exists, its policy, and the queue's subscription with its filter and dead-letter queue",
    roles: BOTH,
    actions: ['sns:GetTopicAttributes', 'sns:ListSubscriptionsByTopic', 'sns:GetSubscriptionAttributes'],
    resource: 'topics',
  },
  {
    sid: 'ReadTheBucket',
    why: "re-index, and the bucket's region, versioning and notification configuration",
    roles: BOTH,
    actions: ['s3:ListBucket', 's3:GetBucketVersioning', 's3:GetBucketNotification'],
    resource: 'bucket',
  },
  // sources that report each expiration need it only for this report
  {
    sid: 'ReadLifecycleRules',
    why: 'what should have expired, and uploads that were never finished. Sources that may not report expirations need the rules',
    roles: ['daemon'],
    actions: ['s3:GetLifecycleConfiguration', 's3:ListBucketMultipartUploads'],
    resource: 'bucket',
  },
  {
    sid: 'LookAtObjects',
    why: "an object's current state (HEAD). Tally never reads an object's bytes",
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
    why: "a bucket's rule, and which registry created it",
    roles: BOTH,
    sources: BY_RULES,
    actions: ['events:DescribeRule', 'events:ListTagsForResource', 'events:ListTargetsByRule'],
    resource: 'rules',
  },
  {
    sid: 'CountRules',
    why: 'a plan says when an event bus has almost reached its limit of rules',
    roles: BOTH,
    sources: BY_RULES,
    actions: ['events:ListRules'],
    resource: 'all-rules',
  },
  {
    sid: 'FindTrails',
    why: 'only if `TALLY_TRAIL_ARN` is set',
    roles: BOTH,
    sources: ['routed'],
    actions: ['cloudtrail:DescribeTrails'],
    resource: 'all-trails',
  },
  {
    sid: 'ReadTrails',
    why: 'whether the trail records the bucket, if `TALLY_TRAIL_ARN` is set',
    roles: BOTH,
    sources: ['routed'],
    actions: ['cloudtrail:GetTrailStatus', 'cloudtrail:GetEventSelectors'],
    resource: 'trail',
  },
  // only where the queues have a key of the user's own: SQS uses it in the name of who sends and receives
  {
    sid: 'UseTheKeyOfTheQueues',
    why: 'only if your own key encrypts the queues',
    roles: ['daemon'],
    actions: ['kms:Decrypt', 'kms:GenerateDataKey'],
    resource: 'key',
  },
  {
    sid: 'SelectInTrails',
    why: 'only if `TALLY_TRAIL_ARN` is set, and for the trail that it named before, until no bucket is left in that: this permission can blind a trail',
    roles: ['connecting'],
    sources: ['routed'],
    actions: ['cloudtrail:PutEventSelectors'],
    resource: 'trail',
  },
  {
    sid: 'AdmitNamedTopics',
    why: "the statement for the topics of `--topic` in the queues' policies",
    roles: ['connecting'],
    sources: BY_NAME,
    actions: ['sqs:SetQueueAttributes'],
    resource: 'queues',
  },
  {
    sid: 'ProbeTopics',
    why: "one message an hour through each of Tally's topics, to check that it delivers",
    roles: ['daemon'],
    actions: ['sns:Publish'],
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
    why: "the bucket queue's subscription to the topic of `--topic`",
    roles: ['connecting'],
    sources: BY_NAME,
    actions: ['sns:Subscribe', 'sns:Unsubscribe'],
    resource: 'topics',
  },
  {
    sid: 'NotifyTally',
    why: "the bucket's notification configuration",
    roles: ['connecting'],
    sources: ['notification', 'eventbridge'],
    actions: ['s3:PutBucketNotification'],
    resource: 'bucket',
  },
  {
    sid: 'MakeQueues',
    why: '`tally setup`: the bucket queue and the dead-letter queues',
    roles: ['setup'],
    actions: [
      'sqs:CreateQueue',
      'sqs:GetQueueUrl',
      'sqs:GetQueueAttributes',
      'sqs:SetQueueAttributes',
      'sqs:ListQueueTags',
      'sqs:TagQueue',
    ],
    resource: 'new-queues',
  },
  {
    sid: 'MakeTopics',
    why: "`tally setup`: the topics, and the bucket queue's subscriptions to them",
    roles: ['setup'],
    actions: [
      'sns:CreateTopic',
      'sns:TagResource',
      'sns:ListTagsForResource',
      'sns:GetTopicAttributes',
      'sns:SetTopicAttributes',
      'sns:ListSubscriptionsByTopic',
      'sns:Subscribe',
      'sns:GetSubscriptionAttributes',
      'sns:SetSubscriptionAttributes',
    ],
    resource: 'own-topics',
  },
  {
    sid: 'MakeRules',
    why: "the bucket's rule",
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
  /** The key of the queues; absent: that of SQS. */
  readonly keyArn?: string | undefined;
  /** The trail that Tally may change. Absent: it reads and writes none. */
  readonly trailArn?: string | undefined;
  /** The topics of others with the source `topic` or `routed`, in this account or others; absent: all topics of this account with `topic`. */
  readonly topicArns?: readonly string[] | undefined;
}

/** The policy of a role as an IAM document. */
export function iamPolicy(role: IamRole, sources: readonly BucketSource[], names: IamNames): object {
  const wanted = permissions.filter(
    ({ roles, sources: only = sources }) => roles.includes(role) && only.some((source) => sources.includes(source)),
  );
  return {
    Version: '2012-10-17',
    Statement: wanted.flatMap(({ sid, actions, resource }) => {
      const resources = RESOURCES[resource](names, sources);
      if (resources.length === 0) return [];
      const via = `sqs.${names.region}.${domainOf(names.partition)}`;
      return {
        Sid: sid,
        Effect: 'Allow',
        Action: [...actions],
        Resource: resources,
        // the key is for the queues: no request to KMS itself is permitted
        ...(resource === 'key' && { Condition: { StringEquals: { 'kms:ViaService': via } } }),
      };
    }),
  };
}

/** The resources of a statement; none: there is nothing that it could be about. */
type ResourceOf = (names: IamNames, sources: readonly BucketSource[]) => string | readonly string[];

const NONE: readonly string[] = [];

/** What bears the name of the installation, wherever it is. */
const named = ({ partition, account, installation }: IamNames, service: 'sns' | 'sqs' | 'events', rest: string): string =>
  `arn:${partition}:${service}:*:${account}:${service === 'events' ? 'rule/' : ''}tally-${installation}-${rest}`;

const RESOURCES: Readonly<Record<Resource, ResourceOf>> = {
  queues: (names) => [...names.bucketQueues, ...names.letterQueues, named(names, 'sqs', 'dead-letters')],
  'bucket-queues': ({ bucketQueues }) => bucketQueues,
  'new-queues': (names) => [...(names.newQueues ?? NONE), named(names, 'sqs', 'dead-letters')],
  'letter-queues': (names) => [...names.letterQueues, named(names, 'sqs', 'dead-letters')],
  topics: topicsOf,
  'own-topics': (names) => named(names, 'sns', '*'),
  'named-topics': ({ topicArns }) => topicArns ?? NONE,
  bucket: ({ partition, bucket }) => `arn:${partition}:s3:::${bucket}`,
  objects: ({ partition, bucket }) => `arn:${partition}:s3:::${bucket}/*`,
  rules: (names) => named(names, 'events', '*'),
  // ListRules takes no resource
  'all-rules': () => '*',
  // DescribeTrails takes no resource
  'all-trails': ({ trailArn }) => (trailArn === undefined ? NONE : '*'),
  trail: ({ trailArn }) => trailArn ?? NONE,
  key: ({ keyArn }) => keyArn ?? NONE,
};

/** Tally's own topics, and with the sources `topic` and `routed` those of others: a topic of another account only if it is named. */
function topicsOf(names: IamNames, sources: readonly BucketSource[]): string | readonly string[] {
  const { partition, account, topicArns } = names;
  const own = named(names, 'sns', '*');
  if (topicArns !== undefined && BY_NAME.some((source) => sources.includes(source))) return [own, ...topicArns];
  return sources.includes('topic') ? `arn:${partition}:sns:*:${account}:*` : own;
}
