/** The parts of a serving process, and what `tally setup` has of them. */
import { hostname } from 'node:os';
import { chainCredentials, createAwsClients } from '../aws/clients.ts';
import type { CredentialsProvider } from '../aws/credentials.ts';
import { regionInQueueUrl } from '../aws/addresses.rules.ts';
import { readSharedConfig, type SharedConfig } from '../aws/shared-config.ts';
import type { Embedded } from '../demo/server.ts';
import { defined } from '../base/defined.ts';
import { createProvisioner } from '../connect/aws/provisioner.ts';
import { createSharedParts } from '../connect/aws/shared-parts.ts';
import { createS3Lifecycle, createS3Storage } from '../aws/s3-storage.ts';
import { createS3Listing } from '../aws/s3-listing.ts';
import { confirmSubscription, createSqsClient } from '../aws/sqs-client.ts';
import { createSqliteStore } from '../store/sqlite/store.ts';
import { createSetClock, systemClock } from '../process/clock.ts';
import type { IndexLocation } from '../settings/urls.ts';
import { type AwsEnvironment, withoutProxyFor, type OuterEnvironment, type ProxyVariables } from '../settings/environment.ts';
import { loginRulesOf } from '../settings/identity.ts';
import { HEADS, REINDEX_HEADS, REINDEX_LISTINGS, S3_TIMEOUT_MS, SWEEP_HEADS } from './limits.ts';
import { type Settings, embeddedIndexPath } from '../settings/settings.ts';
import { isAwsEndpoint } from '../connect/names.rules.ts';
import { createProcesses } from '../observing/processes.ts';
import { createConnectBucket } from '../connect/connect.ts';
import { createReindexJobs } from '../repair/job-requests.ts';
import { createOperations } from '../registry/operations/operations.ts';
import { urlOf } from '../registry/server.ts';
import { createDeadLetters } from '../repair/dead-letters.ts';
import { createGapReports } from '../observing/gaps.ts';
import type { Store, WithPorts } from '../store/store.ts';
import type { Telemetry } from '../process/telemetry.ts';
import { createSetup, type Setup } from '../connect/setup.ts';
import { createConnections } from '../connect/connections.ts';
import { createCheckConnection } from '../connect/watch.ts';
import { createCircuits, type Circuits } from '../observing/circuits.ts';
import { createFailedAttempts, createKeyUses } from '../identity/audit.ts';
import { createAuthenticateKey, createLiveKeys } from '../identity/authenticate-key.ts';
import { createFarLetters } from '../connect/far-letters.ts';
import { createQueueWatch } from '../observing/queue-watch.ts';

/** How this process reaches the AWS services. */
export interface AwsAddresses {
  readonly region: string;
  readonly endpoints: AwsEnvironment['endpoints'];
  readonly credentials: CredentialsProvider | { readonly accessKeyId: string; readonly secretAccessKey: string };
  readonly forcePathStyle: boolean;
  /** The server of the queues is not AWS, and no endpoint of SNS is set: it has queues alone. */
  readonly hasQueuesAlone: boolean;
  /** Absent: requests use no proxy. */
  readonly proxyEnv?: ProxyVariables | undefined;
}

const EMBEDDED_KEY = 'embedded';

/** The region where neither a variable nor the profile nor a queue names one: that of the embedded server too. */
export const REGION_DEFAULT = 'us-east-1';

/** The shared parts, each created once. */
export type Core = Awaited<ReturnType<typeof createCore>>;

/** The URLs of the queues, from the settings or the embedded server. */
export interface Queues {
  readonly bucket: readonly string[];
  readonly deadLetter: string | undefined;
}

/** The location of the index: the setting, or else the file of the embedded mode. */
export function indexLocation(settings: Settings): IndexLocation {
  return settings.TALLY_INDEX_URL ?? { product: 'sqlite', path: embeddedIndexPath(settings) };
}

/** The setting that names that location. */
export function indexSetting({ TALLY_INDEX_URL: named }: Settings): 'TALLY_INDEX_URL' | 'TALLY_EMBEDDED_DATA' {
  return named === undefined ? 'TALLY_EMBEDDED_DATA' : 'TALLY_INDEX_URL';
}

