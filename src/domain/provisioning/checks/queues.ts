/** Checks of the bucket queue and its dead-letter queue. */
import { commandOf } from '../../commands.ts';
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
import { blocking, healable, tooLarge, unreadable, type Check, type Finding } from './finding.ts';
import { setAttributes } from './queue-attributes.ts';

export const queuePolicyMissing: Check = (facts) => {
  const blocked = facts.wiring.queues.map((queue) => unwritable(facts, queue)).find((finding) => finding !== undefined);
  // what no apply can heal comes first, whichever queue it is about: nothing must be written then
  if (blocked !== undefined) return blocked;
  for (const queue of facts.wiring.queues) {
    if (queueOf(facts.observed, queue.arn) === undefined) continue;
    const { before, after } = queuePolicies(facts, queue);
    if (sameStatements(before.Statement, after.Statement) || isOpen(facts, queue.arn, before)) continue;
    return healable(
      facts,
      'connect.queue-policy',
      `the policy of ${queue.arn} does not allow what it must: ${policyText(after)}`,
      'events are refused by the queue and lost',
    );
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
const RECEIVES_WANTED = 20;

export const queueRedrive: Check = ({ wish, observed }) => {
  const queue = queueOf(observed, wish.queueArn);
  if (queue === undefined) return undefined;
  const { arn, deadLetterArn, maxReceiveCount = 0 } = queue;
  const target = deadLetterArn === arn ? undefined : deadLetterArn;
  if (target !== undefined && maxReceiveCount >= RECEIVES_MIN) return undefined;
  return {
    code: 'connect.redrive',
    severity: 'degraded',
    what: redriveText(queue),
    why: 'a message that waits for the end of an outage is received many times; one that can never succeed needs a dead-letter queue, which is another one',
    fix: redriveFix(arn, target ?? wish.deadLetterArn),
    blocks: false,
  };
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
  return {
    code: 'connect.undelivered',
    severity: 'degraded',
    what: `${queue.arn} holds ${queue.messages} messages that could not be delivered to ${wish.queueArn}`,
    why: 'a policy or a key kept them away, and no process reads them there: a re-index finds what they were about. It is in order once the queue is empty, for example by `aws sqs purge-queue`',
    fix: commandOf('reindex', wish.bucket),
    blocks: false,
  };
};
