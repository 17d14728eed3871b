/** The ports of SQS and SNS: receiving, settling, sending. The conventions of object-index.ts hold. */
import type { FaultError } from '../../domain/fault.ts';

/** A message as received. */
export interface QueueMessage {
  readonly queueUrl: string;
  readonly messageId: string;
  readonly receiptHandle: string;
  readonly body: string;
  readonly sentAtMs: number;
  readonly firstReceivedAtMs: number;
  /** ApproximateReceiveCount: 1 at the first receive. */
  readonly receiveCount: number;
  /** The message attributes as received, to travel with a dead letter. */
  readonly attributes: Readonly<Record<string, MessageAttribute>>;
  /** AWSTraceHeader, where the receiver asks for it and the sender was traced. */
  readonly traceHeader?: string;
  /** When this process received it, monotonic. */
  readonly receivedAtMonotonicMs: number;
}

export interface MessageAttribute {
  readonly dataType: string;
  readonly stringValue?: string;
  readonly binaryValue?: Uint8Array;
}

/** Receiving: the handler's promise holds the poller back; it never deletes. */
export interface QueueReceiver {
  /** Starts the pollers. `admit` is awaited before each receive: it resolves when there is room. */
  start(handlers: {
    readonly admit: (signal: AbortSignal) => Promise<void>;
    readonly handle: (messages: readonly QueueMessage[]) => Promise<void>;
    /** A receive failed; its poller waits before the next one. */
    readonly failed: (fault: FaultError) => void;
    /** A receive was answered, with messages or without. */
    readonly polled?: () => void;
  }): void;
  /** No new receive begins; running ones may end for `graceMs`, then they are aborted. Resolves when none runs. */
  stop(graceMs: number): Promise<void>;
}

export interface BatchFailure {
  readonly receiptHandle: string;
  readonly code: string;
  /** The request itself was wrong (an expired or foreign receipt handle): sending it again cannot help. */
  readonly senderFault: boolean;
}

/** Requests about messages in hand; at most ten entries each. Whole-request failures throw `queue.unreachable`. */
export interface QueueClient {
  deleteBatch(queueUrl: string, receiptHandles: readonly string[], signal?: AbortSignal): Promise<readonly BatchFailure[]>;
  changeVisibilityBatch(
    queueUrl: string,
    entries: readonly { readonly receiptHandle: string; readonly timeoutS: number }[],
    signal?: AbortSignal,
  ): Promise<readonly BatchFailure[]>;
  /** Sends one message, to be seen after `delayS` (at most 900); returns its MessageId. */
  send(
    queueUrl: string,
    message: { readonly body: string; readonly attributes: Readonly<Record<string, MessageAttribute>>; readonly delayS?: number },
    signal?: AbortSignal,
  ): Promise<string>;
  /** Receives up to ten messages at once without waiting (dead-letter browsing). */
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
  /** From the redrive policy; absent: SQS never gives up. */
  readonly maxReceiveCount?: number;
  /** The redrive target's URL, resolved from its ARN (GetQueueUrl); absent when there is none or it may not be asked. */
  readonly deadLetterQueueUrl?: string;
}

export interface TopicClient {
  /** ConfirmSubscription, in the region that the ARN names. Throws `message.confirmation-failed`. */
  confirm(topicArn: string, token: string, signal?: AbortSignal): Promise<void>;
}
