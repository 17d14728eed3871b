/** What a source needs in AWS: the parts by which a bucket's events reach the bucket queue, computed from a wish alone. */
import { z } from 'zod';
import { defined } from '../defined.ts';
import { bucketSources, enrichModes, type EnrichMode } from '../bucket.ts';
import type { NotificationEntry } from './notification.ts';
import { markOf, parseArn, prefixOf, ruleArnOf, ruleNameOf, snsPrincipals, topicArnOf, type Owner, type Place } from './names.ts';
import { conditionValues, type Statement } from './policy.ts';
import { advancedSelector, routedOperations } from './trail.ts';

/** What a bucket is to have in AWS. The account of the place is that of the queues and of all parts, and the region that of the bucket. */
export const wishSchema = z.object({
  bucket: z.string(),
  region: z.string(),
  partition: z.string(),
  account: z.string(),
  /** The account that must own the bucket: another one only with the source `topic`. */
  bucketAccount: z.string(),
  installation: z.string(),
  registry: z.string(),
  source: z.enum(bucketSources),
  /** A topic of others: with the source `topic`, and with `routed` if the rule is to send to it instead of to a topic of Tally's. */
  topicArn: z.string().exactOptional(),
  enrich: z.enum(enrichModes),
  queueArn: z.string(),
  /** Absent: the bucket queue has no redrive policy. */
  deadLetterArn: z.string().exactOptional(),
  /** A person has wired it: the notification, or the rule with its transformer and the trail, are theirs. */
  byHand: z.boolean().exactOptional(),
  /** With the source `routed`: the trail that Tally may write to. */
  trailArn: z.string().exactOptional(),
  /** Else the bucket of the logs of a trail that Tally does not write to. */
  trailBucket: z.string().exactOptional(),
});
export type Wish = Readonly<z.infer<typeof wishSchema>>;

export interface Subscription {
  readonly topicArn: string;
  readonly queueArn: string;
  readonly deadLetterArn?: string;
}

export interface Target {
  readonly id: 'bucket-queue' | 'routed-topic';
  readonly arn: string;
  readonly deadLetterArn?: string;
  readonly transformer?: InputTransformer;
}

/** The target as EventBridge, its command line and its templates take it. */
export function sdkTarget({ id, arn, deadLetterArn, transformer: input }: Target) {
  return {
    Id: id,
    Arn: arn,
    ...(deadLetterArn !== undefined && { DeadLetterConfig: { Arn: deadLetterArn } }),
    ...(input !== undefined && { InputTransformer: { InputPathsMap: { ...input.paths }, InputTemplate: input.template } }),
  };
}

export interface Rule {
  readonly name: string;
  readonly arn: string;
  readonly pattern: object;
  readonly target: Target;
}

export interface WiredTopic {
  readonly arn: string;
  /** Who may publish. */
  readonly statements: readonly Statement[];
  /** Only the statements are Tally's, and that for EventBridge only if no other one admits the same. */
  readonly isForeign?: true;
}

export interface Wiring {
  /** A topic that something must be allowed to publish to. Tally makes it, unless it is of others. */
  readonly topic?: WiredTopic;
  readonly subscription?: Subscription;
  /** The queues, and who must be allowed to send to them. */
  readonly queues: readonly { readonly arn: string; readonly senders: Senders }[];
  /** The queue for what SNS and EventBridge cannot deliver, where the dead-letter queue is in another region than they are. Tally makes it. */
  readonly undelivered?: string;
  /** The configuration of the bucket that is Tally's. */
  readonly entry?: NotificationEntry;
  /** Whether the bucket must send its events to EventBridge. */
  readonly eventBridge: boolean;
  readonly rule?: Rule;
  /** The data events that a trail must record. */
  readonly selector?: object;
}

/** The services that must be allowed to send to a queue, and the ARNs that they send for. */
export interface Senders {
  readonly topics?: Sender;
  readonly rules?: Sender;
}

export interface Sender {
  readonly principals: readonly string[];
  readonly arns: readonly string[];
}

/** Whether the bucket queue is in another region than the bucket, its topic and its rule. */
function isFar({ queueArn, region }: Wish): boolean {
  return (parseArn(queueArn)?.region ?? region) !== region;
}

