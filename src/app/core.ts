/** The parts that a serving process and the command line share, built once and joined by hand. */
import { join } from 'node:path';
import type { AwsClients } from '../adapters/aws/clients.ts';
import { createAwsClients } from '../adapters/aws/clients.ts';
import { embeddedEndpoint, embeddedQueues, embeddedQueueUrl } from '../adapters/embedded/addresses.ts';
import type { Embedded } from '../adapters/embedded/server.ts';
import { createS3Storage } from '../adapters/aws/s3-storage.ts';
import { createSnsTopics } from '../adapters/aws/sns-topics.ts';
import { createSqliteStore } from '../adapters/sqlite/store.ts';
import { createSqsClient } from '../adapters/aws/sqs-client.ts';
import { systemClock } from '../adapters/system-clock.ts';
import { createTelemetry } from '../adapters/telemetry/facts.ts';
import { indexNodes } from '../settings/urls.ts';
import type { AwsEnvironment, Settings } from '../settings/settings.ts';
import { FaultError } from '../domain/fault.ts';
import { createConnectBucket, type ConnectBucket } from '../pipeline/buckets/connect.ts';
import type { Control } from '../pipeline/control/control.ts';
import { createControl } from '../pipeline/control/create.ts';
import { createDeadLetters } from '../pipeline/letters/letters.ts';
import { createGapReports, type GapReports } from '../pipeline/gaps/reports.ts';
import type { ObjectStorage } from '../pipeline/ports/storage.ts';
import type { Store } from '../pipeline/ports/store.ts';
import type { Telemetry } from '../pipeline/ports/telemetry.ts';
import type { QueueClient } from '../pipeline/ports/queues.ts';
import type { Tracing } from '../pipeline/ports/tracing.ts';
import { createQueueWatch, type QueueWatch } from '../pipeline/queues/watch.ts';
import { createSendTask, type SendTask } from '../pipeline/reindex-jobs/tasks.ts';

/** Where AWS's services are for this process. */
export interface AwsAddresses {
  readonly region: string;
  readonly endpoints: AwsEnvironment['endpoints'];
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string };
  readonly forcePathStyle: boolean;
}

/** The parts that a serving process and the command line share. */
export interface Core {
  readonly store: Store;
  readonly aws: AwsClients;
  readonly storage: ObjectStorage;
  readonly queues: QueueClient;
  readonly queueWatch: QueueWatch;
  readonly connectBucket: ConnectBucket;
  readonly gaps: GapReports;
  readonly deadLetters: ReturnType<typeof createDeadLetters>;
  readonly control: Control;
  /** Absent: there is no work queue. */
  readonly sendTask: SendTask | undefined;
  close(): Promise<void>;
}

/** The bucket and work queues, from the settings or the embedded server. */
export interface Queues {
  readonly bucket: readonly string[];
  readonly work: string | undefined;
  readonly deadLetter: string | undefined;
}

/** Where the index is: the setting, else the embedded file. */
export function indexUrl(settings: Settings): string {
  return settings.TALLY_INDEX_URL ?? `sqlite:${join(settings.TALLY_EMBEDDED_DATA, 'index.sqlite')}`;
}

/** The path of a SQLite index, or undefined for OpenSearch. */
export function sqlitePath(settings: Settings): string | undefined {
  const url = indexUrl(settings);
  return url.startsWith('sqlite:') ? url.slice('sqlite:'.length) : undefined;
}

/** AWS's addresses from the SDK's own variables, or those of the embedded server. */
export function awsAddresses(settings: Settings, environment: AwsEnvironment, ownEndpoint: string | undefined): AwsAddresses {
  if (ownEndpoint !== undefined) {
    return {
      region: environment.region,
      endpoints: { sqs: ownEndpoint, sns: ownEndpoint, s3: ownEndpoint },
      // fauxqs checks no signature, yet the SDK needs something to sign with
      credentials: { accessKeyId: 'embedded', secretAccessKey: 'embedded' },
      forcePathStyle: true,
    };
  }
  const { region, endpoints } = environment;
  return { region, endpoints, forcePathStyle: settings.TALLY_S3_FORCE_PATH_STYLE ?? endpoints.s3 !== undefined };
}

/** The queues of a process that is not embedded. */
export function queuesOf(settings: Settings, embedded?: Embedded): Queues {
  if (embedded !== undefined) return { bucket: [embedded.queueUrl], work: embedded.workQueueUrl, deadLetter: embedded.deadLetterQueueUrl };
  return { bucket: settings.TALLY_QUEUE_URL, work: settings.TALLY_WORK_QUEUE_URL, deadLetter: settings.TALLY_DEAD_LETTER_QUEUE_URL };
}

