/** The queues of a bench in fauxqs, as a user has them, and what they hold. */
import type { SqsStore } from '../../src/demo/fauxqs.ts';

type BucketQueue = ReturnType<SqsStore['createQueue']>;

/** A bucket queue whose letters go to its dead-letter queue after 20 receives. */
export function createBucketQueue(sqs: SqsStore, endpoint: string, name: string): BucketQueue {
  const create = (queue: string, attributes: Readonly<Record<string, string>> = {}): BucketQueue =>
    sqs.createQueue(queue, `${endpoint}/000000000000/${queue}`, `arn:aws:sqs:us-east-1:000000000000:${queue}`, {
      MessageRetentionPeriod: '1209600',
      ...attributes,
    });
  const letters = create(`${name}-dead-letters`);
  return create(name, { RedrivePolicy: JSON.stringify({ deadLetterTargetArn: letters.arn, maxReceiveCount: 20 }) });
}
