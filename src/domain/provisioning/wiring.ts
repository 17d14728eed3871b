/** What a source needs in AWS: the parts by which a bucket's events reach the bucket queue, computed from a wish alone. */
import type { BucketSource, EnrichMode } from '../bucket.ts';
import type { NotificationEntry } from './notification.ts';
import { markOf, parseArn, prefixOf, ruleArnOf, ruleNameOf, snsPrincipals, topicArnOf, type Owner, type Place } from './names.ts';
import { conditionValues, type Statement } from './policy.ts';
import { advancedSelector, routedOperations } from './trail.ts';
import { minimalTransformer, transformer, type InputTransformer } from './transformer.ts';

/** What a bucket is to have in AWS. The account of the place is that of the queues and topics, and the region that of the bucket. */
export interface Wish extends Place, Owner {
  readonly bucket: string;
  readonly bucketAccount: string;
  readonly source: BucketSource;
  /** A topic of others: with the source `topic`, and with `routed` if the rule is to send to it instead of to a topic of Tally's. */
  readonly topicArn?: string;
  readonly enrich: EnrichMode;
  readonly queueArn: string;
  /** Absent: the bucket queue has no redrive policy. */
  readonly deadLetterArn?: string;
  /** The transformer with the names of the specification. */
  readonly minimal?: boolean;
  /** What an earlier installation of Tally configured on the bucket becomes this one's. It is agreed to for one plan, and never stored. */
  readonly adopt?: boolean;
  /** With the source `routed`: the trail that Tally may write to. */
  readonly trailArn?: string;
  /** Else the bucket of the logs of a trail that Tally does not write to. */
  readonly trailBucket?: string;
}

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

export interface Rule {
  readonly name: string;
  readonly arn: string;
  readonly pattern: object;
  readonly target: Target;
  /** Others have disabled it, and it stays so. */
  readonly isDisabled?: true;
}

export interface WiredTopic {
  readonly arn: string;
  readonly statement: Statement;
  /** Only the statement is Tally's, and only if no other one admits the same. */
  readonly isForeign?: true;
}

export interface Wiring {
  /** A topic that something must be allowed to publish to. Tally makes it, unless it is of others. */
  readonly topic?: WiredTopic;
  readonly subscription?: Subscription;
  /** The queues, and who must be allowed to send to them. */
  readonly queues: readonly { readonly arn: string; readonly senders: Senders }[];
  /** The configuration of the bucket that is Tally's. */
  readonly entry?: NotificationEntry;
  /** Whether the bucket must send its events to EventBridge. */
  readonly eventBridge: boolean;
  readonly rule?: Rule;
  /** The data events that a trail must record. */
  readonly selector?: object;
}

/** The services that must be allowed to send to a queue. */
export interface Senders {
  /** The principals of SNS, and topics besides Tally's own. */
  readonly topics?: { readonly principals: readonly string[]; readonly foreign: readonly string[] };
  readonly rules?: true;
}

/** The parts that the wish needs. */
export function wiringOf(wish: Wish): Wiring {
  switch (wish.source) {
    case 'notification': {
      const topicArn = topicArnOf(wish.installation, wish, 'events');
      const topic = { arn: topicArn, statement: s3Statement(wish, topicArn) };
      return { topic, ...subscribed(wish, topicArn), entry: entryOf(wish, topicArn), eventBridge: false };
    }
    case 'topic':
      return { ...subscribed(wish, wish.topicArn ?? ''), eventBridge: false };
    case 'eventbridge':
      return { queues: queuesOf(wish, { rules: true }), eventBridge: true, rule: nativeRule(wish) };
    case 'routed': {
      const { topicArn = topicArnOf(wish.installation, wish, 'routed') } = wish;
      const isForeign = wish.topicArn !== undefined;
      const topic = { arn: topicArn, statement: eventBridgeStatement(wish, topicArn), ...(isForeign && { isForeign }) };
      return {
        topic,
        ...subscribed(wish, topicArn),
        eventBridge: false,
        rule: trailRule(wish, topicArn),
        selector: advancedSelector(wish),
      };
    }
  }
}

/** The topic that a request or a record names for the source `routed`; undefined if it is the one that Tally makes, wherever that is. */
export function routedTopic(topicArn: string | undefined, installation: string): string | undefined {
  const isOurs = parseArn(topicArn ?? '')?.resource === parseArn(topicArnOf(installation, ANYWHERE, 'routed'))?.resource;
  return isOurs ? undefined : topicArn;
}

const ANYWHERE: Place = { partition: 'aws', region: '', account: '' };

