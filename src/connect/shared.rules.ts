/**
 * The parts that all buckets of an installation share, as `tally setup` and the Terraform module make them. In the home region the
 * bucket queue and its dead-letter queue, and there and in each further region:
 *
 *   S3 ──────────► topic tally-ID-events ─┐
 *   EventBridge ─► topic tally-ID-routed ─┴─► bucket queue;  what cannot be delivered ──► the dead-letter queue of the region
 *
 * Each has every attribute that matters. What else is in a policy, or set otherwise, is of others and stays.
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

/** The first word of the names of both queues. */
export const QUEUE_PREFIX = 'tally';
/** Both names have at most 80 characters. */
export const QUEUE_PREFIX_PATTERN = /^[A-Za-z0-9_-]{1,60}$/;

/** Tally gives messages up by itself, long before SQS would move them without a reason (src/events/outcome.ts). */
export const RECEIVES_WANTED = 100;

/** The name of each queue, by what it is for. */
export function queueNames(prefix: string): { readonly letters: string; readonly bucket: string } {
  return { letters: `${prefix}-dead-letters`, bucket: `${prefix}-bucket-events` };
}

/** The name of a dead-letter queue for a bucket queue of any name. */
export function lettersName(bucketQueue: string): string {
  return queueNames(bucketQueue.replace(/-bucket-events$/, '')).letters;
}

export function queueArnOf(name: string, { partition, region, account }: Place): string {
  return `arn:${partition}:sqs:${region}:${account}:${name}`;
}

/** The ARN of each queue. */
export function queueArns(prefix: string, home: Place): ReturnType<typeof queueNames> {
  const { letters, bucket } = queueNames(prefix);
  return { letters: queueArnOf(letters, home), bucket: queueArnOf(bucket, home) };
}

/** One part. Each value that is a document is one here, and a JSON text in AWS. */
export interface SharedPart {
  readonly kind: 'queue' | 'topic' | 'subscription';
  /** The ARN of the queue or topic; of a subscription, that of its topic. */
  readonly arn: string;
  /** The queue of a subscription. */
  readonly endpoint?: string;
  readonly attributes: Readonly<Record<string, string | object>>;
  /** A subscription has none. */
  readonly tags: Tags;
}

const DAY_S = 86_400;
/** The longest that SQS offers: a letter waits for a person. */
const LETTERS_RETENTION_S = 14 * DAY_S;
/** Shorter than that of letters, whose time counts from when the message was first sent. */
const EVENTS_RETENTION_S = 7 * DAY_S;
/** What each receive of Tally asks for by default; this one is for other receivers. */
const VISIBILITY_S = 60;
/** The longest that SQS offers: an idle receiver costs the least. */
const WAIT_S = 20;

export interface SharedPlace {
  /** The ARNs of the queues. */
  readonly queues: ReturnType<typeof queueArns>;
  /** Where they are. */
  readonly home: Place;
  /** The region whose buckets are to be connected. */
  readonly region: string;
}

/** The parts in the order in which they are made: a redrive policy may name only a queue that exists. */
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
    attributes: { MessageRetentionPeriod: String(retentionS), ...common(arn, [...senders(owner, home, arn, principals)]), ...more },
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

/** The parts where the server has queues alone. It may keep neither policies nor a retention: what is asked for must be answered as it was set. */
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

/** Who may send to a queue: all topics and rules of this installation, in any region. */
function senders(
  owner: Owner,
  { partition, account }: Place,
  queueArn: string,
  topicPrincipals: readonly string[],
): readonly [topics: Statement, rules: Statement] {
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

/** Admits what these services send to a queue for these ARNs. */
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

/** Who may publish to a topic of the installation: S3 for every bucket of the account, or EventBridge. */
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

/** Without a Condition: SNS supports none for EventBridge, and a statement with one drops every event. */
export function bridgeStatement(owner: Owner, topicArn: string): Statement {
  return {
    Sid: markOf(owner),
    Effect: 'Allow',
    Principal: { Service: 'events.amazonaws.com' },
    Action: 'sns:Publish',
    Resource: topicArn,
  };
}

/** A subscription of the bucket queue by which every message arrives, and in the form that Tally reads. */
export const PASSES_ALL = { RawMessageDelivery: 'false', FilterPolicy: {} } as const;

/** The confirmed subscription of the bucket queue to a topic. */
export function confirmed(topic: ObservedTopic | 'absent' | undefined): ObservedSubscription | undefined {
  if (topic === undefined || topic === 'absent' || topic.subscription === 'absent') return undefined;
  const { arn, attributes } = topic.subscription;
  return arn === undefined || attributes['PendingConfirmation'] === 'true' ? undefined : topic.subscription;
}

const redriveSchema = z.object({ deadLetterTargetArn: z.string() });

/** The dead-letter queue that the redrive policy of a queue names. */
export function deadLetterIn({ RedrivePolicy = '' }: Attributes): string | undefined {
  return redriveSchema.safeParse(jsonOf(RedrivePolicy)).data?.deadLetterTargetArn;
}

/** The attributes as AWS takes them. */
export function attributeTexts({ attributes }: Pick<SharedPart, 'attributes'>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, textOf(value)]));
}

