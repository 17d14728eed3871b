/**
 * The parts that all of an installation's buckets share, as `tally setup` and the Terraform module make them: the bucket queue and its
 * dead-letter queue in the home region, and in each region:
 *
 *   S3 ──────────► topic tally-ID-events ─┐
 *   EventBridge ─► topic tally-ID-routed ─┴─► bucket queue;  what cannot be delivered ──► the dead-letter queue of the region
 *
 * Each part lists every attribute that matters. Other statements and attributes are other owners', and stay.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
 */
import { z } from 'zod';
import { shellWords } from '../base/commands.ts';
import { jsonOf } from '../base/json.ts';
import { RequestError } from '../base/request-error.ts';
import {
  canonicalJson,
  canonicalStatement,
  parsePolicy,
  regionsOfSns,
  servicesIn,
  withStatements,
  type Policy,
  type Statement,
} from './policy.rules.ts';
import { farLettersArn, markOf, prefixOf, snsPrincipals, tagsOf, topicArnOf, type Owner, type Place, type Tags } from './names.rules.ts';
import type { Attributes, ObservedSubscription, ObservedTopic } from './plan.rules.ts';

/** The bucket queue's name, unless TALLY_QUEUE_URL names a queue. */
export const BUCKET_QUEUE = 'tally-bucket-events';

/** Tally gives messages up by itself, with a reason, long before SQS would move them (src/events/outcome.ts). */
export const RECEIVES_WANTED = 100;

/** The name of the dead-letter queue for a bucket queue of any name. */
export function lettersName(bucketQueue: string): string {
  return `${bucketQueue.replace(/-bucket-events$/, '')}-dead-letters`;
}

/** The ARNs of both queues. */
export function queueArns(bucketQueue: string, home: Place): { readonly letters: string; readonly bucket: string } {
  const arnOf = (name: string): string => `arn:${home.partition}:sqs:${home.region}:${home.account}:${name}`;
  return { letters: arnOf(lettersName(bucketQueue)), bucket: arnOf(bucketQueue) };
}

/** One part. Documents are objects here, and JSON texts in AWS. */
export interface SharedPart {
  readonly kind: 'queue' | 'topic' | 'subscription';
  /** The queue's or topic's ARN; for a subscription, its topic's. */
  readonly arn: string;
  /** The subscribed queue. */
  readonly endpoint?: string;
  readonly attributes: Readonly<Record<string, string | object>>;
  /** A subscription has none. */
  readonly tags: Tags;
}

const DAY_S = 86_400;
/** SQS's maximum, because a letter waits for a person. */
const LETTERS_RETENTION_S = 14 * DAY_S;
/** Shorter than for letters, whose time counts from the message's first sending. */
const EVENTS_RETENTION_S = 7 * DAY_S;
/** For other receivers: Tally's receives state their own, with the same default. */
const VISIBILITY_S = 60;
/** SQS's maximum, because it makes an idle receiver cost the least. */
const WAIT_S = 20;

export interface SharedPlace {
  /** The ARNs of the queues. */
  readonly queues: ReturnType<typeof queueArns>;
  /** Where they are. */
  readonly home: Place;
  /** The region whose buckets are to be connected. */
  readonly region: string;
}

/** The parts in the order in which they are made: a redrive policy can only name a queue that exists. */
export function sharedParts(owner: Owner, { queues, home, region }: SharedPlace): readonly SharedPart[] {
  const tags = tagsOf(owner);
  const { letters, bucket } = queues;
  const there = { ...home, region };
  const isHome = region === home.region;
  const near = isHome ? letters : farLettersArn(owner.installation, there);
  const principals = snsPrincipals(region, home.region);
  const queue = (arn: string, retentionS: number, more: SharedPart['attributes']): SharedPart => ({
    kind: 'queue',
    arn,
    attributes: { MessageRetentionPeriod: String(retentionS), ...common(arn, senders(owner, home, arn, principals)), ...more },
    tags,
  });
  const topics = (['events', 'routed'] as const).flatMap((use): readonly SharedPart[] => {
    const arn = topicArnOf(owner.installation, there, use);
    const attributes = { Policy: { Version: '2012-10-17', Statement: [topicStatement(owner, there, use)] } };
    return [
      { kind: 'topic', arn, attributes, tags },
      {
        kind: 'subscription',
        arn,
        endpoint: bucket,
        attributes: { ...PASSES_ALL, RedrivePolicy: { deadLetterTargetArn: near } },
        tags: {},
      },
    ];
  });
  return [
    queue(letters, LETTERS_RETENTION_S, {}),
    queue(bucket, EVENTS_RETENTION_S, { RedrivePolicy: { deadLetterTargetArn: letters, maxReceiveCount: RECEIVES_WANTED } }),
    ...(isHome ? [] : [queue(near, LETTERS_RETENTION_S, {})]),
    ...topics,
  ];
}

