/** Checks of the bucket queue and its dead-letter queue. */
import { queueDeliveries } from '../deliveries.ts';
import { admits } from '../denials.ts';
import { queueOf, queuePolicies, type Facts } from '../facts.ts';
import { parseArn } from '../names.ts';
import type { ObservedQueue } from '../observed.ts';
import {
  parsePolicy,
  policyBytes,
  policyText,
  QUEUE_POLICY_BYTES_MAX,
  QUEUE_STATEMENTS_MAX,
  sameStatements,
  type Policy,
} from '../policy.ts';
import { degraded, blocking, healable, tooLarge, unreadable, type Check, type Finding, type Severity } from './finding.ts';

export const queuePolicyMissing: Check = (facts) => {
  const blocked = facts.wiring.queues.map((queue) => unwritable(facts, queue)).find((finding) => finding !== undefined);
  // what no apply can heal comes first, whichever queue it is about: nothing must be written then
  if (blocked !== undefined) return blocked;
  for (const queue of facts.wiring.queues) {
    if (queueOf(facts.observed, queue.arn) === undefined) continue;
    const { before, after } = queuePolicies(facts, queue);
    if (sameStatements(before.Statement, after.Statement) || isOpen(facts, queue.arn, before)) continue;
    const isForLetters = queue.arn !== facts.wish.queueArn;
    const finding = healable(
      facts,
      'connect.queue-policy',
      `the policy of ${queue.arn} does not admit what is sent to it`,
      `${isForLetters ? 'what cannot be delivered is refused there' : 'events are refused by the queue'} and lost. This policy admits it: ${policyText(after)}`,
    );
    return isForLetters ? { ...finding, severity: 'degraded' } : finding;
  }
  return undefined;
};

/** Whether the policy admits all that is sent to the queue, by whosever statements: a plan writes Tally's own all the same. */
function isOpen(facts: Facts, queueArn: string, policy: Policy): boolean {
  const deliveries = queueDeliveries(facts).filter(({ delivery }) => delivery.resource === queueArn);
  return deliveries.every(({ delivery }) => admits(policy, delivery) === 'admitted');
}

/** Why the policy of a queue cannot be written. */
function unwritable(facts: Facts, queue: Facts['wiring']['queues'][number]): Finding | undefined {
  const observed = queueOf(facts.observed, queue.arn);
  if (observed === undefined) return undefined;
  if (parsePolicy(observed.policy) === undefined) return unreadable(queue.arn);
  const { after } = queuePolicies(facts, queue);
  const isTooLarge = policyBytes(after) > QUEUE_POLICY_BYTES_MAX || after.Statement.length > QUEUE_STATEMENTS_MAX;
  return isTooLarge ? tooLarge(queue.arn, QUEUE_POLICY_BYTES_MAX) : undefined;
}

export const queueFifo: Check = ({ wiring, observed }) => {
  const fifo = wiring.queues.find(({ arn }) => arn.endsWith('.fifo') || queueOf(observed, arn)?.isFifo === true);
  if (fifo === undefined) return undefined;
  return blocking(
    'connect.queue-fifo',
    `${fifo.arn} is a FIFO queue`,
    'S3, SNS and EventBridge send to standard queues here',
    'TALLY_QUEUE_URL=… the URL of a standard queue',
  );
};

/** A message that waits for an object or for the end of an outage is received again, and must not be given up for that. */
const RECEIVES_MIN = 10;
/** Tally gives messages up by itself, long before SQS would move them without a reason (src/domain/messages/outcome.ts). */
export const RECEIVES_WANTED = 100;

export const queueRedrive: Check = ({ wish, observed }) => {
  const queue = queueOf(observed, wish.queueArn);
  if (queue === undefined) return undefined;
  const { arn, deadLetterArn, maxReceiveCount = 0 } = queue;
  const target = deadLetterArn === arn ? undefined : deadLetterArn;
  if (target !== undefined && maxReceiveCount >= RECEIVES_MIN) return undefined;
  return degraded(
    'connect.redrive',
    redriveText(queue),
    'a message that waits for the end of an outage is received many times, and below 5 receives SQS alone gives up what ends its process; one that can never succeed needs a dead-letter queue, which is another one',
    redriveFix(arn, target ?? wish.deadLetterArn),
  );
};

function redriveText({ arn, deadLetterArn, maxReceiveCount = 0 }: ObservedQueue): string {
  if (deadLetterArn === undefined) return `${arn} has no redrive policy`;
  return deadLetterArn === arn
    ? `${arn} is its own dead-letter queue`
    : `SQS moves messages of ${arn} away after ${maxReceiveCount} receives`;
}

