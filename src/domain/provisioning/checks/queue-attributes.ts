/** Checks of how the bucket queue and its dead-letter queue keep and deliver messages. Nothing of this is written by an apply. */
import { queueOf, type Facts } from '../facts.ts';
import { parseArn } from '../names.ts';
import type { ObservedQueue } from '../observed.ts';
import type { Check, Finding, Severity } from './finding.ts';

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
  return finding('connect.queue-retention', {
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
  return finding('connect.letter-retention', {
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
  return finding('connect.queue-delay', {
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
  return finding('connect.queue-message-size', {
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

function finding(code: string, { arn, severity, what, why, attribute }: Attribute): Finding {
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