/** The AWS addresses from the SDK's own variables, else from the profile; or those of the embedded server. */
export async function awsAddresses(
  settings: Settings,
  environment: OuterEnvironment,
  ownEndpoint: string | undefined,
): Promise<AwsAddresses> {
  if (ownEndpoint !== undefined) {
    return {
      region: environment.region ?? REGION_DEFAULT,
      endpoints: { sqs: ownEndpoint, sns: ownEndpoint, s3: ownEndpoint },
      // fauxqs does not check signatures, but the SDK cannot sign without credentials
      credentials: { accessKeyId: EMBEDDED_KEY, secretAccessKey: EMBEDDED_KEY },
      forcePathStyle: true,
      hasQueuesAlone: false,
      proxyEnv: withoutProxyFor(new URL(ownEndpoint).hostname, environment.proxy),
    };
  }
  const shared = await readSharedConfig();
  const [queueUrl] = settings.TALLY_QUEUE_URL;
  const queueRegion = queueUrl === undefined ? undefined : regionInQueueUrl(queueUrl);
  const region = environment.region ?? shared.region ?? queueRegion ?? REGION_DEFAULT;
  const endpoints = endpointsOf(environment, shared);
  const server = queuesAlone(endpoints, settings);
  return {
    region,
    endpoints: { ...endpoints, sqs: endpoints.sqs ?? server },
    hasQueuesAlone: server !== undefined,
    credentials: chainCredentials({ region, proxyEnv: environment.proxy }),
    forcePathStyle: settings.TALLY_S3_FORCE_PATH_STYLE ?? endpoints.s3 !== undefined,
    proxyEnv: environment.proxy,
  };
}

function endpointsOf({ endpoints, ignoresEndpoints }: AwsEnvironment, shared: SharedConfig): AwsEnvironment['endpoints'] {
  return (ignoresEndpoints ?? shared.ignoresEndpoints) ? {} : { ...shared.endpoints, ...defined(endpoints) };
}

/** The server that has queues alone, as ElasticMQ does; undefined: the queues are at AWS, or a server that has SNS as well. */
function queuesAlone({ sqs, sns }: AwsEnvironment['endpoints'], { TALLY_QUEUE_URL: urls }: Settings): string | undefined {
  const [server, ...others] = sqs === undefined ? new Set(urls.map((url) => new URL(url).origin)) : [sqs];
  if (server === undefined || others.length > 0 || sns !== undefined) return undefined;
  return isAwsEndpoint(server) || regionInQueueUrl(server) !== undefined ? undefined : server;
}

/** The queues of the embedded server if there is one, else those of the settings. */
export function queuesOf(settings: Settings, embedded?: Embedded): Queues {
  if (embedded !== undefined) return { bucket: [embedded.queueUrl], deadLetter: embedded.deadLetterQueueUrl };
  return { bucket: settings.TALLY_QUEUE_URL, deadLetter: settings.TALLY_DEAD_LETTER_QUEUE_URL };
}

