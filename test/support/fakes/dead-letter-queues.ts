/** What the watch of the queues knows of dead-letter queues, as a test says it. */
import type { QueueAttributes, QueueClient } from '../../../src/aws/queues.ts';
import type { DeadLetterQueue, QueueWatch } from '../../../src/observing/queue-watch.ts';

export interface FakeDeadLetterQueue {
  readonly queueUrl: string;
  /** The bucket queues whose redrive policy names it. */
  readonly of: readonly string[];
  readonly attributes?: Partial<QueueAttributes>;
}

/** The watch; letters of a bucket queue go to its own redrive target, else to the first of these. */
export function fakeDeadLetterQueues(
  ...queues: readonly FakeDeadLetterQueue[]
): Pick<QueueWatch, 'deadLetterQueues' | 'deadLetterQueueOf'> {
  const all = queues.map(({ queueUrl, of, attributes }) => ({
    queueUrl,
    bucketQueueUrls: of,
    attributes: { visible: 0, inFlight: 0, delayed: 0, visibilityTimeoutS: 30, ...attributes },
  }));
  return { deadLetterQueues: () => all, deadLetterQueueOf: (url) => all.find((each) => each.bucketQueueUrls.includes(url)) ?? all[0] };
}

/** The dead-letter queues with the numbers that they have now. */
export async function readNow(queues: QueueClient, ...known: readonly FakeDeadLetterQueue[]): Promise<readonly DeadLetterQueue[]> {
  return Promise.all(
    known.map(async ({ queueUrl, of, attributes }) => {
      const { visible, inFlight } = await queues.attributes(queueUrl);
      return { queueUrl, bucketQueueUrls: of, attributes: { visible, inFlight, delayed: 0, visibilityTimeoutS: 30, ...attributes } };
    }),
  );
}
