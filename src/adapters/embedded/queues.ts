/** Corrects fauxqs 2.4.1 where its queues behave differently from SQS. */
import { embeddedQueueUrl } from './addresses.ts';
import type { EmbeddedClock } from './clock.ts';
import type { Persistence, SqsStore } from './fauxqs.ts';

interface QueueCorrections {
  /** The present endpoint. All queue URLs begin with it, also those of queues that an earlier process created at another address. */
  readonly endpoint: string;
  /** The clock for SentTimestamp. */
  readonly moments: Pick<EmbeddedClock, 'nowMs'>;
}

/** Corrects the queues that the store loads or creates from now on. */
export function correctQueues(store: SqsStore, { endpoint, moments }: QueueCorrections): void {
  const createQueue = store.createQueue.bind(store);
  store.createQueue = (name, _url, ...rest) => {
    const queue = createQueue(name, embeddedQueueUrl(endpoint, name), ...rest);
    const enqueue = queue.enqueue.bind(queue);
    queue.enqueue = (message) => {
      // a message that is moved to the dead-letter queue keeps its SentTimestamp
      if (message.approximateReceiveCount === 0) message.sentTimestamp = Math.floor(moments.nowMs());
      enqueue(message);
    };
    return queue;
  };
}

/**
 * Prevents the loss of a message that is given back (visibility 0): fauxqs tries to store it without a receive count,
 * which its own table forbids. The stored row stays unchanged until the next receive, so after a restart the message is
 * still hidden until {@link releaseMessages}.
 */
export function keepGivenBack(persistence: Persistence): void {
  persistence.updateMessageReady = () => {};
}

/** Makes all messages visible, because the workers that held them before this start no longer run. */
export function releaseMessages(store: SqsStore): void {
  for (const queue of store.allQueues()) {
    for (const receiptHandle of queue.inflightMessages.keys()) queue.changeVisibility(receiptHandle, 0);
  }
}