/** Creates the shared parts. Connections are made and data is read only when a part is used. */
export async function createCore(settings: Settings, addresses: AwsAddresses, queueUrls: Queues, telemetry: Telemetry) {
  const { clock, set: setClock } = createSetClock(systemClock);
  const store = await createStore(settings, addresses, { clock, telemetry });
  const clientOptions = {
    ...addresses,
    s3: {
      forcePathStyle: addresses.forcePathStyle,
      timeoutMs: S3_TIMEOUT_MS,
      connectionsMax: s3Connections(settings),
    },
    sqs: { receivesMax: settings.TALLY_INGEST_POLLERS * Math.max(1, queueUrls.bucket.length), waitS: settings.TALLY_INGEST_WAIT_S },
  };
  const aws = createAwsClients(clientOptions);
  const bucketQueueUrls = queueUrls.bucket;
  const storage = createS3Storage({ clientFor: aws.s3For, region: addresses.region, clock });
  const queues = createSqsClient({ clientFor: aws.sqsFor, clock });
  const ports = { ...store, clock, telemetry, storage, queues, bucketQueueUrls };
  const stopping = new AbortController();
  const probeCluster = createProbeCluster(store, () => circuits.openOf(['cluster']) !== undefined);
  const circuits: Circuits = createCircuits({ clock, telemetry, probeCluster, stopped: stopping.signal });
  const [queueUrl] = bucketQueueUrls;
  const isEmbedded = isEmbeddedServer(addresses);
  const provisioner = createProvisioner({ aws, queueUrl, clock });
  const farLetters = isEmbedded || queueUrl === undefined ? undefined : createFarLetters({ ...ports, aws: provisioner, queueUrl });
  const queueWatch = createQueueWatch({ ...ports, deadLetterQueueUrl: queueUrls.deadLetter, farLetters, setClock });
  const gaps = createGapReports(ports);
  const connectBucket = createConnectBucket({ ...ports, gaps, isEmbedded });
  const deadLetters = createDeadLetters({ ...ports, gaps, queueWatch });
  const connections = createConnections({
    ...ports,
    aws: provisioner,
    queueUrls: bucketQueueUrls,
    trailArn: settings.TALLY_TRAIL_ARN,
    trailBucket: settings.TALLY_TRAIL_BUCKET,
    isEmbedded,
    hasQueuesAlone: addresses.hasQueuesAlone,
  });
  const subjects = {
    gaps,
    connectBucket,
    deadLetters,
    jobs: createReindexJobs(ports),
    processes: createProcesses(ports),
    checkConnection: createCheckConnection({ ...ports, connections, gaps }),
    keys: createKeys(store, settings, telemetry),
    compareIntervalMs: settings.TALLY_COMPARE_INTERVAL_DAYS * 86_400_000,
  };
  const everyoneReads = settings.TALLY_READERS === 'everyone';
  return {
    ...ports,
    ...subjects,
    settings,
    store,
    stopping,
    probeCluster,
    circuits,
    aws,
    /** Whether the store spells keys in events as AWS does: AWS itself, and the embedded server. */
    isAws: isEmbedded || isAwsEndpoint(addresses.endpoints.s3),
    queueWatch,
    confirmSubscription: confirmSubscription.bind(undefined, aws.snsFor),
    listing: createS3Listing({ clientFor: aws.s3For, clock }),
    lifecycle: createS3Lifecycle({ clientFor: aws.s3For, clock }),
    operations: createOperations({ ...ports, ...subjects, connections, everyoneReads, webhookUrl: webhookUrlOf(settings) }),
    /** Undefined where nothing in AWS leads to a bucket queue: in the embedded mode, and without a bucket queue. */
    connections: isEmbedded || queueUrl === undefined ? undefined : connections,
    async close() {
      aws.close();
      await store.close();
    },
  };
}

/** Where the receiver is as its network knows it, Tally does not know: of an address that leads everywhere, the host is left open. */
function webhookUrlOf({ TALLY_EVENTS_ADDRESS: at }: Settings): (bucket: string) => string {
  const isOpen = at === undefined || at.host === '0.0.0.0' || at.host === '::';
  const origin = urlOf({ host: isOpen ? 'HOST' : at.host, port: at?.port ?? 0 }).replace(/:0$/, ':PORT');
  return (bucket) => `${origin}/events/${bucket}`;
}

/** How callers are known: the rules of logins, and API keys. */
function createKeys({ state, audit }: Store, settings: Settings, telemetry: Telemetry) {
  // no other server says until when a credential is valid
  const clock = systemClock;
  const rules = loginRulesOf(settings);
  const liveKeys = createLiveKeys({ state, rules, clock });
  // shared by everything that checks credentials
  const attempts = createFailedAttempts({ audit, clock, telemetry, host: hostname() });
  const keyUses = createKeyUses({ audit, clock, telemetry });
  return {
    clock,
    rules,
    liveKeys,
    attempts,
    keyUses,
    authenticateKey: createAuthenticateKey({ state, liveKeys, clock, telemetry, claimsDays: settings.TALLY_KEYS_CLAIMS_DAYS, attempts }),
    /** Stores the windows of the audit that have ended. Call it every second. */
    storeEnded: async (): Promise<void> => void (await Promise.all([keyUses.storeEnded(), attempts.storeEnded()])),
    /** Stores all of them, for the end of the process. */
    flush: async (signal: AbortSignal): Promise<void> => void (await Promise.all([keyUses.flush(signal), attempts.flush(signal)])),
  };
}

