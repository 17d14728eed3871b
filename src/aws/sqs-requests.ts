/**
 * Sends the requests that every message needs (receive, delete, change of visibility) without the SDK's middleware, which takes
 * more CPU time than everything else done for a message. The body of such a request is its input as JSON, and the body of its
 * answer is its output
 * (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-making-api-requests-json.html).
 *
 * All others are the SDK's: the first request of a client, which shows the address that the SDK resolves, and each one that SQS
 * answered with an error, which is sent again by the SDK. So the SDK reads every error, repeats by its own rules, and corrects
 * the clock. Connections, time-outs and credentials are the SDK's for all requests.
 */
import { IncomingMessage } from 'node:http';
import { ChangeMessageVisibilityBatchCommand, DeleteMessageBatchCommand, ReceiveMessageCommand, type SQSClient } from '@aws-sdk/client-sqs';
import { HttpRequest } from '@smithy/core/protocols';
import type { RequestSigner } from './request-signer.ts';

type Command = Parameters<SQSClient['send']>[0];

interface Options {
  readonly abortSignal?: AbortSignal;
}

interface Sender {
  readonly client: SQSClient;
  readonly signer: RequestSigner;
  /** Whether a request that got no answer is sent again, by the SDK. */
  readonly repeats: boolean;
}

const FREQUENT = new Map<unknown, string>([
  [ReceiveMessageCommand, 'ReceiveMessage'],
  [DeleteMessageBatchCommand, 'DeleteMessageBatch'],
  [ChangeMessageVisibilityBatchCommand, 'ChangeMessageVisibilityBatch'],
]);

/** Where the SDK sends the requests of a client. */
type Address = Pick<HttpRequest, 'protocol' | 'hostname' | 'path' | 'port'> & { readonly host: string };

function addressOf({ protocol, hostname, path, port, headers }: HttpRequest): Address {
  return { protocol, hostname, path, ...(port !== undefined && { port }), host: headers['host'] ?? hostname };
}

/** Returns the client whose frequent requests are sent in this way. */
export function withDirectRequests({ client, signer, repeats }: Sender): SQSClient {
  let address: Address | undefined;

  client.middlewareStack.add(
    <Input extends { readonly request: unknown }, Output>(next: (input: Input) => Promise<Output>) =>
      (input: Input) => {
        if (HttpRequest.isInstance(input.request)) address ??= addressOf(input.request);
        return next(input);
      },
    { step: 'finalizeRequest', name: 'rememberAddress' },
  );

  /** The output; undefined if SQS answered with an error. */
  async function sendDirectly(to: Address, operation: string, input: object, options: Options): Promise<object | undefined> {
    const { host, ...destination } = to;
    const { requestHandler, systemClockOffset } = client.config;
    const request = new HttpRequest({
      ...destination,
      method: 'POST',
      headers: {
        host,
        'content-type': 'application/x-amz-json-1.0',
        'x-amzn-query-mode': 'true',
        'x-amz-target': `AmazonSQS.${operation}`,
        'user-agent': 'tally',
      },
      body: JSON.stringify(input),
    });
    const signed = await signer.sign(request, { signingDate: Date.now() + systemClockOffset });
    const { response } = await requestHandler.handle(signed, options);
    const { statusCode, body } = response;
    if (!(body instanceof IncomingMessage)) throw new TypeError('the body of an answer of SQS is no stream');
    const text = await textOf(body);
    if (statusCode !== 200) return undefined;
    const output = text === '' ? {} : JSON.parse(text);
    if (operation === 'ReceiveMessage') decodeBinaryAttributes(output);
    return output;
  }

  /** Each success restores some of the SDK's retries that an outage used up. */
  async function recordSuccess(): Promise<void> {
    const strategy = await client.config.retryStrategy();
    if ('recordSuccess' in strategy) strategy.recordSuccess(await strategy.acquireInitialRetryToken(''));
  }

  async function send(command: Command, options: Options = {}): Promise<object> {
    const operation = FREQUENT.get(command.constructor);
    if (operation === undefined || address === undefined) return client.send(command, options);
    try {
      const output = await sendDirectly(address, operation, command.input, options);
      if (output !== undefined) {
        await recordSuccess();
        return output;
      }
    } catch (error) {
      if (!repeats || options.abortSignal?.aborted === true) throw error;
    }
    return client.send(command, options);
  }

  return Object.create(client, { send: { value: send } });
}

/** Reads a whole body. The SDK's way, through a second stream, takes 5 µs more per message. */
function textOf(answer: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    answer.on('data', (chunk: Buffer) => chunks.push(chunk));
    answer.on('error', reject);
    answer.on('end', () => resolve(Buffer.concat(chunks).toString()));
  });
}

interface Received {
  readonly Messages?: readonly { readonly MessageAttributes?: Readonly<Record<string, { BinaryValue?: unknown }>> | null }[] | null;
}

/** Decodes the binary attributes, which are base64 in JSON. */
function decodeBinaryAttributes({ Messages }: Received): void {
  for (const { MessageAttributes } of Messages ?? []) {
    if (!MessageAttributes) continue;
    for (const attribute of Object.values(MessageAttributes)) {
      const { BinaryValue: encoded } = attribute;
      if (typeof encoded === 'string') attribute.BinaryValue = new Uint8Array(Buffer.from(encoded, 'base64'));
    }
  }
}
