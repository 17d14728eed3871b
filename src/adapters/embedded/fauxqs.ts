/**
 * fauxqs' own parts. Its `startFauxqs` listens on every interface and keeps its stores to itself, so the embedded mode
 * assembles the same parts as it does: the public `buildApp`, and four modules that the package does not export. They are
 * loaded by file address and checked here; package.json pins the version that they were read from.
 */
import { buildApp } from 'fauxqs';
import { z } from 'zod';

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
  /** Opens (or makes) the database in a folder. Throws where that cannot be done. */
  open(folder: string): Persistence;
  /** SNS Publish, delivered to the subscribed queues before it returns. Throws when `queueArn` is none of them. */
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

/** Builds a fauxqs with empty stores that does not listen yet. Throws when the installed fauxqs is not built as expected. */
export async function createFauxqs(region: string): Promise<Fauxqs> {
  const [{ SqsStore }, { SnsStore }, { S3Store }, { PersistenceManager }, { publish }] = await Promise.all([
    load('./sqs/sqsStore.js', sqsModule),
    load('./sns/snsStore.js', snsModule),
    load('./s3/s3Store.js', s3Module),
    load('./persistence.js', persistenceModule),
    load('./sns/actions/publish.js', publishModule),
  ]);
  const sqs = new SqsStore();
  const sns = new SnsStore();
  const s3 = new S3Store();
  const app = buildApp({ logger: false, defaultRegion: region, stores: { sqsStore: sqs, snsStore: sns, s3Store: s3 } });
  return {
    app,
    sqs,
    sns,
    s3,
    open: (folder) => new PersistenceManager(folder),
    publish: ({ topicArn, queueArn, subject, message }) => {
      // SNS, and fauxqs with it, takes what nobody is subscribed to and drops it
      const { subscriptions } = sns.listSubscriptionsByTopic(topicArn);
      const isHeard = subscriptions.some(({ endpoint }) => endpoint === queueArn) && sqs.getQueueByArn(queueArn) !== undefined;
      if (!isHeard) throw new Error(`${queueArn} is not subscribed to ${topicArn}`);
      publish({ TopicArn: topicArn, Subject: subject, Message: message }, sns, sqs);
    },
  };
}

async function load<Module>(path: string, schema: z.ZodType<Module>): Promise<Module> {
  const loaded: unknown = await import(new URL(path, import.meta.resolve('fauxqs')).href);
  return schema.parse(loaded);
}
