/**
 * The spans of the data path, by OpenTelemetry's semantic conventions (1.45: messaging for SQS, the AWS SDK with S3,
 * database clients):
 *
 *   process QUEUE   one per message, the root of its trace; linked to the trace of the message's sender
 *   ├─ S3.HeadObject, S3.HeadBucket, S3.ListObjectsV2
 *   ⇄ bulk          one per request, the root of a separate trace; linked with each message that it serves, both ways
 *
 * Spans are linked, and have no parent, if one span serves many messages or if the sender's trace may have ended long ago.
 * Spans contain bucket and key, but no reason of a fault (it may contain an address) and no part of a body.
 */
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, TraceFlags, type Attributes, type Span, type Tracer } from '@opentelemetry/api';
import { parseTraceparent, parseXrayHeader, type TraceContext } from '../../domain/events/trace-context.ts';
import { labelOf } from '../../pipeline/ports/series.ts';
import {
  NO_TRACES,
  untraced,
  type MessageTrace,
  type RequestTrace,
  type TracedMessage,
  type Tracing,
} from '../../pipeline/ports/tracing.ts';

interface SpanDependencies {
  /** Creates the spans of messages, and samples them. */
  readonly messages: Tracer;
  /** Creates the spans of requests. It records all of them, because only requests that serve a recorded message reach it. */
  readonly requests: Tracer;
  /** The store that receives bulk requests: `db.system.name`, and its address if there is one. */
  readonly index: Attributes;
}

/** Creates the tracing of the data path. */
export function createSpans({ messages, requests, index }: SpanDependencies): Tracing {
  const queues = new Map<string, { readonly name: string; readonly attributes: Attributes }>();

  // bounded by the number of queues in the settings
  function queueOf(queueUrl: string) {
    const known = queues.get(queueUrl);
    if (known !== undefined) return known;
    const queue = describeQueue(queueUrl);
    queues.set(queueUrl, queue);
    return queue;
  }

  return {
    message(message) {
      const { name, attributes } = queueOf(message.queueUrl);
      const span = messages.startSpan(`process ${name}`, { kind: SpanKind.CONSUMER, attributes }, ROOT_CONTEXT);
      // the message is not sampled, so nothing more is computed for it
      if (!span.isRecording()) return NO_TRACES;
      span.setAttributes({
        'messaging.message.id': message.messageId,
        'messaging.message.body.size': Buffer.byteLength(message.body),
        'tally.receive_count': message.receiveCount,
      });
      for (const sender of sendersOf(message)) span.addLink(linkTo(sender, true));
      return [messageTrace(span)];
    },
    s3Request({ operation, bucket, key, region, traces = NO_TRACES }) {
      const [first, ...others] = new Set(traces);
      if (first === undefined) return untraced;
      const attributes = {
        'rpc.system': 'aws-api',
        'rpc.service': 'S3',
        'rpc.method': operation,
        'cloud.region': region,
        'aws.s3.bucket': bucket,
        ...(key !== undefined && { 'aws.s3.key': key }),
      };
      const links = others.map(({ context }) => linkTo(context));
      const parent = trace.setSpanContext(ROOT_CONTEXT, spanContextOf(first.context));
      const span = requests.startSpan(`S3.${operation}`, { kind: SpanKind.CLIENT, attributes, links }, parent);
      for (const other of others) other.servedBy(contextOf(span));
      return requestTrace(span);
    },
    bulk(writes) {
      const served = new Set(writes.flatMap(({ traces = NO_TRACES }) => traces));
      if (served.size === 0) return untraced;
      const size = writes.length > 1 ? { 'db.operation.batch.size': writes.length } : {};
      const attributes = { ...index, 'db.operation.name': 'bulk', ...size };
      const links = [...served].map(({ context }) => linkTo(context));
      const span = requests.startSpan('bulk', { kind: SpanKind.CLIENT, attributes, links }, ROOT_CONTEXT);
      for (const each of served) each.servedBy(contextOf(span));
      return requestTrace(span);
    },
  };
}

function describeQueue(queueUrl: string): { readonly name: string; readonly attributes: Attributes } {
  const { hostname, port, pathname } = new URL(queueUrl);
  const name = pathname.slice(pathname.lastIndexOf('/') + 1);
  return {
    name,
    attributes: {
      'messaging.system.name': 'aws.sqs',
      'messaging.operation.name': 'process',
      'messaging.operation.type': 'process',
      'messaging.destination.name': name,
      'aws.sqs.queue.url': queueUrl,
      'server.address': hostname,
      ...(port !== '' && { 'server.port': Number(port) }),
    },
  };
}

/** The spans that sent the message: one if the X-Ray header and traceparent agree. */
function sendersOf({ traceHeader = '', attributes }: TracedMessage): readonly TraceContext[] {
  const xray = parseXrayHeader(traceHeader);
  const w3c = parseTraceparent(attributes['traceparent']?.stringValue ?? '');
  if (xray === undefined || w3c === undefined) return [xray, w3c].filter((each) => each !== undefined);
  return xray.traceId === w3c.traceId && xray.spanId === w3c.spanId ? [xray] : [xray, w3c];
}

function messageTrace(span: Span): MessageTrace {
  return {
    context: contextOf(span),
    decided(records, outcomes) {
      span.setAttributes({ 'tally.records': records.length, 'tally.outcomes': [...new Set(outcomes.map(({ kind }) => labelOf(kind)))] });
      const [only] = records;
      if (records.length > 1 || only === undefined || !only.ok) return;
      const { bucket, key, eventName } = only.record;
      span.setAttributes({
        'tally.event_name': eventName,
        ...(bucket !== '' && { 'aws.s3.bucket': bucket }),
        ...(key !== '' && { 'aws.s3.key': key }),
      });
    },
    servedBy(request) {
      // the span of a message that was given back at a stop ended before the request
      if (span.isRecording()) span.addLink(linkTo(request));
    },
    settled(settlement, fault) {
      if (!span.isRecording()) return;
      span.setAttribute('tally.settlement', settlement);
      if (fault !== undefined) fail(span, fault);
      span.end();
    },
  };
}

function requestTrace(span: Span): RequestTrace {
  return {
    ended(errorType, answer) {
      if (answer !== undefined) {
        span.setAttribute('http.response.status_code', answer.status);
        const requestId = answer.headers['x-amz-request-id'];
        if (requestId !== undefined) span.setAttribute('aws.request_id', requestId);
      }
      if (errorType !== undefined) fail(span, errorType);
      span.end();
    },
  };
}

function fail(span: Span, errorType: string): void {
  span.setAttribute('error.type', errorType);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

function linkTo(context: TraceContext, isRemote = false) {
  return { context: { ...spanContextOf(context), isRemote } };
}

function spanContextOf({ traceId, spanId, isSampled }: TraceContext) {
  return { traceId, spanId, traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE };
}

function contextOf(span: Span): TraceContext {
  const { traceId, spanId } = span.spanContext();
  return { traceId, spanId, isSampled: true };
}