/** A command only if the dead-letter queue is known: some stores take any text for its ARN, and lose what they move. */
function redriveFix(queueArn: string, deadLetterArn: string | undefined): string {
  if (deadLetterArn !== undefined) {
    return setAttributes(queueArn, {
      RedrivePolicy: JSON.stringify({ deadLetterTargetArn: deadLetterArn, maxReceiveCount: RECEIVES_WANTED }),
    });
  }
  const { region = '', account = '' } = parseArn(queueArn) ?? {};
  return `make a standard queue in ${region} and account ${account} for what can never succeed, and set TALLY_DEAD_LETTER_QUEUE_URL to its URL: the doctor then prints the command that gives ${queueArn} its redrive policy. No such queue is known here: neither that setting nor the connection of a bucket names one`;
}

/** SNS and EventBridge lose what they cannot deliver, too, if their dead-letter queue does not exist. */
export const deadLettersMissing: Check = ({ wish, wiring, observed }) => {
  const { deadLetterArn } = wish;
  if (deadLetterArn === undefined || !wiring.queues.some(({ arn }) => arn === deadLetterArn)) return undefined;
  if (queueOf(observed, deadLetterArn) !== undefined) return undefined;
  const { region = '', resource = '' } = parseArn(deadLetterArn) ?? {};
  return {
    ...blocking(
      'connect.dead-letters-missing',
      `there is no queue ${deadLetterArn}, which is the dead-letter queue of ${wish.queueArn}`,
      'what cannot be delivered or can never succeed is lost',
      `aws sqs create-queue --region ${region} --queue-name ${resource} --attributes MessageRetentionPeriod=1209600`,
    ),
    severity: 'degraded',
  };
};

/** A bucket of another region has a queue there for what cannot be delivered to the bucket queue. */
export const undeliveredMissing: Check = (facts) => {
  const { undelivered } = facts.wiring;
  if (undelivered === undefined || queueOf(facts.observed, undelivered) !== undefined) return undefined;
  const what = `there is no queue ${undelivered} for what SNS and EventBridge of ${facts.wish.region} cannot deliver`;
  return { ...healable(facts, 'connect.undelivered-missing', what, 'what they cannot deliver is lost'), severity: 'degraded' };
};

export const undelivered: Check = (facts) => {
  const { wish, wiring, observed } = facts;
  const queue = wiring.undelivered === undefined ? undefined : queueOf(observed, wiring.undelivered);
  if (queue === undefined || (queue.messages ?? 0) === 0) return undefined;
  return degraded(
    'connect.undelivered',
    `${queue.arn} holds ${queue.messages} messages that could not be delivered to ${wish.queueArn}`,
    'a policy or a key kept them away, and no process reads them there: a re-index finds what they were about. It is in order once the queue is empty, for example by `aws sqs purge-queue`',
    `tally reindex ${wish.bucket}`,
  );
};

/** Checks of how the bucket queue and its dead-letter queue keep and deliver messages. Nothing of this is written by an apply. */

/** The retention that SQS gives a new queue: an outage over a long weekend loses nothing. */
const RETENTION_MIN_S = 345_600;
/** Less than this does not outlast a restart together with an outage of S3: events are lost in everyday trouble. */
const RETENTION_LOSES_S = 3_600;
/** The longest that SQS offers. A letter waits for a person. */
const LETTERS_RETENTION_S = 1_209_600;
/** What a re-index waits at its begin, so that the events of what it is going to compare have arrived. */
const DELAY_MAX_S = 60;
/** The largest message of SNS, and of EventBridge to a queue: SQS refuses what is larger than the queue permits. */
const MESSAGE_BYTES = 262_144;
/** One event with the longest key, encoded, within the envelope of SNS. */
const EVENT_BYTES = 16_384;
const HOUR_S = 3_600;

export const queueRetention: Check = ({ wish, observed }) => {
  const { retentionS } = queueOf(observed, wish.queueArn) ?? {};
  if (retentionS === undefined || retentionS >= RETENTION_MIN_S) return undefined;
  return ofAttribute('connect.queue-retention', {
    arn: wish.queueArn,
    severity: retentionS < RETENTION_LOSES_S ? 'broken' : 'degraded',
    what: `${wish.queueArn} keeps a message for ${spanText(retentionS)} only`,
    why: `SQS deletes events that are not taken by then, for example in an outage. 4 days (${RETENTION_MIN_S} s), the default of SQS, outlast a long weekend`,
    attribute: { MessageRetentionPeriod: RETENTION_MIN_S },
  });
};

