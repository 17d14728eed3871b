/** What services send so that events pass: whom the policies of topics, queues and their keys must let through. */
import { admits, type Delivery } from './denials.ts';
import { existing, queueOf, type Facts } from './facts.ts';
import { markOf, otherInstallationOf, type Owner } from './names.ts';
import { parsePolicy, withStatements, type Policy, type Statement } from './policy.ts';

/** A delivery with what is known about where it goes. */
export interface Delivered {
  readonly delivery: Delivery;
  /** The policy of the topic or queue. */
  readonly policy?: string | undefined;
  /** The key that it is encrypted with, as its attributes name it. */
  readonly kmsKeyId?: string | undefined;
}

/** What is published to the topic. EventBridge names no source to SNS. */
export function topicDeliveries({ wish, wiring: { subscription, rule }, observed }: Facts): readonly Delivered[] {
  const topic = existing(observed.topic);
  if (subscription === undefined || topic === undefined) return [];
  const { policy, kmsKeyId } = topic;
  const to = { action: 'sns:Publish', resource: subscription.topicArn };
  const source = { sourceArn: `arn:${wish.partition}:s3:::${wish.bucket}`, sourceAccount: wish.bucketAccount };
  const delivery = rule !== undefined ? { ...to, service: 'events.amazonaws.com' } : { ...to, ...source, service: 's3.amazonaws.com' };
  return [{ delivery, policy, kmsKeyId }];
}

/** What SNS and EventBridge send to the queues. */
export function queueDeliveries({ wiring: { queues, subscription, rule }, observed }: Facts): readonly Delivered[] {
  const ruleArn = rule?.arn;
  return queues.flatMap(({ arn, senders }) => {
    const queue = queueOf(observed, arn);
    if (queue === undefined) return [];
    const to = { action: 'sqs:SendMessage', resource: arn };
    const deliveries: readonly Delivery[] = [
      ...(senders.topics?.principals ?? []).map((service) => ({
        ...to,
        service,
        ...(subscription && { sourceArn: subscription.topicArn }),
      })),
      ...(senders.rules !== undefined
        ? [{ ...to, service: 'events.amazonaws.com', ...(ruleArn !== undefined && { sourceArn: ruleArn }) }]
        : []),
    ];
    return deliveries.map((delivery) => ({ delivery, policy: queue.policy, kmsKeyId: queue.kmsKeyId }));
  });
}

/** The policy of the wired topic as it is, and as it must be; undefined if there is no such topic, or its policy cannot be read. */
export function topicPolicies({ wish, wiring, observed }: Facts): { readonly before: Policy; readonly after: Policy } | undefined {
  const { topic } = wiring;
  const present = existing(observed.topic);
  if (topic === undefined) return undefined;
  // a topic that Tally makes first gets its policy afterwards
  if (present === undefined) return topic.isForeign === true ? undefined : policiesOf({ Statement: [] }, topic.statements);
  const before = parsePolicy(present.policy);
  if (before === undefined) return undefined;
  const [delivered] = topicDeliveries({ wish, wiring, observed });
  const isOpen =
    topic.isForeign === true && delivered !== undefined && admits(withoutOthers(before, wish), delivered.delivery) === 'admitted';
  return policiesOf(before, isOpen ? topic.statements.filter(({ Sid }) => Sid !== markOf(wish)) : topic.statements);
}

/** What another registry of Tally has in the policy goes with its last bucket. */
function withoutOthers(policy: Policy, owner: Owner): Policy {
  return { ...policy, Statement: policy.Statement.filter(({ Sid = '' }) => otherInstallationOf(Sid, owner) === undefined) };
}

function policiesOf(before: Policy, statements: readonly Statement[]): { readonly before: Policy; readonly after: Policy } {
  return {
    before,
    after: withStatements(before, statements),
  };
}