/** The parts on a server that has only queues. It may store neither policies nor a retention, so these are not asked for. */
export function queuesOnly(owner: Owner, { letters, bucket }: SharedPlace['queues']): readonly SharedPart[] {
  const queue = (arn: string, more: SharedPart['attributes']): SharedPart => ({
    kind: 'queue',
    arn,
    attributes: { ...TIMES, ...more },
    tags: tagsOf(owner),
  });
  return [queue(letters, {}), queue(bucket, { RedrivePolicy: { deadLetterTargetArn: letters, maxReceiveCount: RECEIVES_WANTED } })];
}

const TIMES = {
  VisibilityTimeout: String(VISIBILITY_S),
  ReceiveMessageWaitTimeSeconds: String(WAIT_S),
  DelaySeconds: '0',
} as const;

function common(arn: string, statements: readonly Statement[]): SharedPart['attributes'] {
  return {
    ...TIMES,
    SqsManagedSseEnabled: 'true',
    Policy: {
      Version: '2012-10-17',
      Statement: [
        {
          Sid: 'OnlyEncryptedConnections',
          Effect: 'Deny',
          Principal: '*',
          Action: 'sqs:*',
          Resource: arn,
          Condition: { Bool: { 'aws:SecureTransport': 'false' } },
        },
        ...statements,
      ],
    },
  };
}

/** Statements that let all of this installation's topics and rules, in any region, send to a queue. */
function senders(owner: Owner, { partition, account }: Place, queueArn: string, topicPrincipals: readonly string[]): readonly Statement[] {
  const prefix = prefixOf(owner.installation);
  return [
    senderStatement(`${markOf(owner)}-topics`, queueArn, topicPrincipals, [`arn:${partition}:sns:*:${account}:${prefix}-*`]),
    senderStatement(
      `${markOf(owner)}-rules`,
      queueArn,
      ['events.amazonaws.com'],
      [`arn:${partition}:events:*:${account}:rule/${prefix}-*`],
    ),
  ];
}

/** Lets these services send to a queue on behalf of these ARNs. */
export function senderStatement(Sid: string, queueArn: string, services: readonly string[], arns: readonly string[]): Statement {
  return {
    Sid,
    Effect: 'Allow',
    Principal: { Service: single(services) },
    Action: 'sqs:SendMessage',
    Resource: queueArn,
    Condition: { ArnLike: { 'aws:SourceArn': single(arns) } },
  };
}

function single(values: readonly string[]): string | readonly string[] {
  const [only, ...more] = values.toSorted();
  return only !== undefined && more.length === 0 ? only : [only ?? '', ...more];
}

/** Lets S3, for every bucket of the account, or EventBridge publish to one of the installation's topics. */
export function topicStatement(owner: Owner, place: Place, use: 'events' | 'routed'): Statement {
  const topicArn = topicArnOf(owner.installation, place, use);
  if (use === 'routed') return bridgeStatement(owner, topicArn);
  const { partition, account } = place;
  return {
    Sid: markOf(owner),
    Effect: 'Allow',
    Principal: { Service: 's3.amazonaws.com' },
    Action: 'sns:Publish',
    Resource: topicArn,
    Condition: { StringEquals: { 'aws:SourceAccount': account }, ArnLike: { 'aws:SourceArn': `arn:${partition}:s3:::*` } },
  };
}

/** It has no Condition: SNS supports none for EventBridge, and with one it drops every event. */
export function bridgeStatement(owner: Owner, topicArn: string): Statement {
  return {
    Sid: markOf(owner),
    Effect: 'Allow',
    Principal: { Service: 'events.amazonaws.com' },
    Action: 'sns:Publish',
    Resource: topicArn,
  };
}

/** With these attributes, a subscription delivers every message in the form that Tally reads. */
export const PASSES_ALL = { RawMessageDelivery: 'false', FilterPolicy: {} } as const;

/** The bucket queue's confirmed subscription to a topic. */
export function confirmed(topic: ObservedTopic | 'absent' | undefined): ObservedSubscription | undefined {
  if (topic === undefined || topic === 'absent' || topic.subscription === 'absent') return undefined;
  const { arn, attributes } = topic.subscription;
  return arn === undefined || attributes['PendingConfirmation'] === 'true' ? undefined : topic.subscription;
}

const redriveSchema = z.object({ deadLetterTargetArn: z.string() });

/** The dead-letter queue in a redrive policy. */
export function deadLetterIn({ RedrivePolicy = '' }: Attributes): string | undefined {
  return redriveSchema.safeParse(jsonOf(RedrivePolicy)).data?.deadLetterTargetArn;
}

/** The attributes as AWS accepts them. */
export function attributeTexts({ attributes }: Pick<SharedPart, 'attributes'>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, textOf(value)]));
}

