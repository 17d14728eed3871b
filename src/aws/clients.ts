/** The AWS SDK clients: one per queue or region, each created when it is first used. */
import { LRUCache } from 'lru-cache';
import type { CloudTrailClient } from '@aws-sdk/client-cloudtrail';
import type { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { S3Client } from '@aws-sdk/client-s3';
import { SNSClient } from '@aws-sdk/client-sns';
import type { STSClient } from '@aws-sdk/client-sts';
import { SQSClient } from '@aws-sdk/client-sqs';
import { createCredentials, type CredentialsProvider } from './credentials.ts';
import { type Endpoints, LEGACY_HOST, regionInQueueUrl } from './addresses.rules.ts';
import { createRequestSigner } from './request-signer.ts';
import { withDirectRequests } from './sqs-requests.ts';

interface AwsClientOptions {
  /** The region for everything whose queue URL, ARN or bucket record contains no region. */
  readonly region: string;
  /** From the SDK's own variables (AWS_ENDPOINT_URL_SQS, else AWS_ENDPOINT_URL …) or the profile; absent: AWS itself. */
  readonly endpoints: Endpoints;
  readonly credentials: CredentialsProvider | { readonly accessKeyId: string; readonly secretAccessKey: string };
  /** The proxy's variables in the form of Node's agents; absent: requests use no proxy. */
  readonly proxyEnv?: ProxyEnv | undefined;
  readonly s3: {
    readonly forcePathStyle: boolean;
    /** The time-out of one attempt until its headers arrive, and of a body that stalls. */
    readonly timeoutMs: number;
    /** Concurrent requests to one region. */
    readonly connectionsMax: number;
  };
  readonly sqs: {
    /** Concurrent receives, over all queues. Each occupies a connection for its whole wait. */
    readonly receivesMax: number;
    readonly waitS: number;
  };
}

type ProxyEnv = Readonly<Record<string, string>>;

/** The region counts for a queue whose URL contains none. Default: that of the options. */
type SqsFor = (queueUrl: string, region?: string) => SQSClient;

export interface AwsClients {
  readonly region: string;
  /** For all requests except receives, so that they never wait behind long polls. */
  readonly sqsFor: SqsFor;
  /** For receives only. It does not retry, because each poller has its own back-off. */
  readonly sqsReceivingFor: (queueUrl: string) => SQSClient;
  /** For queues of a region whose URLs are not known, or that do not exist yet. */
  readonly sqsIn: (region: string) => SQSClient;
  readonly snsFor: (region: string) => SNSClient;
  readonly s3For: (region: string) => S3Client;
  /** Its module is loaded with the first client: few processes need one. */
  readonly eventsFor: (region: string) => Promise<EventBridgeClient>;
  /** The same. */
  readonly trailsFor: (region: string) => Promise<CloudTrailClient>;
  /** The same. */
  readonly identityIn: (region: string) => Promise<STSClient>;
  /**
   * The same for writes of what others write to as well. They send a request once: what AWS refuses or does not answer must be
   * read again before it is written again.
   */
  readonly once: OnceClients;
  /** Closes all connections. Requests in flight fail. */
  close(): void;
}

type OnceClients = Pick<AwsClients, 'sqsFor' | 'sqsIn' | 'snsFor' | 's3For' | 'eventsFor' | 'trailsFor'>;

const CONNECT_TIMEOUT_MS = 3_000;
/** A request to a queue or topic is tried again after this time. It is below the 30 s for which an answer of S3 is used. */
const REQUEST_TIMEOUT_MS = 10_000;
/** STS answers within a second or two. The SDK asks three times, so that its error comes before the limit of the credentials. */
const STS_TIMEOUT_MS = 5_000;
/** One attempt of the chain asks one thing at a time. */
const STS_CONNECTIONS_MAX = 2;
/** If SQS has not ended a long poll this long after its wait, the connection is dead. */
const RECEIVE_SLACK_MS = 10_000;
/** Concurrent batches of ten messages that are settled: about 3,000 messages a second at 100 ms per request. */
const SQS_CONNECTIONS_MAX = 50;
/** What the SDK does by itself. Of SQS, repeating a delete or a visibility change does no harm, and can prevent a redelivery. */
const ATTEMPTS_MAX = 3;
/** One retry. Anything that lasts longer is a fault, which the pipeline waits out. */
const S3_ATTEMPTS_MAX = 2;
/** More than the number of AWS regions, or of queues of any installation. Beyond it, the client that was used longest ago is dropped from the cache. */
const CLIENTS_MAX = 64;

/** Creates the clients. */
export function createAwsClients(options: AwsClientOptions): AwsClients {
  const { credentials, proxyEnv } = options;
  const caches: { values(): Iterable<{ destroy(): void }> }[] = [];
  const requestHandler = handlerOptions(REQUEST_TIMEOUT_MS, SQS_CONNECTIONS_MAX, proxyEnv);
  const receiveHandler = handlerOptions(options.sqs.waitS * 1_000 + RECEIVE_SLACK_MS, options.sqs.receivesMax, proxyEnv);

  function cached<Client extends { destroy(): void }>(make: (key: string) => Client): (key: string) => Client {
    // one that is dropped is not destroyed: it may have requests in flight, and its idle connections close by themselves
    const clients = new LRUCache<string, Client>({ max: CLIENTS_MAX, memoMethod: make });
    caches.push(clients);
    return (key) => clients.memo(key);
  }

  function sqsClients(maxAttempts: number): SqsFor {
    const byRegion = cached((region) => {
      const clientFor = cached((queueUrl) => sqsClient(addressOf(queueUrl, region), requestHandler, maxAttempts));
      return { clientFor, destroy: () => undefined };
    });
    return (queueUrl, region = options.region) => byRegion(region).clientFor(queueUrl);
  }

  const addressOf = (queueUrl: string, region: string): QueueAddress => queueAddress(queueUrl, { region, endpoint: options.endpoints.sqs });
  const serviceIn = (region: string): QueueAddress => ({ region, ...explicitEndpoint(options.endpoints.sqs) });

  function sqsClient(address: QueueAddress, handler: ReturnType<typeof handlerOptions>, maxAttempts: number): SQSClient {
    const client: SQSClient = new SQSClient({
      ...address,
      credentials,
      maxAttempts,
      requestHandler: handler,
      // queue URLs of emulators can contain another host or port than the emulator's own
      useQueueUrlAsEndpoint: false,
      // TLS and SQS check the content already, and the most frequent requests are not the SDK's
      md5: false as const,
    });
    const signer = createRequestSigner({ service: 'sqs', region: address.region, credentials: () => client.config.credentials() });
    return withDirectRequests({ client, signer, repeats: maxAttempts > 1 });
  }

  /** The clients of a service whose module is loaded with the first of them. */
  function lazily<Client extends { destroy(): void }>(
    load: () => Promise<(region: string) => Client>,
  ): (region: string) => Promise<Client> {
    let clientFor: ((region: string) => Client) | undefined;
    return async (region) => {
      const make = await load();
      clientFor ??= cached(make);
      return clientFor(region);
    };
  }

  const configOf = (endpoint: string | undefined, region: string, maxAttempts: number) => ({
    ...explicitEndpoint(endpoint),
    credentials,
    region,
    maxAttempts,
    requestHandler,
  });

  /** The clients that send a request at most this often. */
  function clientsOf(attempts: { readonly s3: number; readonly others: number }): OnceClients {
    const { endpoints, s3 } = options;
    return {
      sqsFor: sqsClients(attempts.others),
      sqsIn: cached((region) => sqsClient(serviceIn(region), requestHandler, attempts.others)),
      snsFor: cached((region) => new SNSClient(configOf(endpoints.sns, region, attempts.others))),
      s3For: cached(
        (region) =>
          new S3Client({
            ...configOf(endpoints.s3, region, attempts.s3),
            forcePathStyle: s3.forcePathStyle,
            // a bucket that moved must be noticed, so that the region in its record is read again
            followRegionRedirects: false,
            requestHandler: handlerOptions(s3.timeoutMs, s3.connectionsMax, proxyEnv),
          }),
      ),
      eventsFor: lazily(async () => {
        const { EventBridgeClient: Client } = await import('@aws-sdk/client-eventbridge');
        return (region) => new Client(configOf(endpoints.events, region, attempts.others));
      }),
      trailsFor: lazily(async () => {
        const { CloudTrailClient: Client } = await import('@aws-sdk/client-cloudtrail');
        return (region) => new Client(configOf(endpoints.trails, region, attempts.others));
      }),
    };
  }

  return {
    region: options.region,
    ...clientsOf({ s3: S3_ATTEMPTS_MAX, others: ATTEMPTS_MAX }),
    once: clientsOf({ s3: 1, others: 1 }),
    sqsReceivingFor: cached((queueUrl) => sqsClient(addressOf(queueUrl, options.region), receiveHandler, 1)),
    async identityIn(region) {
      const { STSClient: Client } = await import('@aws-sdk/client-sts');
      // its endpoint is that of the SDK's own variables, as for the credentials
      return new Client({ credentials, region, requestHandler: handlerOptions(STS_TIMEOUT_MS, STS_CONNECTIONS_MAX, proxyEnv) });
    },
    close() {
      for (const clients of caches) for (const client of clients.values()) client.destroy();
    },
  };
}

/** The credentials of the SDK's default chain, with a limit on each of its steps. */
export function chainCredentials(options: { readonly region: string; readonly proxyEnv?: ProxyEnv | undefined }): CredentialsProvider {
  const requestHandler = handlerOptions(STS_TIMEOUT_MS, STS_CONNECTIONS_MAX, options.proxyEnv);
  return createCredentials({ region: options.region, requestHandler });
}

/** Options of the SDK's request handler. Each client creates its own handler from them. */
function handlerOptions(requestTimeout: number, maxSockets: number, proxyEnv: ProxyEnv | undefined) {
  const agent = { keepAlive: true, maxSockets, proxyEnv };
  return {
    connectionTimeout: Math.min(CONNECT_TIMEOUT_MS, requestTimeout),
    requestTimeout,
    // otherwise the SDK only logs the time-out
    throwOnRequestTimeout: true,
    // requestTimeout covers the time until the headers; this one covers a body that stalls
    socketTimeout: requestTimeout,
    httpAgent: agent,
    httpsAgent: agent,
  };
}

// ── where requests about a queue are sent, and for which region they are signed: both follow from its URL ──────────

/** An endpoint that replaces the one of AWS; absent: the SDK finds the endpoint by the region. */
interface ExplicitEndpoint {
  readonly endpoint?: string;
  readonly useFipsEndpoint?: false;
  readonly useDualstackEndpoint?: false;
}

interface QueueAddress extends ExplicitEndpoint {
  readonly region: string;
}

/**
 * The address of a queue. A given endpoint comes first. For a regular host of SQS, and for a legacy one, the SDK finds the
 * endpoint, so that its switches for FIPS and dual-stack endpoints apply. Any other host is used as it is.
 */
function queueAddress(queueUrl: string, given: { readonly region: string; readonly endpoint: string | undefined }): QueueAddress {
  const { host, origin } = new URL(queueUrl);
  const region = regionInQueueUrl(queueUrl) ?? given.region;
  // private DNS names of VPC endpoints do not cover the legacy hosts
  const isRegular = host === regularHost(region) || LEGACY_HOST.test(host);
  return { region, ...explicitEndpoint(given.endpoint ?? (isRegular ? undefined : origin)) };
}

/** The client options for an endpoint. The SDK refuses an endpoint together with its switches for FIPS and dual-stack, so they are off. */
function explicitEndpoint(endpoint: string | undefined): ExplicitEndpoint {
  return endpoint === undefined ? {} : { endpoint, useFipsEndpoint: false, useDualstackEndpoint: false };
}

/** The host that the SDK's own rules give to SQS in a region. They know the domains of all partitions. */
function regularHost(region: string): string | undefined {
  try {
    const { endpointProvider } = new SQSClient({ region }).config;
    return endpointProvider({ Region: region, UseFIPS: false, UseDualStack: false }).url.host;
  } catch {
    // what is in the place of the region is no name of a region
    return undefined;
  }
}
