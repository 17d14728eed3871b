/** Checks of the bucket queue and its dead-letter queue. */
import { queueOf, queuePolicies, type Facts } from '../facts.ts';
import { parseArn } from '../names.ts';
import { parsePolicy, policyBytes, policyText, QUEUE_POLICY_BYTES_MAX, QUEUE_STATEMENTS_MAX, sameStatements } from '../policy.ts';
import { blocking, healable, tooLarge, unchecked, unreadable, type Check, type Finding } from './finding.ts';

export const queuePolicyMissing: Check = (facts) => {
  const blocked = facts.wiring.queues.map((queue) => unwritable(facts, queue)).find((finding) => finding !== undefined);
  // what no apply can heal comes first, whichever queue it is about: nothing must be written then
  if (blocked !== undefined) return blocked;
  for (const queue of facts.wiring.queues) {
    if (queueOf(facts.observed, queue.arn) === undefined) continue;
    const { before, after } = queuePolicies(facts, queue);
    if (sameStatements(before.Statement, after.Statement)) continue;
    return healable(
      facts,
      'connect.queue-policy',
      `the policy of ${queue.arn} does not allow what it must: ${policyText(after)}`,
      'events are refused by the queue and lost',
    );
  }
  return undefined;
};

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

export const queueRedrive: Check = ({ wish, observed }) => {
  const queue = queueOf(observed, wish.queueArn);
  const count = queue?.maxReceiveCount;
  if (queue === undefined || (count !== undefined && count >= RECEIVES_MIN)) return undefined;
  const what =
    count === undefined ? `${wish.queueArn} has no redrive policy` : `SQS moves messages of ${wish.queueArn} away after ${count} receives`;
  const redrive = { deadLetterTargetArn: wish.deadLetterArn ?? 'ARN of a standard queue', maxReceiveCount: 20 };
  return {
    code: 'connect.redrive',
    severity: 'degraded',
    what,
    why: 'a message that waits for the end of an outage is received many times; one that can never succeed needs a dead-letter queue',
    fix: `aws sqs set-queue-attributes --queue-url "$(aws sqs get-queue-url --queue-name ${parseArn(wish.queueArn)?.resource ?? ''} --query QueueUrl --output text)" --attributes '${JSON.stringify({ RedrivePolicy: JSON.stringify(redrive) })}'`,
    blocks: false,
  };
};

export const queueElsewhere: Check = ({ wish }) => {
  const queue = parseArn(wish.queueArn);
  if (queue === undefined || queue.region === wish.region) return undefined;
  return unchecked(
    'connect.region',
    `${wish.bucket} is in ${wish.region}, and the bucket queue in ${queue.region}`,
    'a subscription and a rule need a dead-letter queue in the region of the bucket, which this version does not make',
    'docs/connect.md, “Another region or account”',
  );
};
