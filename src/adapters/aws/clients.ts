/** The AWS SDK clients: one per queue or region, made when first asked for. */
import { S3Client } from '@aws-sdk/client-s3';
import { SNSClient } from '@aws-sdk/client-sns';
import { SQSClient } from '@aws-sdk/client-sqs';
import { createHttpHandler } from './http-handler.ts';
import { createRequestSigner } from './request-signer.ts';
import { speakPlainJson } from './sqs-protocol.ts';

export interface AwsClientOptions {
  /** Used where neither a queue URL, an ARN nor a bucket's record names one. */
  readonly region: string;
  /** As the SDK's own variables name them (AWS_ENDPOINT_URL_SQS, else AWS_ENDPOINT_URL …); absent: AWS itself. */
  readonly endpoints: { readonly sqs?: string | undefined; readonly sns?: string | undefined; readonly s3?: string | undefined };
  /** Absent: the SDK's default chain. */
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string };
  readonly s3: {
    readonly forcePathStyle: boolean;
    /** Of one attempt, until its headers; and how long its body may stall. */
    readonly timeoutMs: number;
    /** Requests at once, to any one region. */
    readonly connectionsMax: number;
  };
  readonly sqs: {
    /** Receives at once, over all queues: each holds a connection for its whole wait. */
    readonly receivesMax: number;
    readonly waitS: number;
  };
}

export interface AwsClients {
  /** For everything but receiving: its requests must never wait behind long polls. */
  readonly sqsFor: (queueUrl: string) => SQSClient;
  /** For receiving only. It never tries again by itself: each poller backs off on its own. */
  readonly sqsReceivingFor: (queueUrl: string) => SQSClient;
  readonly snsFor: (region: string) => SNSClient;
  readonly s3For: (region: string) => S3Client;
  /** Closes all connections; running requests fail. */
  close(): void;
}

const CONNECT_TIMEOUT_MS = 3_000;
/** A queue or topic that has not answered by then is tried again; below the 30 s that an answer of S3 lives. */
const REQUEST_TIMEOUT_MS = 10_000;
/** A long poll that SQS has not ended this long after its wait is on a dead connection. */
const RECEIVE_SLACK_MS = 10_000;
/** Settlement's batches of ten at once: some 3,000 messages a second at 100 ms each. */
const SQS_CONNECTIONS_MAX = 50;
/** Repeating a delete or a visibility change does no harm, and spares a message its redelivery. */
const SQS_ATTEMPTS_MAX = 3;
/** One more look; whatever lasts longer is a fault that the pipeline waits out. */
const S3_ATTEMPTS_MAX = 2;
/**
 * Steps of the SDK's that do nothing here, at every request: logging to no logger, the long user-agent text, a header of
 * Lambda's, a length that Node sends anyway.
 */
const IDLE_STEPS = ['loggerMiddleware', 'getUserAgentMiddleware', 'recursionDetectionMiddleware', 'contentLengthMiddleware'];
/** More than AWS has regions, or anyone has queues here: if it is reached all the same, the oldest is forgotten. */
const CLIENTS_MAX = 64;

/** Creates the clients. */
export function createAwsClients(options: AwsClientOptions): AwsClients {
  const credentials = options.credentials === undefined ? {} : { credentials: options.credentials };
  const caches: Map<string, { destroy(): void }>[] = [];
  const requestHandler = handlerOptions(REQUEST_TIMEOUT_MS, SQS_CONNECTIONS_MAX);
  const settling = { requestTimeoutMs: REQUEST_TIMEOUT_MS, connectionsMax: SQS_CONNECTIONS_MAX };
  const receiving = { requestTimeoutMs: options.sqs.waitS * 1_000 + RECEIVE_SLACK_MS, connectionsMax: options.sqs.receivesMax };

  function cached<Client extends { destroy(): void }>(make: (key: string) => Client): (key: string) => Client {
    const clients = new Map<string, Client>();
    caches.push(clients);
    return (key) => {
      const known = clients.get(key);
      if (known !== undefined) return known;
      const [oldest] = clients.keys();
      // only forgotten: it may have requests running, and its idle connections close by themselves
      if (oldest !== undefined && clients.size >= CLIENTS_MAX) clients.delete(oldest);
      const client = make(key);
      clients.set(key, client);
      return client;
    };
  }

  function sqsClient(
    queueUrl: string,
    handler: Omit<Parameters<typeof createHttpHandler>[0], 'connectTimeoutMs'>,
    maxAttempts: number,
  ): SQSClient {
    const address = queueAddress(queueUrl, options);
    const client: SQSClient = new SQSClient({
      ...credentials,
      ...address,
      maxAttempts,
      requestHandler: createHttpHandler({ ...handler, connectTimeoutMs: CONNECT_TIMEOUT_MS }),
      signer: createRequestSigner({ service: 'sqs', region: address.region, credentials: () => client.config.credentials() }),
      // queue URLs of emulators name another host or port than theirs
      useQueueUrlAsEndpoint: false,
      // 7 % of a poller's time, for what TLS and SQS check already
      md5: false as const,
      // settlement's requests are built alike each time; what comes with a signal is built anew
      cacheMiddleware: true,
    });
    speakPlainJson(client);
    for (const step of IDLE_STEPS) client.middlewareStack.remove(step);
    return client;
  }

  return {
    sqsFor: cached((queueUrl) => sqsClient(queueUrl, settling, SQS_ATTEMPTS_MAX)),
    sqsReceivingFor: cached((queueUrl) => sqsClient(queueUrl, receiving, 1)),
    snsFor: cached((region) => new SNSClient({ ...credentials, ...endpointOf(options.endpoints.sns), region, requestHandler })),
    s3For: cached(
      (region) =>
        new S3Client({
          ...credentials,
          ...endpointOf(options.endpoints.s3),
          region,
          forcePathStyle: options.s3.forcePathStyle,
          // a bucket that moved must be told: its record's region is read again
          followRegionRedirects: false,
          maxAttempts: S3_ATTEMPTS_MAX,
          requestHandler: { ...handlerOptions(options.s3.timeoutMs, options.s3.connectionsMax), socketTimeout: options.s3.timeoutMs },
        }),
    ),
    close() {
      for (const clients of caches) for (const client of clients.values()) client.destroy();
    },
  };
}

function handlerOptions(requestTimeout: number, maxSockets: number) {
  const agent = { keepAlive: true, maxSockets };
  return {
    connectionTimeout: Math.min(CONNECT_TIMEOUT_MS, requestTimeout),
    requestTimeout,
    // else the SDK only logs it
    throwOnRequestTimeout: true,
    httpAgent: agent,
    httpsAgent: agent,
  };
}

/** `sqs.<region>.…`, VPC endpoints and LocalStack's names included, and the legacy `<region>.queue.amazonaws.com`. */
const REGION_IN_HOST = /(?:^|\.)sqs(?:-fips)?\.([a-z]{2,5}(?:-[a-z]+)+-\d+)\.|^([a-z]{2,5}(?:-[a-z]+)+-\d+)\.queue\.amazonaws\.com$/;
const AWS_HOST = /^sqs\.[a-z0-9-]+\.amazonaws\.com(\.cn)?$/;

/** The region that a queue URL names, else the default; and its own host as the endpoint where that is not AWS's regular one. */
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

/** What an error of the SDK says, with its name and the system's code, without a stack. */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error && typeof error.code === 'string' && error.code !== error.name ? ` ${error.code}` : '';
  // HEAD answers have no body, so the SDK knows no message
  const message = error.message === '' || error.message === 'UnknownError' ? '' : `: ${error.message}`;
  return `${error.name}${code}${message}`;
}
