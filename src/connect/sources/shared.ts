/** What all buckets share: no apply makes it, so what is missing stops a plan or is not safe, and names the command that makes it. */
import { degraded, blocking, type Finding } from '../finding.rules.ts';
import { NOBODY, parseArn, snsPrincipals } from '../names.rules.ts';
import type { ObservedQueue } from '../parts.rules.ts';
import { sameStatements } from '../policy.rules.ts';
import { senders, setupCommand, withShared } from '../shared.rules.ts';
import { existing, queueIn, type Look } from './look.ts';
import { queuePolicy, topicPolicies, wrongAttributes } from './topic.ts';

export function sharedFindings(look: Look): readonly Finding[] {
  const { spec, desired } = look;
  // what a person has wired whole needs none of it
  if (desired.queues.length === 0) return [];
  const command = setupCommand(spec.region, parseArn(spec.queueArn)?.region ?? spec.region);
  const [lost, unsafe] = [needed(look), ofLetters(look)];
  const text = (names: readonly string[]): string => `something that all buckets share is missing or was changed: ${names.join(', ')}`;
  const how = 'If the Terraform module created it, apply that again';
  return [
    ...(lost.length === 0
      ? []
      : [blocking('connect.not-set-up', text(lost), `events do not reach the bucket queue as they should. ${how}`, command)]),
    ...(unsafe.length === 0
      ? []
      : [degraded('connect.letters-not-set-up', text(unsafe), `events that SNS and EventBridge cannot deliver are lost. ${how}`, command)]),
  ];
}

/** What an event needs on its way. */
function needed(look: Look): readonly string[] {
  const {
    spec: { queueArn, registry, topicArn },
    desired: { topic },
    observed,
  } = look;
  const names = [
    ...(registry === NOBODY.registry ? [`the tags of ${queueArn}`] : []),
    ...(isAdmitted(look, queueArn) ? [] : [`the policy of ${queueArn}`]),
  ];
  if (topic === undefined || topicArn !== undefined) return names;
  if (existing(observed.topic) === undefined) return [...names, `the topic ${topic.arn}`];
  const policies = topicPolicies(look);
  const isOpen = policies !== undefined && sameStatements(policies.before.Statement, policies.after.Statement);
  return [
    ...names,
    ...(isOpen ? [] : [`the policy of ${topic.arn}`]),
    ...(isDelivering(look) ? [] : [`the subscription of ${queueArn} to ${topic.arn}`]),
  ];
}

function isDelivering({ observed }: Look): boolean {
  const present = existing(observed.subscription);
  return present !== undefined && !present.isPending && wrongAttributes(present).length === 0;
}

/** What keeps that which could not be delivered. */
function ofLetters(look: Look): readonly string[] {
  const { spec, desired, observed } = look;
  const { topic, subscription } = desired;
  const present = existing(observed.subscription);
  const isOwn = topic !== undefined && spec.topicArn === undefined && subscription?.deadLetterArn !== undefined;
  const isWrong = isOwn && present !== undefined && present.deadLetterArn !== subscription.deadLetterArn;
  return [
    ...desired.queues
      .filter((arn) => arn !== spec.queueArn && !isAdmitted(look, arn))
      .map((arn) => `${queueIn(observed, arn) === undefined ? 'the queue' : 'the policy of'} ${arn}`),
    ...(isWrong ? [`the subscription of ${spec.queueArn} to ${topic.arn}`] : []),
  ];
}

/** Whether the queue exists, and its policy admits Tally's topics and rules. */
function isAdmitted(look: Look, queueArn: string): boolean {
  const { spec, observed } = look;
  const before = queueIn(observed, queueArn) && queuePolicy(look, queueArn);
  if (before === undefined) return false;
  const principals = snsPrincipals(spec.region, parseArn(queueArn)?.region ?? spec.region);
  return sameStatements(before.Statement, withShared(before, senders(spec, spec, queueArn, principals)).Statement);
}

/** The retention that SQS gives a new queue: an outage over a long weekend loses nothing. */
const RETENTION_MIN_S = 345_600;
const HOUR_S = 3_600;

/** The bucket queue, which every way of the events ends in, keeps messages for days, and has a dead-letter queue. */
export function queueFindings({ spec, observed }: Look): readonly Finding[] {
  const queue = queueIn(observed, spec.queueArn);
  if (queue === undefined) return [];
  const { arn, retentionS = RETENTION_MIN_S } = queue;
  const redrive = redriveText(queue, (each) => queueIn(observed, each) !== undefined);
  const setup = setupCommand(spec.region, spec.region);
  const why = 'a message that can never succeed is received again and again, until SQS deletes it';
  const kept = `SQS deletes events that nobody has received by then, for example in an outage. 4 days (${RETENTION_MIN_S} s), SQS's default, outlast a long weekend`;
  return [
    ...(redrive === undefined ? [] : [degraded('connect.redrive', redrive, why, setup)]),
    ...(retentionS >= RETENTION_MIN_S
      ? []
      : [degraded('connect.queue-retention', `${arn} keeps messages for only ${Math.floor(retentionS / HOUR_S)} hours`, kept, setup)]),
  ];
}

/** What is wrong with the redrive policy; undefined if nothing is. */
function redriveText({ arn, deadLetterArn }: ObservedQueue, isThere: (queueArn: string) => boolean): string | undefined {
  if (deadLetterArn === undefined || deadLetterArn === arn) return `${arn} has no dead-letter queue`;
  return isThere(deadLetterArn) ? undefined : `the dead-letter queue of ${arn}, ${deadLetterArn}, does not exist`;
}
