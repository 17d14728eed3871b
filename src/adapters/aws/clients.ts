/** The AWS SDK clients: one per queue or region, each created when it is first used. */
import { S3Client } from '@aws-sdk/client-s3';
import { SNSClient } from '@aws-sdk/client-sns';
import { SQSClient } from '@aws-sdk/client-sqs';
import { createRequestSigner } from './request-signer.ts';
import { speakPlainJson } from './sqs-protocol.ts';

export interface AwsClientOptions {
  /** The region for everything whose queue URL, ARN or bucket record contains no region. */
  readonly region: string;
  /** From the SDK's own variables (AWS_ENDPOINT_URL_SQS, else AWS_ENDPOINT_URL …); absent: AWS itself. */
  readonly endpoints: { readonly sqs?: string | undefined; readonly sns?: string | undefined; readonly s3?: string | undefined };
  /** Absent: the SDK's default credential chain. */
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string };
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

export interface AwsClients {
  /** For all requests except receives, so that they never wait behind long polls. */
  readonly sqsFor: (queueUrl: string) => SQSClient;
  /** For receives only. It does not retry, because each poller has its own back-off. */
  readonly sqsReceivingFor: (queueUrl: string) => SQSClient;
  readonly snsFor: (region: string) => SNSClient;
  readonly s3For: (region: string) => S3Client;
  /** Closes all connections. Requests in flight fail. */
  close(): void;
}

const CONNECT_TIMEOUT_MS = 3_000;
/** A request to a queue or topic is tried again after this time. It is below the 30 s for which an answer of S3 is used. */
const REQUEST_TIMEOUT_MS = 10_000;
/** If SQS has not ended a long poll this long after its wait, the connection is dead. */
const RECEIVE_SLACK_MS = 10_000;
/** Concurrent batches of ten messages that are settled: about 3,000 messages a second at 100 ms per request. */
const SQS_CONNECTIONS_MAX = 50;
/** Repeating a delete or a visibility change does no harm, and can prevent a redelivery. */
const SQS_ATTEMPTS_MAX = 3;
/** One retry. Anything that lasts longer is a fault, which the pipeline waits out. */
const S3_ATTEMPTS_MAX = 2;
/**
 * Middleware of the SDK that runs at every request and has no use here: logging without a logger, the long user-agent
 * text, a header for Lambda, and a content length that Node sends anyway.
 */
const IDLE_STEPS = ['loggerMiddleware', 'getUserAgentMiddleware', 'recursionDetectionMiddleware', 'contentLengthMiddleware'];
/** More than the number of AWS regions, or of queues of any installation. Beyond it, the oldest client is dropped from the cache. */
const CLIENTS_MAX = 64;

/** Creates the clients. */
export function createAwsClients(options: AwsClientOptions): AwsClients {
  const credentials = options.credentials === undefined ? {} : { credentials: options.credentials };
  const caches: Map<string, { destroy(): void }>[] = [];
  const requestHandler = handlerOptions(REQUEST_TIMEOUT_MS, SQS_CONNECTIONS_MAX);
  const receiveHandler = handlerOptions(options.sqs.waitS * 1_000 + RECEIVE_SLACK_MS, options.sqs.receivesMax);

  function cached<Client extends { destroy(): void }>(make: (key: string) => Client): (key: string) => Client {
    const clients = new Map<string, Client>();
    caches.push(clients);
    return (key) => {
      const known = clients.get(key);
      if (known !== undefined) return known;
      const [oldest] = clients.keys();
      // not destroyed: it may have requests in flight, and its idle connections close by themselves
      if (oldest !== undefined && clients.size >= CLIENTS_MAX) clients.delete(oldest);
      const client = make(key);
      clients.set(key, client);
      return client;
    };
  }

  function sqsClient(queueUrl: string, handler: ReturnType<typeof handlerOptions>, maxAttempts: number): SQSClient {
    const address = queueAddress(queueUrl, options);
    const client: SQSClient = new SQSClient({
      ...credentials,
      ...address,
      maxAttempts,
      requestHandler: handler,
      signer: createRequestSigner({ service: 'sqs', region: address.region, credentials: () => client.config.credentials() }),
      // queue URLs of emulators can contain another host or port than the emulator's own
      useQueueUrlAsEndpoint: false,
      // it would take 7 % of a poller's time, and TLS and SQS check the content already
      md5: false as const,
      // the requests that settle messages always have the same middleware; a request with a signal is not cached
      cacheMiddleware: true,
    });
    speakPlainJson(client);
    for (const step of IDLE_STEPS) client.middlewareStack.remove(step);
    return client;
  }

  return {
    sqsFor: cached((queueUrl) => sqsClient(queueUrl, requestHandler, SQS_ATTEMPTS_MAX)),
    sqsReceivingFor: cached((queueUrl) => sqsClient(queueUrl, receiveHandler, 1)),
    snsFor: cached((region) => new SNSClient({ ...credentials, ...endpointOf(options.endpoints.sns), region, requestHandler })),
    s3For: cached(
      (region) =>
        new S3Client({
          ...credentials,
          ...endpointOf(options.endpoints.s3),
          region,
          forcePathStyle: options.s3.forcePathStyle,
          // a bucket that moved must be noticed, so that the region in its record is read again
          followRegionRedirects: false,
          maxAttempts: S3_ATTEMPTS_MAX,
          requestHandler: handlerOptions(options.s3.timeoutMs, options.s3.connectionsMax),
        }),
    ),
    close() {
      for (const clients of caches) for (const client of clients.values()) client.destroy();
    },
  };
}

/** Options of the SDK's request handler. Each client creates its own handler from them. */
function handlerOptions(requestTimeout: number, maxSockets: number) {
  const agent = { keepAlive: true, maxSockets };
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

/** Matches `sqs.<region>.…`, including VPC endpoints and LocalStack's names, and the legacy `<region>.queue.amazonaws.com`. */
const REGION_IN_HOST = /(?:^|\.)sqs(?:-fips)?\.([a-z]{2,5}(?:-[a-z]+)+-\d+)\.|^([a-z]{2,5}(?:-[a-z]+)+-\d+)\.queue\.amazonaws\.com$/;
const AWS_HOST = /^sqs\.[a-z0-9-]+\.amazonaws\.com(\.cn)?$/;

/** The region in a queue URL, else the default region. The endpoint is the URL's own host if that is not a regular host of AWS. */
function queueAddress(queueUrl: string, { region, endpoints }: AwsClientOptions) {
  const { hostname, origin } = new URL(queueUrl);
  const found = REGION_IN_HOST.exec(hostname);
  return {
    region: found?.[1] ?? found?.[2] ?? region,
    ...endpointOf(endpoints.sqs ?? (AWS_HOST.test(hostname) ? undefined : origin)),
  };
}

function endpointOf(endpoint: string | undefined): { readonly endpoint?: string } {
  return endpoint === undefined ? {} : { endpoint };
}

/** The text of an SDK error: its name, the system's error code and the message, without a stack. */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error && typeof error.code === 'string' && error.code !== error.name ? ` ${error.code}` : '';
  // an answer to HEAD has no body, so the SDK has no message
  const message = error.message === '' || error.message === 'UnknownError' ? '' : `: ${error.message}`;
  return `${error.name}${code}${message}`;
}