/** The parts that the wish needs, and Tally makes. */
export function wiringOf(wish: Wish): Wiring {
  const wiring = wholeWiring(wish);
  if (wish.byHand !== true) return wiring;
  const { subscription, queues, undelivered, selector } = wiring;
  // a supplied trail is only read
  const supplied = wish.trailBucket === undefined ? undefined : selector;
  if (wish.topicArn === undefined)
    return { queues: queues.map(({ arn }) => ({ arn, senders: {} })), ...defined({ selector: supplied }), eventBridge: false };
  return { queues, ...defined({ subscription, undelivered, selector: supplied }), eventBridge: false };
}

function wholeWiring(wish: Wish): Wiring {
  switch (wish.source) {
    case 'notification': {
      const topicArn = topicArnOf(wish.installation, wish, 'events');
      const topic = { arn: topicArn, statements: [s3Statement(wish, topicArn)] };
      return { topic, ...subscribed(wish, topicArn), entry: entryOf(wish, topicArn), eventBridge: false };
    }
    case 'topic':
      return { ...subscribed(wish, wish.topicArn ?? ''), eventBridge: false };
    case 'eventbridge':
      // a rule sends straight to a queue of the same region only
      if (isFar(wish)) return { ...throughTopic(wish, routedArn(wish)), eventBridge: true, rule: nativeRule(wish, routedArn(wish)) };
      return { queues: queuesOf(wish, { rules: rulesOf(wish) }), eventBridge: true, rule: nativeRule(wish) };
    case 'routed': {
      const { topicArn = routedArn(wish) } = wish;
      return {
        ...throughTopic(wish, topicArn),
        eventBridge: false,
        rule: trailRule(wish, topicArn),
        selector: advancedSelector(wish),
      };
    }
  }
}

function routedArn(wish: Wish): string {
  return topicArnOf(wish.installation, wish, 'routed');
}

/** The way of events that a rule sends to a topic. */
function throughTopic(wish: Wish, topicArn: string): Required<Pick<Wiring, 'topic' | 'subscription'>> & Subscribed {
  const isForeign = wish.topicArn !== undefined;
  const statements = [eventBridgeStatement(wish, topicArn)];
  return { topic: { arn: topicArn, statements, ...(isForeign && { isForeign }) }, ...subscribed(wish, topicArn) };
}

/** The topic that a request or a record names for the source `routed`; undefined if it is the one that Tally makes, wherever that is. */
export function routedTopic(topicArn: string | undefined, installation: string): string | undefined {
  const isOurs = parseArn(topicArn ?? '')?.resource === parseArn(topicArnOf(installation, ANYWHERE, 'routed'))?.resource;
  return isOurs ? undefined : topicArn;
}

const ANYWHERE: Place = { partition: 'aws', region: '', account: '' };

type Subscribed = Required<Pick<Wiring, 'subscription' | 'queues'>> & Pick<Wiring, 'undelivered'>;

function subscribed(wish: Wish, topicArn: string): Subscribed {
  const { queueArn, installation } = wish;
  const topic = parseArn(topicArn);
  const prefix = prefixOf(installation);
  const { partition, account } = wish;
  const arns = [`arn:${partition}:sns:*:${account}:${prefix}-*`, ...(topic?.resource.startsWith(`${prefix}-`) === true ? [] : [topicArn])];
  const topics = { principals: snsPrincipals(topic?.region ?? wish.region, parseArn(queueArn)?.region ?? wish.region), arns };
  const isByRule = wish.source === 'routed' || wish.source === 'eventbridge';
  return {
    subscription: { topicArn, queueArn, ...undeliverable(wish) },
    queues: queuesOf(wish, { topics }, isByRule ? { topics, rules: rulesOf(wish) } : { topics }),
    ...(isFar(wish) && { undelivered: undeliveredArn(wish) }),
  };
}

function rulesOf(wish: Wish): Sender {
  const { partition, account } = wish;
  return { principals: ['events.amazonaws.com'], arns: [`arn:${partition}:events:*:${account}:rule/${prefixOf(wish.installation)}-*`] };
}

