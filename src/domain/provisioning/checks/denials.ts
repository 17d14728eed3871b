/** The check for statements of others that deny what must be delivered. They are named, and never removed. */
import { denialsOf } from '../denials.ts';
import { queueDeliveries, topicDeliveries, type Delivered } from '../deliveries.ts';
import type { Facts } from '../facts.ts';
import { parsePolicy } from '../policy.ts';
import { sidsOf } from '../wiring.ts';
import { showPolicy, type Check, type Finding } from './finding.ts';

export const deliveryDenied: Check = (facts) => {
  const found = [...topicDeliveries(facts), ...queueDeliveries(facts)].flatMap((delivered) => denied(facts, delivered));
  // what keeps all events away comes before what only loses undeliverable ones
  return found.find(({ blocks }) => blocks) ?? found[0];
};

function denied({ wish }: Facts, { delivery, policy: text }: Delivered): readonly Finding[] {
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
