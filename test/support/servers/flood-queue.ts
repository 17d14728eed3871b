/**
 * SQS as a flood: a bucket queue whose messages are made when they are received, because many messages of 1 MiB fit into
 * no memory, and a dead-letter queue that counts what it is sent and forgets it. Messages that are not deleted come back.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { closeServer, listen } from './listening.ts';

export interface FloodQueue {
  readonly queueUrl: string;
  /** How many bodies the dead-letter queue got. */
  letters(): number;
  /** Resolves when every message was deleted. */
  readonly drained: Promise<void>;
  close(): Promise<void>;
}

interface FloodOptions {
  readonly messages: number;
  /** The body of a message, as JSON. */
  readonly bodyOf: (number: number) => Buffer;
}

interface InFlight {
  readonly firstMs: number;
  receives: number;
  visibleAtMs: number;
}

const QUEUE_ARN = 'arn:aws:sqs:us-east-1:000000000000:flood';
const LETTERS_ARN = `${QUEUE_ARN}-letters`;
const BATCH = 10;
/** How often a receive that found nothing looks again. */
const LOOK_MS = 50;
const VISIBILITY_MS = 60_000;

/** Starts the server on a free port of the loopback. */
export async function startFloodQueue({ messages, bodyOf }: FloodOptions): Promise<FloodQueue> {
  const inFlight = new Map<number, InFlight>();
  let letters = 0;
  const drained = Promise.withResolvers<void>();
  let sent = 0;
  let ended = 0;

  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  const origin = `http://127.0.0.1:${await listen(server)}`;
  const queueUrl = `${origin}/000000000000/flood`;
  const deadLetterQueueUrl = `${origin}/000000000000/flood-letters`;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const operation = String(request.headers['x-amz-target']).replace('AmazonSQS.', '');
    if (operation === 'SendMessage') {
      request.resume();
      await once(request, 'end');
      letters += 1;
      reply(response, JSON.stringify({ MessageId: `letter-${letters}`, MD5OfMessageBody: '' }));
      return;
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const input = JSON.parse(Buffer.concat(chunks).toString()) as Input;
    switch (operation) {
      case 'ReceiveMessage':
        reply(response, input.QueueUrl === queueUrl ? await receive(input) : '{}');
        return;
      case 'DeleteMessageBatch':
        for (const { ReceiptHandle } of input.Entries ?? []) remove(Number(ReceiptHandle));
        break;
      case 'ChangeMessageVisibilityBatch':
        for (const { ReceiptHandle, VisibilityTimeout = 0 } of input.Entries ?? []) hide(Number(ReceiptHandle), VisibilityTimeout * 1_000);
        break;
      case 'ListQueueTags':
        reply(response, '{}');
        return;
      case 'GetQueueUrl':
        reply(response, JSON.stringify({ QueueUrl: deadLetterQueueUrl }));
        return;
      case 'GetQueueAttributes':
        reply(response, JSON.stringify({ Attributes: attributes(input.QueueUrl) }));
        return;
      default:
        throw new Error(`no operation ${operation}`);
    }
    reply(response, JSON.stringify({ Successful: (input.Entries ?? []).map(({ Id }) => ({ Id })), Failed: [] }));
  }

  function attributes(asked: string | undefined) {
    const counts = asked === queueUrl ? [messages - sent, inFlight.size] : [letters, 0];
    return {
      QueueArn: asked === queueUrl ? QUEUE_ARN : LETTERS_ARN,
      ApproximateNumberOfMessages: String(counts[0]),
      ApproximateNumberOfMessagesNotVisible: String(counts[1]),
      ApproximateNumberOfMessagesDelayed: '0',
      VisibilityTimeout: '60',
      ...(asked === queueUrl && {
        RedrivePolicy: JSON.stringify({ deadLetterTargetArn: LETTERS_ARN, maxReceiveCount: 20 }),
      }),
    };
  }

  async function receive({ WaitTimeSeconds = 0 }: Input): Promise<Buffer | string> {
    const endMs = Date.now() + WaitTimeSeconds * 1_000;
    for (;;) {
      const numbers = due();
      if (numbers.length > 0) return received(numbers);
      if (Date.now() >= endMs) return '{}';
      await new Promise((resolve) => void setTimeout(resolve, LOOK_MS));
    }
  }

  function due(): readonly number[] {
    const nowMs = Date.now();
    const again = [...inFlight].filter(([, { visibleAtMs }]) => visibleAtMs <= nowMs).map(([number]) => number);
    const numbers = again.slice(0, BATCH);
    while (numbers.length < BATCH && sent < messages) numbers.push(sent++);
    for (const number of numbers) {
      const known = inFlight.get(number) ?? { firstMs: nowMs, receives: 0, visibleAtMs: 0 };
      known.receives += 1;
      known.visibleAtMs = nowMs + VISIBILITY_MS;
      inFlight.set(number, known);
    }
    return numbers;
  }

  function received(numbers: readonly number[]): Buffer {
    const parts = numbers.flatMap((number, index) => {
      const { firstMs = 0, receives = 1 } = inFlight.get(number) ?? {};
      const Attributes = {
        SentTimestamp: String(firstMs),
        ApproximateReceiveCount: String(receives),
        ApproximateFirstReceiveTimestamp: String(firstMs),
      };
      const head = JSON.stringify({ MessageId: `m-${number}`, ReceiptHandle: String(number), Attributes }).slice(0, -1);
      return [Buffer.from(`${index === 0 ? '' : ','}${head},"Body":`), bodyOf(number), Buffer.from('}')];
    });
    return Buffer.concat([Buffer.from('{"Messages":['), ...parts, Buffer.from(']}')]);
  }

  function remove(number: number): void {
    if (!inFlight.delete(number)) return;
    ended += 1;
    if (ended === messages) drained.resolve();
  }

  function hide(number: number, forMs: number): void {
    const known = inFlight.get(number);
    if (known !== undefined) known.visibleAtMs = Date.now() + forMs;
  }

  return {
    queueUrl,
    letters: () => letters,
    drained: drained.promise,
    close: () => closeServer(server),
  };
}

interface Input {
  readonly QueueUrl?: string;
  readonly WaitTimeSeconds?: number;
  readonly Entries?: readonly { readonly Id: string; readonly ReceiptHandle: string; readonly VisibilityTimeout?: number }[];
}

function reply(response: ServerResponse, body: Buffer | string): void {
  response.writeHead(200, { 'content-type': 'application/x-amz-json-1.0', 'content-length': Buffer.byteLength(body) });
  response.end(body);
}
