/**
 * The two queues of an installation as `tally queue create` makes them: the bucket queue and its dead-letter queue, with every
 * attribute that matters. Who may send to them is no part of it: connecting a bucket admits exactly what it needs.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
 */
import { canonicalJson } from '../canonical.ts';
import { shellWord } from '../../commands.ts';
import { jsonOf } from '../../json.ts';
import { RequestError } from '../../request-error.ts';
import { RECEIVES_WANTED } from '../checks/queue.ts';
import type { Place } from '../names.ts';
import { canonicalStatement, parsePolicy, withStatements, type Policy } from '../policy.ts';

/** The first word of the names of both queues. */
export const QUEUE_PREFIX = 'tally';
/** Both names have at most 80 characters. */
export const QUEUE_PREFIX_PATTERN = /^[A-Za-z0-9_-]{1,60}$/;

/** The name of each queue, by what it is for. */
export function queueNames(prefix: string): { readonly letters: string; readonly bucket: string } {
  return { letters: `${prefix}-dead-letters`, bucket: `${prefix}-bucket-events` };
}

/** One queue. Each value that is a document is one here, and a JSON text in SQS. */
export interface WantedQueue {
  readonly name: string;
  readonly arn: string;
  readonly attributes: Readonly<Record<string, string | object>>;
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

/** The queues in the order in which they are made: a redrive policy may name only a queue that exists. */
export function wantedQueues(prefix: string, { partition, region, account }: Place): readonly [letters: WantedQueue, bucket: WantedQueue] {
  const names = queueNames(prefix);
  const arnOf = (name: string): string => `arn:${partition}:sqs:${region}:${account}:${name}`;
  const [letters, bucket] = [arnOf(names.letters), arnOf(names.bucket)];
  return [
    {
      name: names.letters,
      arn: letters,
      attributes: {
        MessageRetentionPeriod: String(LETTERS_RETENTION_S),
        ...common(letters),
        // no other queue may move its messages here
        RedriveAllowPolicy: { redrivePermission: 'byQueue', sourceQueueArns: [bucket] },
      },
    },
    {
      name: names.bucket,
      arn: bucket,
      attributes: {
        MessageRetentionPeriod: String(EVENTS_RETENTION_S),
        ...common(bucket),
        RedrivePolicy: { deadLetterTargetArn: letters, maxReceiveCount: RECEIVES_WANTED },
      },
    },
  ];
}

function common(arn: string): WantedQueue['attributes'] {
  return {
    VisibilityTimeout: String(VISIBILITY_S),
    ReceiveMessageWaitTimeSeconds: String(WAIT_S),
    DelaySeconds: '0',
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
      ],
    },
  };
}

/** The attributes as SQS takes them. */
export function attributeTexts({ attributes }: WantedQueue): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, textOf(value)]));
}

function textOf(value: string | object): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** How a queue that exists differs from the wanted one. */
export interface QueueDifference {
  readonly attribute: string;
  /** The value to set, as SQS takes it: a policy keeps what others added. */
  readonly wanted: string;
  /** Absent: the attribute is not set. */
  readonly found?: string;
}

/** The differences of a queue that exists, from its attributes as SQS answers them. What others added to its policy is none. */
export function queueDifferences(queue: WantedQueue, found: Readonly<Record<string, string>>): readonly QueueDifference[] {
  return Object.entries(queue.attributes).flatMap(([attribute, value]) => {
    const present = found[attribute];
    if (isAsWanted(attribute, value, found)) return [];
    return [
      {
        attribute,
        wanted: attribute === 'Policy' ? policyWith(value, present) : textOf(value),
        ...(present !== undefined && present !== '' && { found: present }),
      },
    ];
  });
}

function isAsWanted(attribute: string, value: string | object, found: Readonly<Record<string, string>>): boolean {
  const present = found[attribute];
  switch (attribute) {
    case 'Policy': {
      const statements = new Set((parsePolicy(present)?.Statement ?? []).map(canonicalStatement));
      return statementsOf(value).every((statement) => statements.has(canonicalStatement(statement)));
    }
    case 'SqsManagedSseEnabled':
      // a key of the user's own encrypts as well
      return present === value || (found['KmsMasterKeyId'] ?? '') !== '';
    case 'RedrivePolicy':
    case 'RedriveAllowPolicy':
      return canonicalJson(withTexts(jsonOf(present ?? ''))) === canonicalJson(withTexts(value));
    default:
      return present === value;
  }
}

/** SQS answers the number of receives as it was set: as a number, or as its digits. */
function withTexts(document: unknown): unknown {
  if (typeof document !== 'object' || document === null) return document;
  return Object.fromEntries(Object.entries(document).map(([name, value]) => [name, typeof value === 'number' ? String(value) : value]));
}

function statementsOf(policy: string | object): Policy['Statement'] {
  return parsePolicy(textOf(policy))?.Statement ?? [];
}

/** The present policy with the wanted statements: a write replaces it as a whole. */
function policyWith(policy: string | object, present: string | undefined): string {
  const found = parsePolicy(present);
  return found === undefined ? textOf(policy) : JSON.stringify(withStatements(found, statementsOf(policy)));
}

interface QueuePlace {
  readonly name: string;
  /** Absent: that of the AWS CLI. */
  readonly region?: string | undefined;
}

/** The error about a queue of the settings, or of a connection, that does not exist. It contains the command that creates it again. */
export function queueMissing(what: string, { name, region }: QueuePlace): RequestError {
  const inRegion = region === undefined ? '' : ` in ${region}`;
  const prefix = prefixOf(name);
  const create = prefix === undefined ? 'tally queue create --apply' : `tally queue create --apply --prefix ${shellWord(prefix)}`;
  const how = prefix === undefined ? 'Make it again as it was made, or make others with' : 'Make it again with';
  return new RequestError(
    'connect.queue-missing',
    `${what}: the queue does not exist${inRegion}. ${how} \`${create}\`, or name another one in TALLY_QUEUE_URL`,
    { create },
  );
}

/** The prefix by which `tally queue create` gives a queue this name. */
function prefixOf(name: string): string | undefined {
  const [prefix = ''] = name.split(/-(?:bucket-events|dead-letters)$/);
  return Object.values(queueNames(prefix)).includes(name) ? prefix : undefined;
}
