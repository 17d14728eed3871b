/** The ports for SQS and SNS: receiving, settling, sending. The conventions of store.ts apply. */
import type { FaultError } from '../base/fault.ts';

/** A message as it was received. */
export interface QueueMessage {
  readonly queueUrl: string;
  readonly messageId: string;
  readonly receiptHandle: string;
  readonly body: string;
  readonly sentAtMs: number;
  readonly firstReceivedAtMs: number;
  /** ApproximateReceiveCount: 1 at the first receive. */
  readonly receiveCount: number;
  /** The message attributes as received; a dead letter carries them on. */
  readonly attributes: Readonly<Record<string, MessageAttribute>>;
  /** When this process received it, by the monotonic clock. */
  readonly receivedAtMonotonicMs: number;
}

export interface MessageAttribute {
  readonly dataType: string;
  readonly stringValue?: string;
  readonly binaryValue?: Uint8Array;
}

/** Receives messages. A poller waits for its handler's promise before it receives again. The receiver never deletes a message. */
export interface QueueReceiver {
  /** Starts the pollers. `admit` is awaited before each receive; it resolves when there is room. */
  start(handlers: {
    readonly admit: (signal: AbortSignal) => Promise<void>;
    readonly handle: (messages: readonly QueueMessage[]) => Promise<void>;
    /** Awaited before an answer with large messages is read: it stays with SQS until there is memory for it. Default: there always is. */
    readonly roomForLarge?: (signal: AbortSignal) => Promise<void>;
    /** A receive of this queue failed; its poller waits before the next one. */
    readonly failed: (fault: FaultError, queueUrl: string) => void;
    /** SQS answered a receive of this queue, with or without messages. Called before they are handled. */
    readonly polled?: (queueUrl: string) => void;
  }): void;
  /** Starts no new receive, waits up to `graceMs` for the running ones, then aborts them. Resolves when none runs. */
  stop(graceMs: number): Promise<void>;
}

export interface BatchFailure {
  readonly receiptHandle: string;
  readonly code: string;
  /** The entry itself was wrong (an expired or foreign receipt handle), so a retry cannot help. */
  readonly senderFault: boolean;
}

/** Requests about messages. A batch has at most ten entries. A failure of the whole request throws `queue.unreachable` or `queue.missing`. */
export interface QueueClient {
  deleteBatch(queueUrl: string, receiptHandles: readonly string[], signal?: AbortSignal): Promise<readonly BatchFailure[]>;
  changeVisibilityBatch(
    queueUrl: string,
    entries: readonly { readonly receiptHandle: string; readonly timeoutS: number }[],
    signal?: AbortSignal,
  ): Promise<readonly BatchFailure[]>;
  /** Sends one message that becomes visible after `delayS` (at most 900). Returns its MessageId. */
  send(
    queueUrl: string,
    message: { readonly body: string; readonly attributes: Readonly<Record<string, MessageAttribute>>; readonly delayS?: number },
    signal?: AbortSignal,
  ): Promise<string>;
  /** Receives up to ten messages by a short poll (to browse dead letters). */
  receive(
    queueUrl: string,
    options: { readonly visibilityS: number; readonly max: number },
    signal?: AbortSignal,
  ): Promise<readonly QueueMessage[]>;
  attributes(queueUrl: string, signal?: AbortSignal): Promise<QueueAttributes>;
}

export interface QueueAttributes {
  readonly visible: number;
  readonly inFlight: number;
  readonly delayed: number;
  readonly visibilityTimeoutS: number;
  /** From the redrive policy; absent: SQS never moves a message away. */
  readonly maxReceiveCount?: number;
  /** The URL of the redrive target, resolved from its ARN (GetQueueUrl); absent if there is no target or GetQueueUrl is denied. */
  readonly deadLetterQueueUrl?: string;
  /** After how long SQS deletes a message, however often it was received. Absent if SQS did not answer it. */
  readonly retentionMs?: number;
  /** By how much the clock of SQS is ahead of that of this machine, to some seconds. Absent if its answer has no time. */
  readonly sqsAheadMs?: number;
  /** The largest message that the queue accepts: body and attributes together. Absent if SQS did not answer it. */
  readonly messageBytesMax?: number;
}

/** Calls ConfirmSubscription in the region that the ARN names. Throws `message.confirmation-failed`. */
export type ConfirmSubscription = (topicArn: string, token: string, signal?: AbortSignal) => Promise<void>;
