/**
 * Tracing: what the data path reports about a message on its way. When tracing is off, {@link noTracing} returns constants
 * and only {@link NO_TRACES} is passed along: nothing is allocated for a message, and no vendor's module is loaded.
 */
import type { RecordResult } from '../../domain/events/record.ts';
import type { TraceContext } from '../../domain/events/trace-context.ts';
import type { FaultCode } from '../../domain/fault.ts';
import type { Outcome } from '../../domain/messages/outcome.ts';

/** The part of a {@link QueueMessage} that a trace uses. */
export interface TracedMessage {
  readonly queueUrl: string;
  readonly messageId: string;
  readonly body: string;
  readonly receiveCount: number;
  readonly traceHeader?: string;
  readonly attributes: Readonly<Record<string, { readonly stringValue?: string }>>;
}

/** The trace of one received message that is recorded. */
export interface MessageTrace {
  /** Its span, which is the parent or a link of the requests that serve the message. */
  readonly context: TraceContext;
  /** Reports the message's records and their outcomes; called again when they are decided again. */
  decided(records: readonly RecordResult[], outcomes: readonly Outcome[]): void;
  /** Reports a request that served this message and others. */
  servedBy(request: TraceContext): void;
  /** Ends the trace with what happened to the message, and with the fault that was the reason. */
  settled(settlement: string, fault?: FaultCode): void;
}

/** The traces of the messages that some work serves: none if tracing is off or no message is sampled. */
export type Traces = readonly MessageTrace[];

export const NO_TRACES: Traces = [];

/** Work that is done for messages. */
export interface Traced {
  /** The traces of those messages; absent: none. */
  readonly traces?: Traces;
}

/** A bucket that a request is about. */
export interface TracedBucket extends Traced {
  readonly bucket: string;
  readonly region: string;
  /** The account that must own it; absent: any. */
  readonly account?: string | undefined;
}

/** A request to S3. */
export interface TracedRequest extends TracedBucket {
  readonly operation: string;
  readonly key?: string;
}

/** The trace of a request under way. */
export interface RequestTrace {
  /**
   * Ends the trace. `errorType`: the code or the class of the failure, one of few values; undefined if the request
   * succeeded. Header names are in lower case.
   */
  ended(errorType: string | undefined, answer?: { readonly status: number; readonly headers: Readonly<Record<string, string>> }): void;
}

export interface Tracing {
  /** Begins the trace of a received message. Returns none if the message is not recorded. */
  message(message: TracedMessage): Traces;
  /** Begins the trace of a request to S3: a child of its first message's span, linked to the spans of the others. */
  s3Request(request: TracedRequest): RequestTrace;
  /** Begins the trace of a bulk request: one span, linked to the span of each message that it serves. */
  bulk(writes: readonly Traced[]): RequestTrace;
}

/** The trace of a request that serves no recorded message. */
export const untraced: RequestTrace = { ended() {} };

/** Tracing that is off. */
export const noTracing: Tracing = {
  message: () => NO_TRACES,
  s3Request: () => untraced,
  bulk: () => untraced,
};
