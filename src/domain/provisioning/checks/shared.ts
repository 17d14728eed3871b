/** What all buckets share and the wish needs: no apply makes it, so what is missing stops a plan, and names the command that makes it. */
import { existing, queueOf, queuePolicies, subscriptionAttributes, topicPolicies, type Facts } from '../facts.ts';
import { NOBODY, parseArn } from '../names.ts';
import { sameStatements } from '../policy.ts';
import { setupCommand } from '../shared.ts';
import { blocking, degraded, type Finding } from './finding.ts';

export function sharedFindings(facts: Facts): readonly Finding[] {
  const { wish, wiring } = facts;
  // what a person has wired whole needs none of it
  if (wiring.entry === undefined && wiring.rule === undefined && wiring.subscription === undefined) return [];
  const command = setupCommand(wish.region, parseArn(wish.queueArn)?.region ?? wish.region);
  const [lost, unsafe] = [needed(facts), ofLetters(facts)].map((names) => names.join(', '));
  const text = (names: string): string => `what all buckets share is missing or was altered: ${names}`;
  const how = 'Where the Terraform module made it, apply that again';
  return [
    ...(lost === undefined || lost === ''
      ? []
      : [blocking('connect.not-set-up', text(lost), `events do not reach the bucket queue as they must. ${how}`, command)]),
    ...(unsafe === undefined || unsafe === ''
      ? []
      : [degraded('connect.letters-not-set-up', text(unsafe), `what SNS and EventBridge cannot deliver is lost. ${how}`, command)]),
  ];
}

/** What an event needs on its way. */
function needed(facts: Facts): readonly string[] {
  const { wish, wiring, observed } = facts;
  const { topic, subscription } = wiring;
  const { queueArn } = wish;
  const names = [
    ...(wish.registry === NOBODY.registry ? [`the tags of ${queueArn}`] : []),
    ...wiring.queues.flatMap((queue) => (queue.arn === queueArn && !isAdmitted(facts, queue) ? [`the policy of ${queueArn}`] : [])),
  ];
  if (topic === undefined || topic.isForeign === true || subscription === undefined) return names;
  if (existing(observed.topic) === undefined) return [...names, `the topic ${topic.arn}`];
  const policies = topicPolicies(facts);
  const isOpen = policies !== undefined && sameStatements(policies.before.Statement, policies.after.Statement);
  return [
    ...names,
    ...(isOpen ? [] : [`the policy of ${topic.arn}`]),
    ...(isDelivering(facts) ? [] : [`the subscription of ${queueArn} to ${topic.arn}`]),
  ];
}

function isDelivering({ observed }: Facts): boolean {
  const present = existing(observed.subscription);
  return present !== undefined && !present.isPending && Object.keys(subscriptionAttributes(present, {})[0]).length === 0;
}

/** What keeps that which could not be delivered. */
function ofLetters(facts: Facts): readonly string[] {
  const { wish, wiring, observed } = facts;
  const { topic, subscription } = wiring;
  const present = existing(observed.subscription);
  const isOwn = topic !== undefined && topic.isForeign !== true && subscription !== undefined;
  const isWrong = isOwn && present !== undefined && 'RedrivePolicy' in subscriptionAttributes(present, subscription)[0];
  return [
    ...wiring.queues
      .filter((queue) => queue.arn !== wish.queueArn && queue.senders.length > 0 && !isAdmitted(facts, queue))
      .map(({ arn }) => `${queueOf(observed, arn) === undefined ? 'the queue' : 'the policy of'} ${arn}`),
    ...(isWrong ? [`the subscription of ${wish.queueArn} to ${topic.arn}`] : []),
  ];
}

function isAdmitted(facts: Facts, queue: Facts['wiring']['queues'][number]): boolean {
  if (queueOf(facts.observed, queue.arn) === undefined) return false;
  const { before, shared } = queuePolicies(facts, queue);
  return sameStatements(before.Statement, shared.Statement);
}
