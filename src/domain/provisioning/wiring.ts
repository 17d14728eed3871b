/**
 * What a source needs in AWS: the parts by which a bucket's events reach the bucket queue, computed from a wish alone. Some are the
 * bucket's own, and made when it is connected; the others are shared, and `tally setup` makes them (shared.ts).
 */
import { z } from 'zod';
import { defined } from '../defined.ts';
import { bucketSources, enrichModes, type EnrichMode } from '../bucket.ts';
import type { NotificationEntry } from './notification.ts';
import { farLettersArn, markOf, parseArn, ruleArnOf, ruleNameOf, snsPrincipals, topicArnOf, type Owner, type Place } from './names.ts';
import { conditionValues, regionsOfSns, type Statement } from './policy.ts';
import { bridgeStatement, senders as sharedSenders, senderStatement, topicStatement } from './shared.ts';
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
  readonly statement: Statement;
  /** It was named, so it is of others: only the statement is Tally's, and that only if no other one admits the same. */
  readonly isForeign?: true;
}

export interface Wiring {
  /** A topic that something must be allowed to publish to. */
  readonly topic?: WiredTopic;
  /** Shared, or the bucket's own if its topic was named. */
  readonly subscription?: Subscription;
  /** The queues, and who must be allowed to send to them. */
  readonly queues: readonly WiredQueue[];
  /** The configuration of the bucket that is Tally's. */
  readonly entry?: NotificationEntry;
  /** Whether the bucket must send its events to EventBridge. */
  readonly eventBridge: boolean;
  readonly rule?: Rule;
  /** The data events that a trail must record. */
  readonly selector?: object;
}

export interface WiredQueue {
  readonly arn: string;
  readonly senders: readonly Sender[];
}

/** Whom the policy of a queue must admit: Tally's topics or rules, which is shared, or a topic that was named. */
export type Sender =
  | { readonly of: 'topics' | 'rules'; readonly statement: Statement }
  | { readonly of: 'named'; readonly topicArn: string; readonly services: readonly string[] };

/** Whether the bucket queue is in another region than the bucket, its topic and its rule. */
function isFar({ queueArn, region }: Wish): boolean {
  return (parseArn(queueArn)?.region ?? region) !== region;
}

/** The parts that the wish needs. */
export function wiringOf(wish: Wish): Wiring {
  const wiring = wholeWiring(wish);
  if (wish.byHand !== true) return wiring;
  const { subscription, queues, selector } = wiring;
  // a supplied trail is only read
  const supplied = wish.trailBucket === undefined ? undefined : selector;
  if (wish.topicArn === undefined)
    return { queues: queues.map(({ arn }) => ({ arn, senders: [] })), ...defined({ selector: supplied }), eventBridge: false };
  return { queues, ...defined({ subscription, selector: supplied }), eventBridge: false };
}

