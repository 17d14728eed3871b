/**
 * Receives messages: sqs-consumer polls, and this file decides when. A poller is in one of four states:
 *
 *   waiting ──► receiving ──► handling ──► waiting …
 *      │            │ error: longer wait      │
 *      └────────────┴──────── stop ───────────┴──► stopped
 *
 * `waiting` is the back-off after errors, and then the wait for the caller's admission. After a stop, no poller goes from
 * `waiting` to `receiving`. Messages that a receive in flight still returns are handed over.
 */
import { setTimeout as sleep, setImmediate } from 'node:timers/promises';
import type { Message, MessageAttributeValue, SQSClient } from '@aws-sdk/client-sqs';
import { Consumer } from 'sqs-consumer';
import { z, ZodError } from 'zod';
import { FaultError, faultOf } from '../base/fault.ts';
import type { Clock } from '../process/clock.ts';
import type { MessageAttribute, QueueMessage, QueueReceiver } from './queues.ts';
import { IncomingMessage } from 'node:http';
import { HttpResponse } from '@smithy/core/protocols';
import { errorText, isCredentialsError, isDenied, isMissing } from './faults.ts';

interface SqsReceiverDependencies {
  /** A client for receiving only. */
  readonly clientFor: (queueUrl: string) => SQSClient;
  readonly queueUrls: readonly string[];
  /** Concurrent receives of each queue. */
  readonly pollers: number;
  /** The long-poll wait of a receive. */
  readonly waitS: number;
  /** How long a received message stays hidden unless its visibility time-out is changed. */
  readonly visibilityS: number;
  /** Messages of one receive. Default 10, the most that SQS returns at once. */
  readonly batchMax?: number;
  readonly clock: Pick<Clock, 'monotonicMs' | 'sleep'>;
}

type Handlers = Parameters<QueueReceiver['start']>[0];

/** The most that SQS returns at once. */
const BATCH_SIZE = 10;

interface Poller {
  start(): void;
  /** Ends the poller now. A receive in flight is aborted. */
  abort(): void;
  /** Resolves when no receive is in flight. It is called only after the stop began, when no receive can begin any more. */
  ended(): Promise<void>;
}

/** Creates the receiver. Each queue has `pollers` pollers. */
export function createSqsReceiver(dependencies: SqsReceiverDependencies): QueueReceiver {
  const stopping = new AbortController();
  let pollers: readonly Poller[] = [];

  return {
    start(handlers) {
      const { roomForLarge = () => Promise.resolve() } = handlers;
      const beforeReading = createLargeAnswers(roomForLarge, stopping.signal);
      // a queue that is named twice has one client
      for (const client of new Set(dependencies.queueUrls.map((queueUrl) => dependencies.clientFor(queueUrl))))
        beforeAnswersOf(client, beforeReading);
      pollers = dependencies.queueUrls.flatMap((queueUrl) =>
        Array.from({ length: dependencies.pollers }, () =>
          createPoller({ ...dependencies, queueUrl, handlers, stopping: stopping.signal }),
        ),
      );
      for (const poller of pollers) poller.start();
    },
    async stop(graceMs) {
      stopping.abort(new Error('receiving was stopped'));
      const grace = new AbortController();
      const ended = Promise.all(pollers.map((poller) => poller.ended())).then(() => grace.abort());
      await sleep(graceMs, undefined, { signal: grace.signal }).catch(() => undefined);
      for (const poller of pollers) poller.abort();
      await ended;
    },
  };
}

