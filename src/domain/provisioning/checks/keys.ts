/** The checks for the keys that a topic or the queues are encrypted with: a service that may not use one loses its messages without an error. */
import { docsPage } from '../../doc-pages.ts';
import { admits, type Delivery, denialsOf } from '../denials.ts';
import { queueDeliveries, topicDeliveries, type Delivered } from '../deliveries.ts';
import type { Facts } from '../facts.ts';
import { parseArn } from '../names.ts';
import type { ObservedKey } from '../observed.ts';
import { parsePolicy } from '../policy.ts';
import { degraded, blocking, type Check, type Finding, showPolicy, broken } from './finding.ts';
import { sidsOf } from '../wiring.ts';

export const topicKey: Check = (facts) => keyFinding(facts, topicDeliveries(facts));

export const queueKey: Check = (facts) => keyFinding(facts, queueDeliveries(facts));

/** What a service does with a key to send to something that is encrypted with it. */
const ACTIONS = ['kms:GenerateDataKey', 'kms:Decrypt'] as const;

/** The first thing whose key is not known to be open to all that send to it. */
function keyFinding(facts: Facts, deliveries: readonly Delivered[]): Finding | undefined {
  const resources = new Set(deliveries.map(({ delivery }) => delivery.resource));
  for (const arn of resources) {
    const to = deliveries.filter(({ delivery }) => delivery.resource === arn);
    const key = to[0]?.kmsKeyId;
    if (key === undefined) continue;
    const senders = to.map(({ delivery }) => delivery);
    const finding = findingOf(facts, { arn, key, senders });
    if (finding !== undefined) return finding;
  }
  return undefined;
}

interface Encrypted {
  readonly arn: string;
  readonly key: string;
  readonly senders: readonly Delivery[];
}

function findingOf({ observed }: Facts, at: Encrypted): Finding | undefined {
  const found = observed.keys?.find(({ key }) => key === at.key);
  if (isManagedByAws(at.key) || found?.isManagedByAws === true) return managed(at);
  const services = at.senders.map(({ service }) => service);
  if (found === undefined) return unchecked(at, 'it was not read', services);
  if ('reason' in found) return unchecked(at, found.reason, services);
  const judged = (answer: ReturnType<typeof judge>): readonly string[] =>
    at.senders.filter((sender) => judge(found, sender) === answer).map(({ service }) => service);
  const [refused, open] = [judged('refused'), judged('unknown')];
  if (refused.length > 0) return denied(at, found.arn, refused);
  return open.length === 0 ? undefined : unchecked(at, 'its policy has conditions that cannot be judged here', open);
}

/** The keys that AWS makes for SNS and SQS. Their policies admit no service. */
export function isManagedByAws(key: string): boolean {
  return /alias\/aws\/(?:sns|sqs)$/.test(key);
}

/** Both actions must be allowed: one that is certainly refused decides. */
function judge({ arn, policy: text }: Extract<ObservedKey, { readonly policy: string }>, sender: Delivery) {
  const policy = parsePolicy(text);
  if (policy === undefined) return 'unknown';
  // the policy of a key is about this key, and the service is called for the same source
  const answers = ACTIONS.map((action) => admits(policy, { ...sender, action, resource: arn }));
  return answers.find((answer) => answer === 'refused') ?? answers.find((answer) => answer === 'unknown') ?? 'admitted';
}

function managed({ arn, key }: Encrypted): Finding {
  return blocking(
    'connect.kms-managed-key',
    `${arn} is encrypted with ${key}`,
    'the policy of this key cannot be changed, so no service may send: messages are lost without an error',
    `see ${docsPage('docs/guides/by-hand.md#encryption-with-your-own-key')}`,
  );
}

function denied({ arn, key }: Encrypted, keyArn: string, services: readonly string[]): Finding {
  return broken(
    'connect.kms-denied',
    `${arn} is encrypted with the key ${key} (${keyArn}), whose policy does not let ${services.join(' and ')} use it`,
    'what is sent is lost without an error. Add this statement to the policy of the key, or change the one that denies',
    JSON.stringify(statementFor(services)),
  );
}

function unchecked({ arn, key }: Encrypted, reason: string, services: readonly string[]): Finding {
  return degraded(
    'connect.kms-unchecked',
    `${arn} is encrypted with the key ${key} in ${parseArn(arn)?.region ?? ''}, and whether ${services.join(' and ')} may use it is not known: ${reason}`,
    'the services that send must be allowed to use the key, or messages are lost without an error',
    JSON.stringify(statementFor(services)),
  );
}

/** For those that send, and no others. */
function statementFor(services: readonly string[]): object {
  return { Effect: 'Allow', Principal: { Service: services.length === 1 ? services[0] : services }, Action: [...ACTIONS], Resource: '*' };
}

/** The check for statements of others that deny what must be delivered. They are named, and never removed. */

export const deliveryDenied: Check = (facts) => {
  const found = [...topicDeliveries(facts), ...queueDeliveries(facts)].flatMap((delivered) => deniedByPolicy(facts, delivered));
  // what keeps all events away comes before what only loses undeliverable ones
  return found.find(({ blocks }) => blocks) ?? found[0];
};

function deniedByPolicy({ wish }: Facts, { delivery, policy: text }: Delivered): readonly Finding[] {
  const policy = parsePolicy(text);
  if (policy === undefined) return [];
  const ours = new Set([...sidsOf(wish).all, ...sidsOf(wish).ofTopics]);
  const [statement] = denialsOf(policy, delivery, ours);
  if (statement === undefined) return [];
  const { service, action, resource } = delivery;
  const isDeadLetters = resource === wish.deadLetterArn;
  return [
    {
      code: 'connect.denied-by-policy',
      severity: isDeadLetters ? 'degraded' : 'broken',
      what: `a statement of others in the policy of ${resource} denies ${action} to ${service}: ${JSON.stringify(statement)}`,
      why: `a Deny wins over what Tally allows, so ${isDeadLetters ? 'what cannot be delivered is lost' : 'no events pass'}. Tally never changes statements of others: ask the owner of this one to exempt ${service}`,
      fix: showPolicy(resource),
      blocks: !isDeadLetters,
    },
  ];
}