export const letterRetention: Check = (facts) => {
  const { wish, observed } = facts;
  const letters = lettersOf(facts);
  const { retentionS = 0 } = queueOf(observed, wish.queueArn) ?? {};
  if (letters?.retentionS === undefined || letters.retentionS >= LETTERS_RETENTION_S) return undefined;
  if (letters.retentionS > retentionS && letters.retentionS >= RETENTION_MIN_S) return undefined;
  return ofAttribute('connect.letter-retention', {
    arn: letters.arn,
    severity: 'degraded',
    what: `the dead-letter queue ${letters.arn} keeps a message for ${spanText(letters.retentionS)} only${letters.retentionS > retentionS ? '' : `, and the bucket queue for ${spanText(retentionS)}`}`,
    why: `the time counts from when the message was first sent, also after SQS has moved it: a letter must outlast its time in the bucket queue, and then wait for a person. 14 days (${LETTERS_RETENTION_S} s) are the longest that SQS offers`,
    attribute: { MessageRetentionPeriod: LETTERS_RETENTION_S },
  });
};

export const queueDelay: Check = ({ wish, observed }) => {
  const { delayS } = queueOf(observed, wish.queueArn) ?? {};
  if (delayS === undefined || delayS <= DELAY_MAX_S) return undefined;
  return ofAttribute('connect.queue-delay', {
    arn: wish.queueArn,
    severity: 'degraded',
    what: `${wish.queueArn} delays every message by ${spanText(delayS)}`,
    why: `searches show a change that much later, and a re-index, which waits ${DELAY_MAX_S} s for the events of what it compares, may end before they arrive`,
    attribute: { DelaySeconds: 0 },
  });
};

export const queueMessageSize: Check = (facts) => {
  const { wish, observed } = facts;
  const queue = queueOf(observed, wish.queueArn);
  const small = [queue, lettersOf(facts)].find((each) => each?.messageBytesMax !== undefined && each.messageBytesMax < MESSAGE_BYTES);
  if (small?.messageBytesMax === undefined) return undefined;
  return ofAttribute('connect.queue-message-size', {
    arn: small.arn,
    severity: small === queue && small.messageBytesMax < EVENT_BYTES ? 'broken' : 'degraded',
    what: `${small.arn} takes messages of ${small.messageBytesMax} bytes at most`,
    why:
      small === queue
        ? `a message of events may have ${MESSAGE_BYTES} bytes, and one event with a long key some ${EVENT_BYTES}: SQS refuses what is larger, so its events are lost or go to the dead-letter queue`
        : `a message of events may have ${MESSAGE_BYTES} bytes, and what cannot be delivered is lost if the dead-letter queue refuses it as well`,
    attribute: { MaximumMessageSize: MESSAGE_BYTES },
  });
};

/** The dead-letter queue, if it is another one. */
function lettersOf({ wish, observed }: Facts): ObservedQueue | undefined {
  return wish.deadLetterArn === undefined || wish.deadLetterArn === wish.queueArn ? undefined : queueOf(observed, wish.deadLetterArn);
}

interface Attribute {
  readonly arn: string;
  readonly severity: Severity;
  readonly what: string;
  readonly why: string;
  readonly attribute: Readonly<Record<string, number>>;
}

function ofAttribute(code: string, { arn, severity, what, why, attribute }: Attribute): Finding {
  const attributes = Object.fromEntries(Object.entries(attribute).map(([name, value]) => [name, String(value)]));
  return { code, severity, what, why, fix: setAttributes(arn, attributes), blocks: false };
}

/** The command that sets these attributes of a queue, and leaves all others. */
export function setAttributes(queueArn: string, attributes: Readonly<Record<string, string>>): string {
  const { region = '', resource = '' } = parseArn(queueArn) ?? {};
  const url = `"$(aws sqs get-queue-url --region ${region} --queue-name ${resource} --query QueueUrl --output text)"`;
  return `aws sqs set-queue-attributes --region ${region} --queue-url ${url} --attributes '${JSON.stringify(attributes)}'`;
}

function spanText(seconds: number): string {
  const days = seconds / (24 * HOUR_S);
  if (days >= 1) return `${Number(days.toFixed(1))} days`;
  return seconds >= HOUR_S ? `${Number((seconds / HOUR_S).toFixed(1))} hours` : `${seconds} s`;
}