/** The queues, of which the bucket queue has these senders, and the one for what cannot be delivered those. */
function queuesOf(wish: Wish, senders: Senders, ofUndeliverable: Senders = senders): Wiring['queues'] {
  const { queueArn, deadLetterArn } = wish;
  const { deadLetterArn: near } = undeliverable(wish);
  return [
    { arn: queueArn, senders },
    ...(near === undefined ? [] : [{ arn: near, senders: ofUndeliverable }]),
    ...(deadLetterArn === undefined || deadLetterArn === near ? [] : [{ arn: deadLetterArn, senders: {} }]),
  ];
}

/** The queue for what SNS and EventBridge cannot deliver: it must be in their region. */
function undeliverable(wish: Wish): Pick<Subscription, 'deadLetterArn'> {
  const deadLetterArn = isFar(wish) ? undeliveredArn(wish) : wish.deadLetterArn;
  return deadLetterArn === undefined ? {} : { deadLetterArn };
}

/**
 * There is one in each region. SNS demands the account of the subscription, which is that of the bucket queue.
 * https://docs.aws.amazon.com/sns/latest/dg/sns-dead-letter-queues.html
 */
function undeliveredArn(wish: Wish): string {
  return `arn:${wish.partition}:sqs:${wish.region}:${wish.account}:${markOf(wish)}-undelivered`;
}

/** The ids of our statements: one for each principal, because a policy has at most 20 statements. */
export function sidsOf(owner: Owner): {
  readonly topics: string;
  readonly rules: string;
  /** All in the policies of queues. */
  readonly all: ReadonlySet<string>;
  /** All in the policies of topics. */
  readonly ofTopics: ReadonlySet<string>;
} {
  const [topics, rules] = [`${markOf(owner)}-topics`, `${markOf(owner)}-rules`];
  return { topics, rules, all: new Set([topics, rules]), ofTopics: new Set([markOf(owner)]) };
}

/**
 * The statements of a queue's policy for these senders. One statement serves all buckets, so what it allows already stays in it.
 */
export function queueStatements(
  owner: Owner,
  { arn, senders }: Wiring['queues'][number],
  present: readonly Statement[],
): readonly Statement[] {
  const sids = sidsOf(owner);
  const like = (sid: string, { principals: services, arns }: Sender): Statement => {
    const earlier = present.find(({ Sid }) => Sid === sid);
    const known = conditionValues(earlier, 'ArnLike', 'aws:SourceArn');
    const principals = servicesOf(earlier);
    return {
      Sid: sid,
      Effect: 'Allow',
      Principal: { Service: single([...new Set([...services, ...principals])].sort()) },
      Action: 'sqs:SendMessage',
      Resource: arn,
      Condition: { ArnLike: { 'aws:SourceArn': single([...new Set([...arns, ...known])].sort()) } },
    };
  };
  return [
    ...(senders.topics === undefined ? [] : [like(sids.topics, senders.topics)]),
    ...(senders.rules === undefined ? [] : [like(sids.rules, senders.rules)]),
  ];
}

/** SNS's own names are the only ones that a statement of ours may gain. */
function servicesOf(statement: Statement | undefined): readonly string[] {
  const principal: unknown = statement?.['Principal'];
  if (typeof principal !== 'object' || principal === null || !('Service' in principal)) return [];
  return [principal.Service]
    .flat()
    .filter((name): name is string => typeof name === 'string' && /^sns\.[a-z0-9-]+\.amazonaws\.com$/.test(name));
}

function single(values: readonly string[]): string | readonly string[] {
  const [only, ...more] = values;
  return only !== undefined && more.length === 0 ? only : values;
}

/** One statement for all buckets of the account: one for each would outgrow the 30 KB of a topic's policy. */
function s3Statement(wish: Wish, topicArn: string): Statement {
  const { partition, account } = wish;
  return {
    Sid: markOf(wish),
    Effect: 'Allow',
    Principal: { Service: 's3.amazonaws.com' },
    Action: 'sns:Publish',
    Resource: topicArn,
    Condition: { StringEquals: { 'aws:SourceAccount': account }, ArnLike: { 'aws:SourceArn': `arn:${partition}:s3:::*` } },
  };
}

/** Without a Condition: SNS supports none for EventBridge, and a statement with one drops every event. */
function eventBridgeStatement(wish: Wish, topicArn: string): Statement {
  return {
    Sid: markOf(wish),
    Effect: 'Allow',
    Principal: { Service: 'events.amazonaws.com' },
    Action: 'sns:Publish',
    Resource: topicArn,
  };
}

