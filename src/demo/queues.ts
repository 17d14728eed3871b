/** Corrects fauxqs 2.4.1 where its queues behave differently from SQS. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Socket } from 'node:net';
import { embeddedQueueUrl } from './addresses.ts';
import type { EmbeddedClock } from './clock.ts';
import type { FauxqsApp, Persistence, SqsStore } from './fauxqs.ts';

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
 * Gives no message to a request whose connection was closed. fauxqs does not notice that the client of a long poll has gone,
 * and for up to 20 s would hide the next message for it, until the visibility time-out. The poll itself still ends by its
 * wait. It must be called before the app listens and the store has queues.
 */
export function skipClosedConnections(app: FauxqsApp, store: SqsStore): void {
  const connection = new AsyncLocalStorage<Socket>();
  app.addHook('preHandler', (request, _reply, done) => connection.run(request.raw.socket, done));

  const createQueue = store.createQueue.bind(store);
  store.createQueue = (...parameters) => {
    const queue = createQueue(...parameters);
    const dequeue = queue.dequeue.bind(queue);
    // no turn of the event loop is between this and the answer
    queue.dequeue = (...limits) => (connection.getStore()?.writable === false ? [] : dequeue(...limits));
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
