/**
 * Sends the requests that every message needs through steps that were resolved once. The SDK resolves its middleware for each
 * request that has a signal (its own cache, `cacheMiddleware`, is for requests without options), and three of its steps copy
 * the whole configuration of the client for each request. Both together took 7 % of a CPU profile of the ingest bench
 * (SQLite, 2026-11-22).
 *
 * The steps are the SDK's own. They are given the part of the configuration that they read, and one set of them serves all
 * requests of a kind that have the same signal, as those of one poller do. All other requests are left to the SDK, whose
 * version is pinned (sqs-protocol.ts).
 */
import { ChangeMessageVisibilityBatchCommand, DeleteMessageBatchCommand, ReceiveMessageCommand, type SQSClient } from '@aws-sdk/client-sqs';
import { getSchemaSerdePlugin } from '@smithy/core/schema';

type Command = Parameters<SQSClient['send']>[0];
type Steps = ReturnType<Command['resolveMiddleware']>;

interface Options {
  readonly abortSignal?: AbortSignal;
}

const COMMANDS = [ReceiveMessageCommand, DeleteMessageBatchCommand, ChangeMessageVisibilityBatchCommand];

/** Stands for the signal of requests that have none. */
const NO_SIGNAL = new AbortController().signal;

/** Returns the client whose frequent requests are sent in this way. Middleware that is added after the first of them is not used. */
export function withResolvedRequests(client: SQSClient): SQSClient {
  /** The steps by the kind of request and its signal. */
  const resolved = new Map<unknown, WeakMap<AbortSignal, Steps>>(COMMANDS.map((command) => [command, new WeakMap()]));
  let prepared: ReturnType<typeof prepare> | undefined;

  function resolve(command: Command, options: Options): Steps {
    prepared ??= prepare(client);
    return command.resolveMiddleware(prepared.stack, prepared.configuration, options);
  }

  async function send(command: Command, options: Options = {}): Promise<object> {
    const bySignal = resolved.get(command.constructor);
    if (bySignal === undefined) return client.send(command, options);
    const signal = options.abortSignal ?? NO_SIGNAL;
    let steps = bySignal.get(signal);
    if (steps === undefined) bySignal.set(signal, (steps = resolve(command, options)));
    return (await steps(command)).output;
  }

  return Object.create(client, { send: { value: send } });
}

/** The client's middleware, in which the steps that would copy its configuration have another, smaller one. */
function prepare({ config, middlewareStack }: SQSClient) {
  const configuration = {
    apiVersion: config.apiVersion,
    requestHandler: config.requestHandler,
    logger: config.logger,
    md5: config.md5,
    // what the address of a request is made of
    serviceId: config.serviceId,
    region: config.region,
    endpoint: config.endpoint,
    endpointProvider: config.endpointProvider,
    isCustomEndpoint: config.isCustomEndpoint,
    ignoreConfiguredEndpointUrls: config.ignoreConfiguredEndpointUrls,
    serviceConfiguredEndpoint: config.serviceConfiguredEndpoint,
    useDualstackEndpoint: config.useDualstackEndpoint,
    useFipsEndpoint: config.useFipsEndpoint,
    // what requests and answers are written and read with
    protocol: config.protocol,
    urlParser: config.urlParser,
    base64Decoder: config.base64Decoder,
    base64Encoder: config.base64Encoder,
    utf8Decoder: config.utf8Decoder,
    utf8Encoder: config.utf8Encoder,
    streamCollector: config.streamCollector,
    disableHostPrefix: config.disableHostPrefix,
  };
  const stack = middlewareStack.clone();
  stack.use(getSchemaSerdePlugin(configuration));
  return { configuration, stack };
}
