/** The check of the bucket queue, which every way of the events ends in: it keeps messages for days, and has a dead-letter queue. */
import { queueOf, type Facts } from '../facts.ts';
import type { ObservedQueue } from '../observed.ts';
import { setupCommand } from '../shared.ts';
import { degraded, type Finding } from './finding.ts';

/** A message that waits for an object or for the end of an outage is received again, and must not be given up for that. */
const RECEIVES_MIN = 10;
/** The retention that SQS gives a new queue: an outage over a long weekend loses nothing. */
const RETENTION_MIN_S = 345_600;
const HOUR_S = 3_600;

export function queueFindings({ wish, observed }: Facts): readonly Finding[] {
  const queue = queueOf(observed, wish.queueArn);
  if (queue === undefined) return [];
  const { arn, retentionS = RETENTION_MIN_S } = queue;
  const redrive = redriveText(queue, (each) => queueOf(observed, each) !== undefined);
  const setup = setupCommand(wish.region, wish.region);
  return [
    ...(redrive === undefined
      ? []
      : [
          degraded(
            'connect.redrive',
            redrive,
            'a message that waits for the end of an outage is received many times, and below 5 receives SQS alone gives up what ends its process; one that can never succeed needs a dead-letter queue, which is another one',
            setup,
          ),
        ]),
    ...(retentionS >= RETENTION_MIN_S
      ? []
      : [
          degraded(
            'connect.queue-retention',
            `${arn} keeps a message for ${spanText(retentionS)} only`,
            `SQS deletes events that are not taken by then, for example in an outage. 4 days (${RETENTION_MIN_S} s), the default of SQS, outlast a long weekend`,
            setup,
          ),
        ]),
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

function spanText(seconds: number): string {
  const days = seconds / (24 * HOUR_S);
  if (days >= 1) return `${Number(days.toFixed(1))} days`;
  return seconds >= HOUR_S ? `${Number((seconds / HOUR_S).toFixed(1))} hours` : `${seconds} s`;
}
