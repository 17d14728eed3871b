/** What services send so that events pass: whom the policies of topics, queues and their keys must let through. */
import type { Delivery } from './denials.ts';
import { existing, queueOf, type Facts } from './facts.ts';

/** A delivery with what is known about where it goes. */
export interface Delivered {
  readonly delivery: Delivery;
  /** The policy of the topic or queue. */
  readonly policy?: string | undefined;
  /** The key that it is encrypted with, as its attributes name it. */
  readonly kmsKeyId?: string | undefined;
}

/** What is published to the topic. EventBridge names no source to SNS. */
export function topicDeliveries({ wish, wiring: { subscription }, observed }: Facts): readonly Delivered[] {
  const topic = existing(observed.topic);
  if (subscription === undefined || topic === undefined) return [];
  const { policy, kmsKeyId } = topic;
  const to = { action: 'sns:Publish', resource: subscription.topicArn };
  const source = { sourceArn: `arn:${wish.partition}:s3:::${wish.bucket}`, sourceAccount: wish.bucketAccount };
  const delivery =
    wish.source === 'routed' ? { ...to, service: 'events.amazonaws.com' } : { ...to, ...source, service: 's3.amazonaws.com' };
  return [{ delivery, policy, kmsKeyId }];
}

/** What SNS and EventBridge send to the queues. */
export function queueDeliveries({ wiring: { queues, subscription, rule }, observed }: Facts): readonly Delivered[] {
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
      ...(senders.rules === true ? [{ ...to, service: 'events.amazonaws.com', ...(rule && { sourceArn: rule.arn }) }] : []),
    ];
    return deliveries.map((delivery) => ({ delivery, policy: queue.policy, kmsKeyId: queue.kmsKeyId }));
  });
}