function wholeWiring(wish: Wish): Wiring {
  switch (wish.source) {
    case 'notification':
      return { ...through(wish, 'events'), entry: entryOf(wish, topicArnOf(wish.installation, wish, 'events')), eventBridge: false };
    case 'topic':
      return { ...subscribed(wish, wish.topicArn ?? ''), eventBridge: false };
    case 'eventbridge':
      // a rule sends straight to a queue of the same region only
      if (isFar(wish)) return { ...through(wish, 'routed'), eventBridge: true, rule: nativeRule(wish, routedArn(wish)) };
      return { queues: queuesOf(wish, 'rules'), eventBridge: true, rule: nativeRule(wish) };
    case 'routed': {
      const { topicArn = routedArn(wish) } = wish;
      return {
        ...through(wish, 'routed'),
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

/** The way through a topic of Tally's, or for EventBridge through the one that was named. */
function through(wish: Wish, use: 'events' | 'routed'): Required<Pick<Wiring, 'topic' | 'subscription' | 'queues'>> {
  const { topicArn: named } = wish;
  const topic =
    named === undefined
      ? { arn: topicArnOf(wish.installation, wish, use), statement: topicStatement(wish, wish, use) }
      : { arn: named, statement: bridgeStatement(wish, named), isForeign: true as const };
  return { topic, ...subscribed(wish, topic.arn) };
}

/** The topic that a request or a record names for the source `routed`; undefined if it is the one that Tally makes, wherever that is. */
export function routedTopic(topicArn: string | undefined, installation: string): string | undefined {
  const isOurs = parseArn(topicArn ?? '')?.resource === parseArn(topicArnOf(installation, ANYWHERE, 'routed'))?.resource;
  return isOurs ? undefined : topicArn;
}

const ANYWHERE: Place = { partition: 'aws', region: '', account: '' };

function subscribed(wish: Wish, topicArn: string): Required<Pick<Wiring, 'subscription' | 'queues'>> {
  return {
    subscription: { topicArn, queueArn: wish.queueArn, ...defined({ deadLetterArn: nearLetters(wish) }) },
    queues: queuesOf(wish, wish.topicArn === undefined ? 'topics' : 'named'),
  };
}

/** The bucket queue and the dead-letter queue of the region, which have these senders, and the dead-letter queue of the bucket queue. */
function queuesOf(wish: Wish, of: Sender['of']): Wiring['queues'] {
  const { queueArn, deadLetterArn } = wish;
  const near = nearLetters(wish);
  const wired = (arn: string, ...senders: readonly Sender['of'][]): WiredQueue => ({
    arn,
    senders: senders.map((each) => senderOf(wish, each, arn)),
  });
  const isByRule = wish.source === 'routed' || wish.source === 'eventbridge';
  return [
    wired(queueArn, of),
    ...(near === undefined ? [] : [wired(near, of, ...(isByRule && of !== 'rules' ? (['rules'] as const) : []))]),
    ...(deadLetterArn === undefined || deadLetterArn === near ? [] : [wired(deadLetterArn)]),
  ];
}

function senderOf(wish: Wish, of: Sender['of'], queueArn: string): Sender {
  const services = snsPrincipals(wish.region, parseArn(queueArn)?.region ?? wish.region);
  if (of === 'named') return { of, topicArn: wish.topicArn ?? '', services };
  const [topics, rules] = sharedSenders(wish, wish, queueArn, services);
  return { of, statement: of === 'topics' ? topics : rules };
}

/**
 * The queue for what SNS and EventBridge cannot deliver: it must be in their region, and SNS demands the account of the bucket queue.
 * https://docs.aws.amazon.com/sns/latest/dg/sns-dead-letter-queues.html
 */
function nearLetters(wish: Wish): string | undefined {
  return isFar(wish) ? farLettersArn(wish.installation, wish) : wish.deadLetterArn;
}

/** The ids of our statements in the policies of queues, and of topics. */
export function sidsOf(owner: Owner): {
  readonly named: string;
  readonly all: ReadonlySet<string>;
  readonly ofTopics: ReadonlySet<string>;
} {
  const mark = markOf(owner);
  const named = `${mark}-named`;
  return { named, all: new Set([`${mark}-topics`, `${mark}-rules`, named]), ofTopics: new Set([mark]) };
}

/**
 * The statements of a queue's policy that the bucket's own parts need: one lists all topics that were named, because a policy has at
 * most 20 statements, so what it allows already stays in it.
 */
export function namedStatements(owner: Owner, { arn, senders }: WiredQueue, present: readonly Statement[]): readonly Statement[] {
  const { named: sid } = sidsOf(owner);
  return senders.flatMap((sender) => {
    if (sender.of !== 'named') return [];
    const earlier = present.find(({ Sid }) => Sid === sid);
    const known = conditionValues(earlier, 'ArnLike', 'aws:SourceArn');
    const arns = [...new Set([...known, sender.topicArn])];
    return [senderStatement(sid, arn, [...new Set([...regionsOfSns(earlier), ...sender.services])], arns)];
  });
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
    target: {
      ...(topicArn === undefined ? { id: 'bucket-queue', arn: wish.queueArn } : routedTarget(topicArn)),
      ...defined({ deadLetterArn: nearLetters(wish) }),
    },
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
    target: { ...routedTarget(topicArn), ...defined({ deadLetterArn: nearLetters(wish) }), transformer },
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