function createPoller({
  clientFor,
  queueUrl,
  handlers,
  stopping,
  clock,
  waitS,
  visibilityS,
  batchMax = BATCH_SIZE,
}: SqsReceiverDependencies & { readonly queueUrl: string; readonly handlers: Handlers; readonly stopping: AbortSignal }): Poller {
  let failures = 0;
  let receiving = Promise.withResolvers<void>();
  receiving.resolve();

  const consumer = Consumer.create({
    queueUrl,
    sqs: clientFor(queueUrl),
    batchSize: batchMax,
    waitTimeSeconds: waitS,
    visibilityTimeout: visibilityS,
    shouldDeleteMessages: false,
    messageSystemAttributeNames: [...SYSTEM_ATTRIBUTES],
    messageAttributeNames: ['All'],
    // sqs-consumer's own pause after some errors is off: receiveBackoffMs is the rule for all errors
    authenticationErrorTimeout: 0,
    suppressFifoWarning: true,
    preReceiveMessageCallback: beforeReceive,
    handleMessageBatch: handle,
  });
  consumer.on('empty', answered);
  consumer.on('error', ({ cause }) => failed(cause instanceof FaultError ? cause : queueFault('ReceiveMessage', queueUrl, cause)));

  /** Throws during a stop, which ends this poll. A stopped consumer does not poll again. */
  async function beforeReceive(): Promise<void> {
    try {
      if (failures > 0) await clock.sleep(receiveBackoffMs(failures), stopping);
      await handlers.admit(stopping);
      stopping.throwIfAborted();
    } catch (error) {
      if (stopping.aborted) consumer.stop();
      throw error;
    }
    receiving = Promise.withResolvers();
  }

  async function handle(messages: Message[]): Promise<undefined> {
    const receivedAtMonotonicMs = clock.monotonicMs();
    try {
      const received = messages.map((message) => messageOf(message, { queueUrl, receivedAtMonotonicMs }));
      answered();
      await handlers.handle(received);
    } catch (error) {
      // sqs-consumer would treat an error that is thrown here as a failed receive
      const { code, reason } = faultOf(error);
      failed(new FaultError(code, reason));
    }
  }

  function answered(): void {
    failures = 0;
    handlers.polled?.(queueUrl);
    receiving.resolve();
  }

  function failed(fault: FaultError): void {
    receiving.resolve();
    if (stopping.aborted) return;
    failures += 1;
    handlers.failed(fault, queueUrl);
  }

  return {
    start: () => consumer.start(),
    abort: () => consumer.stop({ abort: true }),
    ended: () => receiving.promise,
  };
}

/**
 * Large answers of SQS are read one after another. SQS returns up to ten messages of 1 MiB at once, and each byte of them
 * takes five while it is read (its chunks, the whole text, the bodies), so the pollers of a small container would exhaust its
 * memory together. The bytes of an answer that waits stay in the connection. Usual answers are read as they come.
 */

/** Ten messages of 25 kB, ten times the usual size. */
const LARGE_BYTES = 262_144;

/** Resolves when the answer may be read. */
type BeforeReading = (answer: unknown) => Promise<void>;

/** Creates the line in which the large answers of all pollers wait. `room` is awaited at its head. */
function createLargeAnswers(room: (signal: AbortSignal) => Promise<void>, stopping: AbortSignal): BeforeReading {
  let last = Promise.resolve();
  return async function beforeReading(answer) {
    if (!HttpResponse.isInstance(answer) || !(answer.body instanceof IncomingMessage)) return;
    const { body, headers } = answer;
    if (body.destroyed) throw endedEarly();
    if (Number(headers['content-length'] ?? Number.POSITIVE_INFINITY) <= LARGE_BYTES) return;
    const before = last;
    const read = Promise.withResolvers<void>();
    last = read.promise;
    // one turn later its messages are in hand, and count for the next one
    body.once('close', () => void setImmediate().then(() => read.resolve()));
    await before;
    // at a stop nothing more is read, so the messages return to the queue when their visibility time-out ends
    if (!stopping.aborted) await room(stopping).catch(() => undefined);
    if (stopping.aborted) body.destroy();
    if (body.destroyed) throw endedEarly();
  };
}

function endedEarly(): Error {
  return new Error('the connection ended before the answer was read');
}

/** Makes the client await `beforeReading` between the headers of an answer and its body. */
function beforeAnswersOf({ config: { requestHandler } }: SQSClient, beforeReading: BeforeReading): void {
  const handle = requestHandler.handle.bind(requestHandler);
  requestHandler.handle = async (request, options) => {
    const answered = await handle(request, options);
    await beforeReading(answered.response);
    return answered;
  };
}

