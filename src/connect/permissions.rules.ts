/**
 * The permissions that Tally needs, in one table: which calls, on which resources, and who needs them; and the policies made from it.
 * Resources with the installation's name are listed for every region, because buckets of other regions have topics, rules and letters there.
 */
import type { BucketSource } from '../records/bucket.ts';
import { domainOf } from './names.rules.ts';

export const iamRoles = ['daemon', 'connecting', 'setup'] as const;
/** The `daemon` serves and runs the doctor. A person with `connecting` plans, applies and removes connections; one with `setup` runs `tally setup`. */
export type IamRole = (typeof iamRoles)[number];

interface Permission {
  readonly sid: string;
  /** What it is for, as the docs say it. */
  readonly why: string;
  readonly roles: readonly IamRole[];
  /** Absent: every source. */
  readonly sources?: readonly BucketSource[];
  readonly actions: readonly string[];
  /** What it is about. */
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
  // sources that report every expiration need it only for this report
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
  // only if the user's own key encrypts the queues: SQS uses it on behalf of senders and receivers
  {
    sid: 'UseTheKeyOfTheQueues',
    why: 'only if your own key encrypts the queues',
    roles: ['daemon'],
    actions: ['kms:Decrypt', 'kms:GenerateDataKey'],
    resource: 'key',
  },
  {
    sid: 'SelectInTrails',
    why: 'only if `TALLY_TRAIL_ARN` is set, and for the trail that it named before, until that has no bucket left. This permission can blind a trail',
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

/** The names in a policy's resources; `*` for an unknown one. */
export interface IamNames {
  readonly partition: string;
  readonly region: string;
  readonly account: string;
  /** The ARNs of the bucket queues. */
  readonly bucketQueues: readonly string[];
  /** The ARNs of their dead-letter queues. */
  readonly letterQueues: readonly string[];
  /** The ARNs of the queues that the setup makes. */
  readonly newQueues?: readonly string[];
  readonly bucket: string;
  readonly installation: string;
  /** The queues' key; SQS's own if absent. */
  readonly keyArn?: string | undefined;
  /** The trail that Tally may change. If absent, it reads and writes none. */
  readonly trailArn?: string | undefined;
  /** Named topics of the sources `topic` and `routed`, in any account. If absent, all of this account's topics for `topic`. */
  readonly topicArns?: readonly string[] | undefined;
}

/** A role's policy as an IAM document. */
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
        // only SQS may use the key for the role, which needs no request to KMS itself
        ...(resource === 'key' && { Condition: { StringEquals: { 'kms:ViaService': via } } }),
      };
    }),
  };
}

/** A statement's resources. Without any, the policy omits the statement. */
type ResourceOf = (names: IamNames, sources: readonly BucketSource[]) => string | readonly string[];

const NONE: readonly string[] = [];

/** The resources with the installation's name, in any region. */
const named = ({ partition, account, installation }: IamNames, service: 'sns' | 'sqs' | 'events', rest: string): string =>
  `arn:${partition}:${service}:*:${account}:${service === 'events' ? 'rule/' : ''}tally-${installation}-${rest}`;

const RESOURCES = {
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
} satisfies Record<string, ResourceOf>;
/** What a statement is about. */
export type Resource = keyof typeof RESOURCES;

/** Tally's own topics, and for the sources `topic` and `routed` other owners' topics. Another account's topic must be named. */
function topicsOf(names: IamNames, sources: readonly BucketSource[]): string | readonly string[] {
  const { partition, account, topicArns } = names;
  const own = named(names, 'sns', '*');
  if (topicArns !== undefined && BY_NAME.some((source) => sources.includes(source))) return [own, ...topicArns];
  return sources.includes('topic') ? `arn:${partition}:sns:*:${account}:*` : own;
}
