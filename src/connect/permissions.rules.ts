/** The permissions that Tally needs, in one table: which call, for what, and who needs it. */
import type { BucketSource } from '../records/bucket.ts';

export const iamRoles = ['daemon', 'connecting', 'setup'] as const;
/** `daemon`: the process that serves, with the reads of the doctor. `connecting`: who plans, applies and removes. `setup`: who runs `tally setup`. */
export type IamRole = (typeof iamRoles)[number];

/** What a statement is about. */
export type Resource =
  | 'queues'
  | 'bucket-queues'
  | 'new-queues'
  | 'letter-queues'
  | 'far-letters'
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
const THROUGH_TOPICS = ['notification', 'topic', 'routed'] as const;
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
  // a redrive policy names the ARN of the dead-letter queue, and requests need its URL
  {
    sid: 'FindTheDeadLetterQueue',
    why: "the dead-letter queue's URL; the redrive policy has only its ARN",
    roles: BOTH,
    actions: ['sqs:GetQueueUrl'],
    resource: 'letter-queues',
  },
  {
    sid: 'ReceiveFarLetters',
    why: "only for buckets outside the bucket queue's region: the letters there",
    roles: ['daemon'],
    actions: ['sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:ChangeMessageVisibility'],
    resource: 'far-letters',
  },
  {
    sid: 'ReadFarLetters',
    why: "only for buckets outside the bucket queue's region: the dead-letter queue there",
    roles: BOTH,
    actions: ['sqs:GetQueueAttributes', 'sqs:GetQueueUrl'],
    resource: 'far-letters',
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
    why: 'whether a topic exists, its policy and subscriptions, and the doctor',
    roles: BOTH,
    sources: THROUGH_TOPICS,
    actions: ['sns:GetTopicAttributes', 'sns:ListSubscriptionsByTopic'],
    resource: 'topics',
  },
  {
    sid: 'ReadSubscriptions',
    why: "the queue's subscription, with its filter and dead-letter queue",
    roles: BOTH,
    sources: THROUGH_TOPICS,
    actions: ['sns:GetSubscriptionAttributes'],
    resource: 'topics',
  },
  {
    sid: 'ReadTheBucket',
    why: "re-index, and the bucket's region and versioning",
    roles: BOTH,
    actions: ['s3:ListBucket', 's3:GetBucketVersioning'],
    resource: 'bucket',
  },
  {
    sid: 'ReadNotifications',
    why: "the bucket's notification configuration, and the doctor",
    roles: BOTH,
    actions: ['s3:GetBucketNotification'],
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
    why: 'only if your own key encrypts the queues',
    roles: ['daemon'],
    actions: ['kms:Decrypt', 'kms:GenerateDataKey'],
    resource: 'key',
  },
  {
    sid: 'SelectInTrails',
    why: 'only if `TALLY_TRAIL_ARN` is set: this permission can blind a trail',
    roles: ['connecting'],
    sources: ['routed'],
    actions: ['cloudtrail:PutEventSelectors'],
    resource: 'own-trail',
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
    sources: ['notification', 'routed'],
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
    actions: ['sns:Subscribe', 'sns:SetSubscriptionAttributes', 'sns:Unsubscribe'],
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