const EVENTS = ['s3:ObjectCreated:*', 's3:ObjectRemoved:*', 's3:LifecycleExpiration:*'];
const STORAGE_EVENTS = ['s3:LifecycleTransition', 's3:ObjectRestore:*', 's3:IntelligentTiering'];

/** The events that a bucket with this enrichment must send. */
export function eventsFor(enrich: EnrichMode): readonly string[] {
  switch (enrich) {
    case 'none':
      return EVENTS;
    case 'head':
      return [...EVENTS, ...STORAGE_EVENTS];
    case 'tags':
      return [...EVENTS, ...STORAGE_EVENTS, 's3:ObjectTagging:*'];
  }
}

function entryOf(wish: Wish, topicArn: string): NotificationEntry {
  return { kind: 'topic', id: markOf(wish), arn: topicArn, events: eventsFor(wish.enrich), filter: [] };
}

const DETAIL_TYPES = [
  'Object Created',
  'Object Deleted',
  'Object Restore Completed',
  'Object Restore Expired',
  'Object Storage Class Changed',
  'Object Access Tier Changed',
];

/** The rule sends to the topic, or without one to the bucket queue. */
function nativeRule(wish: Wish, topicArn?: string): Rule {
  const name = ruleNameOf(wish.installation, wish.bucket, wish.source);
  const tagTypes = wish.enrich === 'tags' ? ['Object Tags Added', 'Object Tags Deleted'] : [];
  return {
    name,
    arn: ruleArnOf(wish, name),
    pattern: { source: ['aws.s3'], 'detail-type': [...DETAIL_TYPES, ...tagTypes], detail: { bucket: { name: [wish.bucket] } } },
    target: { ...(topicArn === undefined ? { id: 'bucket-queue', arn: wish.queueArn } : routedTarget(topicArn)), ...undeliverable(wish) },
  };
}

function routedTarget(topicArn: string): Pick<Target, 'id' | 'arn'> {
  return { id: 'routed-topic', arn: topicArn };
}

function trailRule(wish: Wish, topicArn: string): Rule {
  const name = ruleNameOf(wish.installation, wish.bucket, wish.source);
  return {
    name,
    arn: ruleArnOf(wish, name),
    pattern: {
      source: ['aws.s3'],
      'detail-type': ['AWS API Call via CloudTrail', 'AWS Service Event via CloudTrail'],
      detail: {
        eventSource: ['s3.amazonaws.com'],
        eventName: [...routedOperations],
        errorCode: [{ exists: false }],
        requestParameters: { bucketName: [wish.bucket] },
      },
    },
    target: { ...routedTarget(topicArn), ...undeliverable(wish), transformer },
  };
}

/**
 * The input transformers of the routed source. Placeholders have no quotes: EventBridge then quotes the values itself, so that
 * keys with quotes or backslashes survive. A value that an event does not have arrives as an empty string.
 */

export interface InputTransformer {
  readonly paths: Readonly<Record<string, string>>;
  readonly template: string;
}

/** Tally's own: it passes on what tells a failed call and the calls of one bulk delete, too. */
export const transformer: InputTransformer = {
  paths: {
    awsRegion: '$.detail.awsRegion',
    eventName: '$.detail.eventName',
    eventTime: '$.detail.eventTime',
    eventID: '$.detail.eventID',
    eventSource: '$.detail.eventSource',
    errorCode: '$.detail.errorCode',
    requestID: '$.detail.requestID',
    bucket: '$.detail.requestParameters.bucketName',
    key: '$.detail.requestParameters.key',
    requestedVersionId: '$.detail.requestParameters.versionId',
    versionId: '$.detail.responseElements.x-amz-version-id',
    isDeleteMarker: '$.detail.responseElements.x-amz-delete-marker',
  },
  template:
    '{"Records":[{"awsRegion":<awsRegion>,"eventName":<eventName>,"eventTime":<eventTime>,"eventID":<eventID>,"eventSource":<eventSource>,"errorCode":<errorCode>,"requestID":<requestID>,"requestParameters":{"versionId":<requestedVersionId>},"s3":{"bucket":{"name":<bucket>},"object":{"eTag":"","isDeleteMarker":<isDeleteMarker>,"key":<key>,"versionId":<versionId>}}}]}',
};