/**
 * After an outage searches must work as well: receiving needs them, and would be paused again at once. And the store may be another
 * one, such as a restored snapshot: what it lacks is made before work resumes. That is never the state index, without which the
 * probe fails: an empty one would take its place in a restore, and hide that all is lost.
 */
function createProbeCluster({ objects, state, setup }: Store, isOutage: () => boolean): (signal: AbortSignal) => Promise<void> {
  return async function probeCluster(signal) {
    await objects.probe(signal);
    if (!isOutage()) return;
    await state.list('bucket', { limit: 1 }, signal);
    await setup.prepare(signal);
  };
}

/** Whether AWS is the embedded server, whose credentials are these. */
function isEmbeddedServer({ credentials }: AwsAddresses): boolean {
  return typeof credentials !== 'function' && credentials.accessKeyId === EMBEDDED_KEY;
}

/** The number of S3 connections. Each kind of request has its share, so that a HEAD for a live event never waits for a listing. */
function s3Connections({ TALLY_ROLES: roles }: Settings): number {
  return HEADS + (roles.includes('reindex') ? REINDEX_LISTINGS + REINDEX_HEADS + SWEEP_HEADS : 0);
}

async function createStore(
  settings: Settings,
  { region, credentials, proxyEnv }: AwsAddresses,
  ports: WithPorts<'clock' | 'telemetry'>,
): Promise<Store> {
  const index = indexLocation(settings);
  switch (index.product) {
    case 'sqlite':
      return createSqliteStore(index.path);
    case 'opensearch': {
      // the client of OpenSearch is loaded only when needed: its 550 modules take a fifth of the start time
      const { createOpenSearchStore } = await import('../store/opensearch/store.ts');
      return createOpenSearchStore({
        urls: index.nodes,
        caFile: settings.TALLY_INDEX_CA_FILE,
        // the embedded server's credentials are for it alone
        signing:
          settings.TALLY_INDEX_AUTH === 'sigv4'
            ? { region, credentials: typeof credentials === 'function' ? credentials : chainCredentials({ region, proxyEnv }) }
            : undefined,
        proxyEnv,
        prefix: settings.TALLY_INDEX_PREFIX,
        shards: settings.TALLY_INDEX_SHARDS,
        replicas: settings.TALLY_INDEX_REPLICAS,
        ...ports,
      });
    }
  }
}

/** Opens what plans and makes the parts that all buckets share, with the bucket queue in the region of the environment. */
export async function openSetup(settings: Settings, environment: OuterEnvironment): Promise<{ readonly setup: Setup; close(): void }> {
  const addresses = await awsAddresses(settings, environment, undefined);
  const { region } = addresses;
  const aws = createAwsClients({
    ...addresses,
    s3: { forcePathStyle: addresses.forcePathStyle, timeoutMs: S3_TIMEOUT_MS, connectionsMax: 1 },
    sqs: { receivesMax: 1, waitS: settings.TALLY_INGEST_WAIT_S },
  });
  const queueUrls = settings.TALLY_QUEUE_URL;
  const [url] = queueUrls;
  const parts = createProvisioner({ aws, queueUrl: url, clock: systemClock });
  const shared = createSharedParts(aws, parts);
  const home = (url === undefined ? undefined : regionInQueueUrl(url)) ?? region;
  const { hasQueuesAlone } = addresses;
  return { setup: createSetup({ aws: shared, clock: systemClock, region: home, queueUrls, hasQueuesAlone }), close: () => aws.close() };
}
