/**
 * Receives messages: sqs-consumer polls, and this file decides when. A poller is in one of four states:
 *
 *   waiting ──► receiving ──► handling ──► waiting …
 *      │            │ error: longer wait      │
 *      └────────────┴──────── stop ───────────┴──► stopped
 *
 * `waiting` is the back-off after errors, and then the wait for the caller's admission. After a stop no poller leaves
 * `waiting` for `receiving`. Messages that a receive in flight still returns are handed over.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Message, SQSClient } from '@aws-sdk/client-sqs';
import { Consumer } from 'sqs-consumer';
import { FaultError, faultOf } from '../../domain/fault.ts';
import type { Clock } from '../../pipeline/ports/clock.ts';
import type { QueueReceiver } from '../../pipeline/ports/queues.ts';
import { beforeAnswersOf, createLargeAnswers } from './large-answers.ts';
import { receiveBackoffMs } from './receive-backoff.ts';
import { messageOf, SYSTEM_ATTRIBUTES } from './sqs-client.ts';
import { queueFault } from './sqs-faults.ts';

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
  /** Whether receives request the trace header of each message. */
  readonly traceHeaders?: boolean;
  /** Messages of one receive. Default 10, the most that SQS returns at once. */
  readonly batchMax?: number;
  readonly clock: Pick<Clock, 'monotonicMs' | 'sleep'>;
}

type Handlers = Parameters<QueueReceiver['start']>[0];

/** The most that SQS returns at once. */
const BATCH_SIZE = 10;
/** A process that gets no CPU for the whole grace would abort a poll before it reads the answer that has arrived: it loses one part only. */
const GRACE_PARTS = 5;

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
      for (const queueUrl of dependencies.queueUrls) beforeAnswersOf(dependencies.clientFor(queueUrl), beforeReading);
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
      for (let part = 0; part < GRACE_PARTS && !grace.signal.aborted; part += 1) {
        await sleep(graceMs / GRACE_PARTS, undefined, { signal: grace.signal }).catch(() => undefined);
      }
      for (const poller of pollers) poller.abort();
      await ended;
    },
  };
}

interface PollerOptions extends SqsReceiverDependencies {
  readonly queueUrl: string;
  readonly handlers: Handlers;
  readonly stopping: AbortSignal;
}

function createPoller({
  clientFor,
  queueUrl,
  handlers,
  stopping,
  clock,
  waitS,
  visibilityS,
  traceHeaders,
  batchMax = BATCH_SIZE,
}: PollerOptions): Poller {
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
    messageSystemAttributeNames: [...SYSTEM_ATTRIBUTES, ...(traceHeaders === true ? (['AWSTraceHeader'] as const) : [])],
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
    handlers.failed(fault);
  }

  return {
    start: () => consumer.start(),
    abort: () => consumer.stop({ abort: true }),
    ended: () => receiving.promise,
  };
}
