/**
 * The port of tracing: what the data path tells of a message on its way. Off, {@link noTracing} answers constants and
 * {@link NO_TRACES} is all that is carried along: nothing is made for a message, and no vendor's module is loaded.
 */
import type { RecordResult } from '../../domain/events/envelope.ts';
import type { TraceContext } from '../../domain/events/trace-context.ts';
import type { FaultCode } from '../../domain/fault.ts';
import type { Outcome } from '../../domain/messages/outcome.ts';

/** What a trace tells of a message; a {@link QueueMessage} is one. */
export interface TracedMessage {
  readonly queueUrl: string;
  readonly messageId: string;
  readonly body: string;
  readonly receiveCount: number;
  readonly traceHeader?: string;
  readonly attributes: Readonly<Record<string, { readonly stringValue?: string }>>;
}

/** The trace of one message in hand that is recorded. */
export interface MessageTrace {
  /** Its span, to be the parent or the link of requests that serve the message. */
  readonly context: TraceContext;
  /** What its records are, and what they came to; told again when they are decided again. */
  decided(records: readonly RecordResult[], outcomes: readonly Outcome[]): void;
  /** A request that serves others too served it. */
  servedBy(request: TraceContext): void;
  /** Ends it: what happened to the message, and the fault that was the reason. */
  settled(settlement: string, fault?: FaultCode): void;
}

/** The traces that some work is for: none where tracing is off or none of its messages is sampled. */
export type Traces = readonly MessageTrace[];

export const NO_TRACES: Traces = [];

/** Something that is done for messages. */
export interface Traced {
  /** Theirs; absent: none. */
  readonly traces?: Traces;
}

/** A bucket that something is asked about. */
export interface TracedBucket extends Traced {
  readonly bucket: string;
  readonly region: string;
}

/** A request to S3. */
export interface TracedRequest extends TracedBucket {
  readonly operation: string;
  readonly key?: string;
}

/** The trace of a request under way. */
export interface RequestTrace {
  /** Ends it. `errorType`: what it failed with, a code or a name of few; undefined where it did not. Headers by lower-case name. */
  ended(errorType: string | undefined, answer?: { readonly status: number; readonly headers: Readonly<Record<string, string>> }): void;
}

export interface Tracing {
  /** Begins the trace of a received message. None: it is not recorded, and nothing more is told of it. */
  message(message: TracedMessage): Traces;
  /** A request to S3 is sent: a child of its first message's span, linked to those of the others. */
  s3Request(request: TracedRequest): RequestTrace;
  /** A bulk request is sent: one span for all that it serves, linked with each of their messages. */
  bulk(writes: readonly Traced[]): RequestTrace;
}

/** Of a request that no recorded message is served by. */
export const untraced: RequestTrace = { ended() {} };

/** Tracing that is off. */
export const noTracing: Tracing = {
  message: () => NO_TRACES,
  s3Request: () => untraced,
  bulk: () => untraced,
};

/** Facts about tracing itself, for whoever tells them. */
export interface TracingTelemetry {
  /** Spans that no collector will have: the queue was full, or an export failed for good. */
  spansDropped(reason: 'queue-full' | 'export-failed', count: number, error?: string): void;
  /** What the SDK complains of. */
  tracingTroubled(text: string): void;
}