function textOf(value: string | object): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The part's name for people. */
export function nameOf({ kind, arn, endpoint }: Pick<SharedPart, 'kind' | 'arn' | 'endpoint'>): string {
  return endpoint === undefined ? `${kind} ${arn}` : `${kind} ${arn} → ${endpoint}`;
}

/** A part as AWS returns it. */
export interface FoundPart {
  readonly attributes: Attributes;
  readonly tags: Tags;
  /** Of a queue. */
  readonly url?: string;
}

/** How a part that exists differs from the wanted one. */
export interface Difference {
  readonly attribute: string;
  /** The value to set. A policy keeps other owners' statements. */
  readonly wanted: string;
  /** Absent: the attribute is not set. */
  readonly found?: string;
}

/** The attributes that must be set. Other owners' statements in a policy are no difference. */
export function differencesOf({ attributes }: Pick<SharedPart, 'attributes'>, found: Pick<FoundPart, 'attributes'>): readonly Difference[] {
  return Object.entries(attributes).flatMap(([attribute, value]) => {
    const present = found.attributes[attribute] ?? '';
    const wanted = attribute === 'Policy' ? policyWith(value, present) : textOf(value);
    if (isAsWanted(attribute, wanted, found.attributes)) return [];
    return [{ attribute, wanted, ...(present !== '' && { found: present }) }];
  });
}

/** The tags that must be set. */
export function missingTags({ tags }: SharedPart, found: FoundPart): Tags {
  return Object.fromEntries(Object.entries(tags).filter(([name, value]) => found.tags[name] !== value));
}

function isAsWanted(attribute: string, wanted: string, found: FoundPart['attributes']): boolean {
  const present = found[attribute] ?? '';
  switch (attribute) {
    case 'Policy': {
      const [is, should] = [present, wanted].map((text) => parsePolicy(text).Statement.map(canonicalStatement));
      return canonicalJson(is) === canonicalJson(should);
    }
    case 'SqsManagedSseEnabled':
      // the user's own key encrypts too
      return present === wanted || (found['KmsMasterKeyId'] ?? '') !== '';
    case 'FilterPolicy':
    case 'RedrivePolicy':
      return canonicalJson(withTexts(jsonOf(present === '' ? '{}' : present))) === canonicalJson(withTexts(jsonOf(here(wanted, found))));
    case 'RawMessageDelivery':
      return (present === '' ? 'false' : present) === wanted;
    default:
      return present === wanted;
  }
}

/** The redrive target in the queue's own place, which servers other than SQS name differently: the queue's ARN shows it. */
function here(wanted: string, { QueueArn = '' }: FoundPart['attributes']): string {
  const [place = ''] = /^arn:[^:]*:sqs:[^:]*:[^:]*:/.exec(QueueArn) ?? [];
  return place === '' ? wanted : wanted.replace(/("deadLetterTargetArn":")arn:[^:"]*:sqs:[^:"]*:[^:"]*:/, `$1${place}`);
}

/** SQS returns the number of receives as it was set: as a number or as a text. */
function withTexts(document: unknown): unknown {
  if (typeof document !== 'object' || document === null) return document;
  return Object.fromEntries(Object.entries(document).map(([name, value]) => [name, typeof value === 'number' ? String(value) : value]));
}

/** The present policy with the wanted statements: a write replaces it as a whole. */
function policyWith(wanted: string | object, present: string): string {
  const found = parsePolicy(present);
  return found.Statement.length === 0 ? textOf(wanted) : JSON.stringify(withShared(found, parsePolicy(textOf(wanted)).Statement));
}

/** The policy with these statements. The topics' statement keeps SNS's names of other regions, which a setup for those regions added. */
function withShared(policy: Policy, statements: readonly Statement[]): Policy {
  const kept = statements.map((statement) => {
    const wanted = servicesIn(statement);
    const regional = regionsOfSns(policy.Statement.find(({ Sid }) => Sid === statement.Sid));
    if (regional.length === 0 || !wanted.includes('sns.amazonaws.com')) return statement;
    return { ...statement, Principal: { Service: single([...new Set([...wanted, ...regional])]) } };
  });
  return withStatements(policy, kept);
}

/** The command that makes the shared parts for a region's buckets. */
export function setupCommand(region: string, homeRegion: string): string {
  return region === homeRegion ? 'tally setup --apply' : shellWords('tally', 'setup', '--region', region, '--apply');
}

/** The error for a missing queue of the settings or a connection. It contains the command that recreates it. */
export function queueMissing(what: string, region: string | undefined): RequestError {
  const create = 'tally setup --apply';
  const inRegion = region === undefined ? '' : ` in ${region}`;
  return new RequestError(
    'connect.queue-missing',
    `${what}: the queue does not exist${inRegion}. Recreate it with \`${create}\`, or name another one in TALLY_QUEUE_URL`,
    { create },
  );
}
