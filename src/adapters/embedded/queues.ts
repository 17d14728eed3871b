/** What fauxqs 2.4.1 keeps of queues otherwise than SQS does, put right. */
import { embeddedQueueUrl } from './addresses.ts';
import type { EmbeddedClock } from './clock.ts';
import type { Persistence, SqsStore } from './fauxqs.ts';

interface QueueCorrections {
  /** Where queues are reached now: their URLs begin with it, also of those that an earlier process made at another address. */
  readonly endpoint: string;
  /** The time of SentTimestamp. */
  readonly moments: Pick<EmbeddedClock, 'nowMs'>;
}

/** Corrects the store's queues: those loaded and those made from now on. */
export function correctQueues(store: SqsStore, { endpoint, moments }: QueueCorrections): void {
  const createQueue = store.createQueue.bind(store);
  store.createQueue = (name, _url, ...rest) => {
    const queue = createQueue(name, embeddedQueueUrl(endpoint, name), ...rest);
    const enqueue = queue.enqueue.bind(queue);
    queue.enqueue = (message) => {
      // a message that moves to the dead-letter queue keeps its time
      if (message.approximateReceiveCount === 0) message.sentTimestamp = Math.floor(moments.nowMs());
      enqueue(message);
    };
    return queue;
  };
}

/**
 * Keeps a message that is given back (visibility 0): fauxqs tries to store it with no receive count, which its own table
 * forbids, and loses the message. Its row stays as it is until the next receive; {@link releaseMessages} makes up for that.
 */
export function keepGivenBack(persistence: Persistence): void {
  persistence.updateMessageReady = () => {};
}

/** Makes all messages visible: whoever held one before this start is gone. */
export function releaseMessages(store: SqsStore): void {
  for (const queue of store.allQueues()) {
    for (const receiptHandle of queue.inflightMessages.keys()) queue.changeVisibility(receiptHandle, 0);
  }
}