/** Builds the shared parts. Nothing is connected or read before it is used. */
export async function createCore(
  settings: Settings,
  addresses: AwsAddresses,
  { queues: queueUrls, telemetry, tracing }: { readonly queues: Queues; readonly telemetry: Telemetry; readonly tracing?: Tracing },
): Promise<Core> {
  const clock = systemClock;
  const store = await createStore(settings, addresses.region);
  const aws = createAwsClients({
    ...addresses,
    s3: {
      forcePathStyle: addresses.forcePathStyle,
      timeoutMs: settings.TALLY_S3_TIMEOUT_MS,
      connectionsMax: s3Connections(settings),
    },
    // and one for the work queue
    sqs: { receivesMax: settings.TALLY_INGEST_POLLERS * Math.max(1, queueUrls.bucket.length) + 1, waitS: settings.TALLY_INGEST_WAIT_S },
  });
  const storage = createS3Storage({ clientFor: aws.s3For, region: addresses.region, clock, ...(tracing && { tracing }) });
  const queues = createSqsClient({ clientFor: aws.sqsFor, clock });
  const queueWatch = createQueueWatch({
    queues,
    clock,
    telemetry,
    bucketQueueUrls: queueUrls.bucket,
    workQueueUrl: queueUrls.work,
    deadLetterQueueUrl: queueUrls.deadLetter,
  });
  const { state, objects } = store;
  const gaps = createGapReports({ state, clock, telemetry });
  const connectBucket = createConnectBucket({ state, objects, storage, gaps, clock, telemetry });
  const deadLetters = createDeadLetters({
    queues,
    state,
    telemetry,
    deadLetterQueueUrl: () => queueWatch.deadLetterQueueUrl,
    bucketQueueUrls: queueUrls.bucket,
  });
  const sendTask = queueUrls.work === undefined ? undefined : createSendTask(queues, queueUrls.work);
  const control = createControl({ store, storage, clock, telemetry, sendTask, connectBucket, deadLetters });
  return {
    store,
    aws,
    storage,
    queues,
    queueWatch,
    connectBucket,
    gaps,
    deadLetters,
    control,
    sendTask,
    async close() {
      aws.close();
      await store.close();
    },
  };
}

/** HEADs of sweeps at once: a quarter of what live events have. */
export const SWEEP_HEADS = 8;

/** Each for its own: a HEAD for a live event must not wait for a listing to end. */
function s3Connections(settings: Settings): number {
  const { TALLY_S3_HEAD_CONCURRENCY: heads, TALLY_REINDEX_LISTINGS: listings, TALLY_REINDEX_HEAD_CONCURRENCY: reindexHeads } = settings;
  return heads + (settings.TALLY_ROLES.includes('reindex') ? listings + reindexHeads + SWEEP_HEADS : 0);
}

/** SNS, for confirming subscriptions. */
export function createTopics(core: Core): ReturnType<typeof createSnsTopics> {
  return createSnsTopics({ clientFor: core.aws.snsFor });
}

async function createStore(settings: Settings, region: string): Promise<Store> {
  const path = sqlitePath(settings);
  if (path !== undefined) return createSqliteStore({ path });
  // its client is 550 modules, a fifth of the time to start
  const { createOpenSearchStore } = await import('../adapters/opensearch/store.ts');
  return createOpenSearchStore({
    urls: indexNodes(indexUrl(settings)),
    caFile: settings.TALLY_INDEX_CA_FILE,
    signing: settings.TALLY_INDEX_AUTH === 'sigv4' ? { region } : undefined,
    prefix: settings.TALLY_INDEX_PREFIX,
    shards: settings.TALLY_INDEX_SHARDS,
    replicas: settings.TALLY_INDEX_REPLICAS,
    clock: systemClock,
  });
}

/** The control plane's functions for one command; close() ends its connections. */
export interface OpenedControl {
  readonly control: Control;
  close(): Promise<void>;
}

/**
 * Opens the control plane for a command: on the index and queues of the settings, or, where these name neither, on those
 * of a `tally serve --embedded` beside it. Nothing is connected or read before it is used.
 */
export async function openControl(settings: Settings, environment: AwsEnvironment): Promise<OpenedControl> {
  const isEmbedded = settings.TALLY_EMBEDDED || (settings.TALLY_INDEX_URL === undefined && settings.TALLY_QUEUE_URL.length === 0);
  const endpoint = isEmbedded ? embeddedEndpoint(settings.TALLY_EMBEDDED_ADDRESS) : undefined;
  const queues = endpoint === undefined ? queuesOf(settings) : embeddedQueuesAt(endpoint);
  // a command tells by its output and exit code
  const { telemetry } = createTelemetry({ level: 'silent', clock: systemClock });
  const core = await createCore(settings, awsAddresses(settings, environment, endpoint), { queues, telemetry });
  return { control: { ...core.control, deadLetters: findingTheirQueue(core) }, close: () => core.close() };
}

function embeddedQueuesAt(endpoint: string): Queues {
  return {
    bucket: [embeddedQueueUrl(endpoint, embeddedQueues.bucket)],
    work: embeddedQueueUrl(endpoint, embeddedQueues.work),
    deadLetter: embeddedQueueUrl(endpoint, embeddedQueues.deadLetters),
  };
}

/** Reads the bucket queue's redrive policy first, once, where no setting names the dead-letter queue. */
function findingTheirQueue({ deadLetters, queueWatch }: Core): Control['deadLetters'] {
  async function find(): Promise<void> {
    if (queueWatch.deadLetterQueueUrl !== undefined) return;
    const once = new AbortController();
    await queueWatch.start(once.signal);
    once.abort();
    const fault = queueWatch.fault();
    if (fault !== undefined && queueWatch.deadLetterQueueUrl === undefined) throw new FaultError(fault.code, fault.reason);
  }

  return {
    list: (...request) => find().then(() => deadLetters.list(...request)),
    show: (...request) => find().then(() => deadLetters.show(...request)),
    replay: (...request) => find().then(() => deadLetters.replay(...request)),
    discard: (...request) => find().then(() => deadLetters.discard(...request)),
  };
}
