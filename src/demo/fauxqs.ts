/**
 * Assembles fauxqs from its parts. Its `startFauxqs` listens on all interfaces and gives no access to its stores, so the
 * embedded mode joins the same parts: the public `buildApp`, and five modules that the package does not export. These are
 * loaded by their paths in a checkout, from where the bundle takes them, and checked here; package.json pins the version of fauxqs.
 */
import { buildApp } from 'fauxqs';
import { z } from 'zod';
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Socket } from 'node:net';
import type { EmbeddedClock } from './clock.ts';

type Stores = NonNullable<NonNullable<Parameters<typeof buildApp>[0]>['stores']>;
type SnsStore = Stores['snsStore'];
export type SqsStore = Stores['sqsStore'];
export type S3Store = Stores['s3Store'];
export type S3Object = ReturnType<S3Store['headObject']>;
export type Persistence = NonNullable<SqsStore['persistence']>;
export type FauxqsApp = Awaited<ReturnType<typeof buildApp>>;

export interface Fauxqs {
  readonly app: FauxqsApp;
  readonly sqs: SqsStore;
  readonly sns: SnsStore;
  readonly s3: S3Store;
  /** Opens the database in a folder, or creates it. Throws if that fails. */
  open(folder: string): Persistence;
  /** SNS Publish. The message is delivered to the subscribed queues before it returns. Throws if `queueArn` is not one of them. */
  publish(notification: { readonly topicArn: string; readonly queueArn: string; readonly subject: string; readonly message: string }): void;
}

const isFunction = (value: unknown): boolean => typeof value === 'function';

const sqsModule = z.object({ SqsStore: z.custom<new () => SqsStore>(isFunction) });
const snsModule = z.object({ SnsStore: z.custom<new () => SnsStore>(isFunction) });
const s3Module = z.object({ S3Store: z.custom<new () => S3Store>(isFunction) });
const persistenceModule = z.object({ PersistenceManager: z.custom<new (folder: string) => Persistence>(isFunction) });
const publishModule = z.object({
  publish: z.custom<(parameters: Record<string, string>, sns: SnsStore, sqs: SqsStore) => string>(isFunction),
});

/** Creates a fauxqs with empty stores that does not listen yet. Throws if the installed fauxqs does not have the expected modules. */
export async function createFauxqs(region: string): Promise<Fauxqs> {
  const [{ SqsStore }, { SnsStore }, { S3Store }, { PersistenceManager }, { publish }] = await Promise.all([
    loaded(import('../../node_modules/fauxqs/dist/sqs/sqsStore.js'), sqsModule),
    loaded(import('../../node_modules/fauxqs/dist/sns/snsStore.js'), snsModule),
    loaded(import('../../node_modules/fauxqs/dist/s3/s3Store.js'), s3Module),
    loaded(import('../../node_modules/fauxqs/dist/persistence.js'), persistenceModule),
    loaded(import('../../node_modules/fauxqs/dist/sns/actions/publish.js'), publishModule),
  ]);
  const sqs = new SqsStore();
  const sns = new SnsStore();
  const s3 = new S3Store();
  const app = buildApp({ logger: false, defaultRegion: region, stores: { sqsStore: sqs, snsStore: sns, s3Store: s3 } });
  skipClosedConnections(app, sqs);
  return {
    app,
    sqs,
    sns,
    s3,
    open: (folder) => new PersistenceManager(folder),
    publish: ({ topicArn, queueArn, subject, message }) => {
      // like SNS, fauxqs accepts a message without subscribers and drops it
      const { subscriptions } = sns.listSubscriptionsByTopic(topicArn);
      const isHeard = subscriptions.some(({ endpoint }) => endpoint === queueArn) && sqs.getQueueByArn(queueArn) !== undefined;
      if (!isHeard) throw new Error(`${queueArn} is not subscribed to ${topicArn}`);
      publish({ TopicArn: topicArn, Subject: subject, Message: message }, sns, sqs);
    },
  };
}

async function loaded<Module>(module: Promise<unknown>, schema: z.ZodType<Module>): Promise<Module> {
  return schema.parse(await module);
}

// ── its queues: their addresses, and where they behave differently from SQS ────────────────────────────────────────

/** The account id of all resources in fauxqs. */
export const ACCOUNT = '000000000000';

export const embeddedQueues = { bucket: 'tally-bucket-events', deadLetters: 'tally-dead-letters' } as const;

/** The endpoint that clients on this machine use. */
export function embeddedEndpoint({ host, port }: { readonly host: string; readonly port: number }): string {
  return `http://${reachable(host)}:${port}`;
}

/** The host for a URL. For an address that means all interfaces it is loopback. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}

/** The URL of a queue. */
function embeddedQueueUrl(endpoint: string, name: string): string {
  return `${endpoint}/${ACCOUNT}/${name}`;
}

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
function skipClosedConnections(app: FauxqsApp, store: SqsStore): void {
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