/** One connection that was reset says nothing about the next one. A second at each of them would cost a poller with an answer each 20 ms 4 % of its time at one reset in 1,000. */
const FIRST_MS = 100;
/** Without it, sqs-consumer sends 27 requests a second to a closed port. */
const BACKOFF_MIN_MS = 1_000;
const BACKOFF_MAX_MS = 30_000;

/** Returns how long to wait after this many receives in a row that failed. The wait has jitter. */
export function receiveBackoffMs(failures: number): number {
  const fullMs = failures <= 1 ? FIRST_MS : Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** Math.min(failures - 2, 10));
  // a random time in the upper half, so that pollers that failed together do not return together
  return fullMs * (0.5 + Math.random() / 2);
}

// ── a message as SQS gives it ──────────────────────────────────────────────────────────────────────────────────────

/** The system attributes that every receive requests. */
export const SYSTEM_ATTRIBUTES = ['SentTimestamp', 'ApproximateReceiveCount', 'ApproximateFirstReceiveTimestamp'] as const;

const messageSchema = z.object({
  MessageId: z.string(),
  ReceiptHandle: z.string(),
  Body: z.string().default(''),
  Attributes: z.object({
    SentTimestamp: z.coerce.number().int(),
    ApproximateReceiveCount: z.coerce.number().int().positive(),
    ApproximateFirstReceiveTimestamp: z.coerce.number().int(),
  }),
});

/** Maps a message of SQS. Throws the queue's fault if a field or attribute that every receive requests is missing. */
export function messageOf(message: Message, received: { readonly queueUrl: string; readonly receivedAtMonotonicMs: number }): QueueMessage {
  const parsed = messageSchema.safeParse(message);
  if (!parsed.success) throw queueFault('ReceiveMessage', received.queueUrl, parsed.error);
  const { MessageId, ReceiptHandle, Body, Attributes } = parsed.data;
  return {
    ...received,
    messageId: MessageId,
    receiptHandle: ReceiptHandle,
    body: Body,
    sentAtMs: Attributes.SentTimestamp,
    firstReceivedAtMs: Attributes.ApproximateFirstReceiveTimestamp,
    receiveCount: Attributes.ApproximateReceiveCount,
    attributes: message.MessageAttributes ? attributesReceived(message.MessageAttributes) : NO_ATTRIBUTES,
  };
}

/** Of a message of S3, SNS or EventBridge. */
const NO_ATTRIBUTES: QueueMessage['attributes'] = {};

function attributesReceived(attributes: Readonly<Record<string, MessageAttributeValue>>): QueueMessage['attributes'] {
  return Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, attributeReceived(value)]));
}

function attributeReceived({ DataType, StringValue, BinaryValue }: MessageAttributeValue): MessageAttribute {
  return {
    dataType: DataType ?? 'String',
    ...(StringValue !== undefined && { stringValue: StringValue }),
    ...(BinaryValue !== undefined && { binaryValue: BinaryValue }),
  };
}

/** The fault of a queue with a reason for operators. `error` is the SDK's error. */
export function queueFault(operation: string, queueUrl: string, error: unknown): FaultError {
  const code = isMissing(error) ? 'queue.missing' : isTooLong(error) ? 'message.too-large' : 'queue.unreachable';
  return new FaultError(code, `${operation} ${queueUrl}: ${reasonOf(error)}`, { cause: error });
}

/** SQS and ElasticMQ say only in words that a message is too long. */
function isTooLong(error: unknown): boolean {
  return error instanceof Error && /must be shorter than|MessageTooLong/.test(error.message);
}

function reasonOf(error: unknown): string {
  if (isMissing(error)) return 'the queue does not exist';
  if (isDenied(error)) return `permission denied (${errorText(error)})`;
  if (isCredentialsError(error)) return `the AWS credentials are missing or not accepted (${errorText(error)})`;
  // another server answers there: a web page, or JSON of another kind
  if (error instanceof SyntaxError) return 'the answer is not one of SQS: it is not JSON';
  if (error instanceof ZodError) return `the answer is not one of SQS: ${error.issues.map(issueText).join(', ')}`;
  return errorText(error);
}

function issueText({ path, message }: ZodError['issues'][number]): string {
  return [path.join('.'), message].filter((part) => part !== '').join(': ');
}