function textOf(value: string | object): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** As people read it. */
export function nameOf({ kind, arn, endpoint }: Pick<SharedPart, 'kind' | 'arn' | 'endpoint'>): string {
  return endpoint === undefined ? `${kind} ${arn}` : `${kind} ${arn} → ${endpoint}`;
}

/** A part as AWS answers it. */
export interface FoundPart {
  readonly attributes: Attributes;
  readonly tags: Tags;
  /** Of a queue. */
  readonly url?: string;
}

/** How a part that exists differs from the wanted one. */
export interface Difference {
  readonly attribute: string;
  /** The value to set, as AWS takes it: a policy keeps what others added. */
  readonly wanted: string;
  /** Absent: the attribute is not set. */
  readonly found?: string;
}

/** The attributes that must be set. What others added to a policy is no difference. */
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
      const [is, should] = [present, wanted].map((text) => (parsePolicy(text)?.Statement ?? []).map(canonicalStatement));
      return canonicalJson(is) === canonicalJson(should);
    }
    case 'SqsManagedSseEnabled':
      // a key of the user's own encrypts as well
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

/** A queue redrives to a queue beside it: what another server than SQS calls its own place is in the ARN of the queue. */
function here(wanted: string, { QueueArn = '' }: FoundPart['attributes']): string {
  const [place = ''] = /^arn:[^:]*:sqs:[^:]*:[^:]*:/.exec(QueueArn) ?? [];
  return place === '' ? wanted : wanted.replace(/("deadLetterTargetArn":")arn:[^:"]*:sqs:[^:"]*:[^:"]*:/, `$1${place}`);
}

/** SQS answers the number of receives as it was set: as a number, or as its digits. */
function withTexts(document: unknown): unknown {
  if (typeof document !== 'object' || document === null) return document;
  return Object.fromEntries(Object.entries(document).map(([name, value]) => [name, typeof value === 'number' ? String(value) : value]));
}

/** The present policy with the wanted statements: a write replaces it as a whole. */
function policyWith(wanted: string | object, present: string): string {
  const statements = parsePolicy(textOf(wanted))?.Statement ?? [];
  const found = parsePolicy(present);
  return found === undefined || found.Statement.length === 0 ? textOf(wanted) : JSON.stringify(withShared(found, statements));
}

/** The policy with these statements, of which that of topics keeps the names of SNS of other regions: a setup for those has added them. */
function withShared(policy: Policy, statements: readonly Statement[]): Policy {
  const kept = statements.map((statement) => {
    const wanted = servicesIn(statement);
    const regional = regionsOfSns(policy.Statement.find(({ Sid }) => Sid === statement.Sid));
    if (regional.length === 0 || !wanted.includes('sns.amazonaws.com')) return statement;
    return { ...statement, Principal: { Service: single([...new Set([...wanted, ...regional])]) } };
  });
  return withStatements(policy, kept);
}

/** The command that makes the shared parts for buckets of a region, as a plan names it. */
export function setupCommand(region: string, homeRegion: string): string {
  return region === homeRegion ? 'tally setup --apply' : shellWords('tally', 'setup', '--region', region, '--apply');
}

/** The error about a queue of the settings, or of a connection, that does not exist. It contains the command that creates it again. */
export function queueMissing(what: string, region: string | undefined): RequestError {
  const create = 'tally setup --apply';
  const inRegion = region === undefined ? '' : ` in ${region}`;
  return new RequestError(
    'connect.queue-missing',
    `${what}: the queue does not exist${inRegion}. Recreate it with \`${create}\`, or name another one in TALLY_QUEUE_URL`,
    { create },
  );
}