function subscribed(wish: Wish, topicArn: string): Required<Pick<Wiring, 'subscription' | 'queues'>> {
  const { queueArn, deadLetterArn, installation } = wish;
  const topic = parseArn(topicArn);
  const isOurs = topic?.resource.startsWith(`${prefixOf(installation)}-`) === true;
  const topics = {
    principals: snsPrincipals(topic?.region ?? wish.region, parseArn(queueArn)?.region ?? wish.region),
    foreign: isOurs ? [] : [topicArn],
  };
  return {
    subscription: { topicArn, queueArn, ...(deadLetterArn !== undefined && { deadLetterArn }) },
    queues: queuesOf(wish, { topics }, wish.source === 'routed' ? { topics, rules: true } : { topics }),
  };
}

function queuesOf({ queueArn, deadLetterArn }: Wish, senders: Senders, toDeadLetters: Senders = senders): Wiring['queues'] {
  return [{ arn: queueArn, senders }, ...(deadLetterArn === undefined ? [] : [{ arn: deadLetterArn, senders: toDeadLetters }])];
}

/** The ids of our statements: one for each principal, because a policy has at most 20 statements. */
export function sidsOf(owner: Owner): { readonly topics: string; readonly rules: string; readonly all: ReadonlySet<string> } {
  const [topics, rules] = [`${markOf(owner)}-topics`, `${markOf(owner)}-rules`];
  return { topics, rules, all: new Set([topics, rules]) };
}

/**
 * The statements of a queue's policy for these senders. One statement serves all buckets, so what it allows already stays in it.
 */
export function queueStatements(
  { installation, registry, partition, account }: Pick<Wish, 'installation' | 'registry' | 'partition' | 'account'>,
  { arn, senders }: Wiring['queues'][number],
  present: readonly Statement[],
): readonly Statement[] {
  const sids = sidsOf({ installation, registry });
  const like = (sid: string, services: readonly string[], arns: readonly string[]): Statement => {
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
  const prefix = prefixOf(installation);
  return [
    ...(senders.topics === undefined
      ? []
      : [like(sids.topics, senders.topics.principals, [`arn:${partition}:sns:*:${account}:${prefix}-*`, ...senders.topics.foreign])]),
    ...(senders.rules === undefined
      ? []
      : [like(sids.rules, ['events.amazonaws.com'], [`arn:${partition}:events:*:${account}:rule/${prefix}-*`])]),
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
  const { partition, bucketAccount } = wish;
  return {
    Sid: markOf(wish),
    Effect: 'Allow',
    Principal: { Service: 's3.amazonaws.com' },
    Action: 'sns:Publish',
    Resource: topicArn,
    Condition: { StringEquals: { 'aws:SourceAccount': bucketAccount }, ArnLike: { 'aws:SourceArn': `arn:${partition}:s3:::*` } },
  };
}

/** The statement of a topic with every account that an earlier one allows, because buckets of several accounts may share the topic. */
export function topicStatement(wanted: Statement, present: readonly Statement[]): Statement {
  const earlier = present.find(({ Sid }) => Sid === wanted.Sid);
  const [account] = conditionValues(wanted, 'StringEquals', 'aws:SourceAccount');
  const known = conditionValues(earlier, 'StringEquals', 'aws:SourceAccount').filter((each) => /^\d{12}$/.test(each));
  if (account === undefined || known.length === 0) return wanted;
  const accounts = single([...new Set([account, ...known])].sort());
  const condition: unknown = wanted['Condition'];
  return { ...wanted, Condition: { ...(typeof condition === 'object' && condition), StringEquals: { 'aws:SourceAccount': accounts } } };
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

function nativeRule(wish: Wish): Rule {
  const name = ruleNameOf(wish.installation, wish.bucket, wish.source);
  const tagTypes = wish.enrich === 'tags' ? ['Object Tags Added', 'Object Tags Deleted'] : [];
  return {
    name,
    arn: ruleArnOf(wish, name),
    pattern: { source: ['aws.s3'], 'detail-type': [...DETAIL_TYPES, ...tagTypes], detail: { bucket: { name: [wish.bucket] } } },
    target: { id: 'bucket-queue', arn: wish.queueArn, ...(wish.deadLetterArn !== undefined && { deadLetterArn: wish.deadLetterArn }) },
  };
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
    target: {
      id: 'routed-topic',
      arn: topicArn,
      ...(wish.deadLetterArn !== undefined && { deadLetterArn: wish.deadLetterArn }),
      transformer: wish.minimal === true ? minimalTransformer : transformer,
    },
  };
}
