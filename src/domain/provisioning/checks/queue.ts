/** The check of the bucket queue, which every way of the events ends in: it keeps messages for days, and has a dead-letter queue. */
import { queueOf, type Facts } from '../facts.ts';
import { parseArn } from '../names.ts';
import type { ObservedQueue } from '../observed.ts';
import { degraded, type Finding } from './finding.ts';

/** A message that waits for an object or for the end of an outage is received again, and must not be given up for that. */
const RECEIVES_MIN = 10;
/** Tally gives messages up by itself, long before SQS would move them without a reason (src/domain/messages/outcome.ts). */
export const RECEIVES_WANTED = 100;
/** The retention that SQS gives a new queue: an outage over a long weekend loses nothing. */
const RETENTION_MIN_S = 345_600;
const HOUR_S = 3_600;

export function queueFindings(facts: Facts): readonly Finding[] {
  const { wish, observed } = facts;
  const queue = queueOf(observed, wish.queueArn);
  return queue === undefined ? [] : [...redriveFinding(facts, queue), ...retentionFinding(queue)];
}

function redriveFinding({ wish, observed }: Facts, queue: ObservedQueue): readonly Finding[] {
  const what = redriveText(queue, (arn) => queueOf(observed, arn) !== undefined);
  if (what === undefined) return [];
  const target = queue.deadLetterArn === queue.arn ? undefined : queue.deadLetterArn;
  return [
    degraded(
      'connect.redrive',
      what,
      'a message that waits for the end of an outage is received many times, and below 5 receives SQS alone gives up what ends its process; one that can never succeed needs a dead-letter queue, which is another one',
      redriveFix(queue.arn, target ?? wish.deadLetterArn),
    ),
  ];
}

/** What is wrong with the redrive policy; undefined if nothing is. */
function redriveText(
  { arn, deadLetterArn, maxReceiveCount = 0 }: ObservedQueue,
  isThere: (queueArn: string) => boolean,
): string | undefined {
  if (deadLetterArn === undefined) return `${arn} has no redrive policy`;
  if (deadLetterArn === arn) return `${arn} is its own dead-letter queue`;
  if (!isThere(deadLetterArn)) return `there is no queue ${deadLetterArn}, which is the dead-letter queue of ${arn}`;
  return maxReceiveCount < RECEIVES_MIN ? `SQS moves messages of ${arn} away after ${maxReceiveCount} receives` : undefined;
}

/** A command only if the dead-letter queue is known: some stores take any text for its ARN, and lose what they move. */
function redriveFix(queueArn: string, deadLetterArn: string | undefined): string {
  if (deadLetterArn === undefined)
    return `make a standard queue beside ${queueArn} for what can never succeed, and name it in TALLY_DEAD_LETTER_QUEUE_URL`;
  return setAttributes(queueArn, {
    RedrivePolicy: JSON.stringify({ deadLetterTargetArn: deadLetterArn, maxReceiveCount: RECEIVES_WANTED }),
  });
}

function retentionFinding({ arn, retentionS }: ObservedQueue): readonly Finding[] {
  if (retentionS === undefined || retentionS >= RETENTION_MIN_S) return [];
  return [
    degraded(
      'connect.queue-retention',
      `${arn} keeps a message for ${spanText(retentionS)} only`,
      `SQS deletes events that are not taken by then, for example in an outage. 4 days (${RETENTION_MIN_S} s), the default of SQS, outlast a long weekend`,
      setAttributes(arn, { MessageRetentionPeriod: String(RETENTION_MIN_S) }),
    ),
  ];
}

/** The command that sets these attributes of a queue, and leaves all others. */
function setAttributes(queueArn: string, attributes: Readonly<Record<string, string>>): string {
  const { region = '', resource = '' } = parseArn(queueArn) ?? {};
  const url = `"$(aws sqs get-queue-url --region ${region} --queue-name ${resource} --query QueueUrl --output text)"`;
  return `aws sqs set-queue-attributes --region ${region} --queue-url ${url} --attributes '${JSON.stringify(attributes)}'`;
}

function spanText(seconds: number): string {
  const days = seconds / (24 * HOUR_S);
  if (days >= 1) return `${Number(days.toFixed(1))} days`;
  return seconds >= HOUR_S ? `${Number((seconds / HOUR_S).toFixed(1))} hours` : `${seconds} s`;
}
