/** The check for statements of others that deny what must be delivered. They are named, and never removed. */
import { denialsOf, type Delivery } from '../denials.ts';
import { existing, queueOf, type Facts } from '../facts.ts';
import { prefixOf } from '../names.ts';
import { parsePolicy } from '../policy.ts';
import { sidsOf } from '../wiring.ts';
import { showPolicy, type Check, type Finding } from './finding.ts';

export const deliveryDenied: Check = (facts) => {
  const found = [...topicDeliveries(facts), ...queueDeliveries(facts)].flatMap(({ policy, ...delivery }) =>
    denied(facts, policy, delivery),
  );
  // what keeps all events away comes before what only loses undeliverable ones
  return found.find(({ blocks }) => blocks) ?? found[0];
};

type Delivered = Delivery & { readonly policy: string | undefined };

/** What is published to the topic. EventBridge names no source to SNS. */
function topicDeliveries({ wish, wiring: { subscription }, observed }: Facts): readonly Delivered[] {
  const topic = existing(observed.topic);
  if (subscription === undefined || topic === undefined) return [];
  const to = { action: 'sns:Publish', resource: subscription.topicArn, policy: topic.policy };
  if (wish.source === 'routed') return [{ ...to, service: 'events.amazonaws.com' }];
  const source = { sourceArn: `arn:${wish.partition}:s3:::${wish.bucket}`, sourceAccount: wish.bucketAccount };
  return [{ ...to, ...source, service: 's3.amazonaws.com' }];
}

/** What SNS and EventBridge send to the queues. */
function queueDeliveries({ wiring: { queues, subscription, rule }, observed }: Facts): readonly Delivered[] {
  return queues.flatMap(({ arn, senders }) => {
    const queue = queueOf(observed, arn);
    if (queue === undefined) return [];
    const to = { action: 'sqs:SendMessage', resource: arn, policy: queue.policy };
    const topics = senders.topics?.principals ?? [];
    return [
      ...topics.map((service) => ({ ...to, service, ...(subscription && { sourceArn: subscription.topicArn }) })),
      ...(senders.rules === true ? [{ ...to, service: 'events.amazonaws.com', ...(rule && { sourceArn: rule.arn }) }] : []),
    ];
  });
}

function denied({ wish }: Facts, text: string | undefined, delivery: Delivery): readonly Finding[] {
  const policy = parsePolicy(text);
  if (policy === undefined) return [];
  const ours = new Set([...sidsOf(wish.installation).all, prefixOf(wish.installation)]);
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
