/**
 * Assembles fauxqs from its parts. Its `startFauxqs` listens on all interfaces and gives no access to its stores, so the
 * embedded mode joins the same parts: the public `buildApp`, and five modules that the package does not export. These are
 * loaded by their paths in a checkout, from where the bundle takes them, and checked here; package.json pins the version of fauxqs.
 */
import { buildApp } from 'fauxqs';
import { z } from 'zod';
import { skipClosedConnections } from './queues.ts';

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
