/**
 * The trace that a message belongs to, from X-Ray's header (SQS's AWSTraceHeader) or W3C's `traceparent`. Senders can
 * write any text there; a text that does not match the format exactly is ignored.
 */

/** A span of a trace, recorded by another service. */
export interface TraceContext {
  /** 32 lower-case hex digits, not all 0. */
  readonly traceId: string;
  /** 16 lower-case hex digits, not all 0. */
  readonly spanId: string;
  /** Whether the sender recorded the span. */
  readonly isSampled: boolean;
}

/** `Root=…;Parent=…;Sampled=…` has 82 characters; AWS services add the parts `Lineage` and `Self`. */
const XRAY_LENGTH_MAX = 512;
/** A later version may be longer than the 55 characters of this one. */
const TRACEPARENT_LENGTH_MAX = 256;

/** `1-` + 8 hex digits of time + `-` + 24 hex digits. */
const ROOT = /^1-([0-9a-f]{8})-([0-9a-f]{24})$/;
const SPAN_ID = /^[0-9a-f]{16}$/;
/** version-traceId-spanId-flags. Version 00 ends there; a later version may continue after another `-`. */
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/**
 * Reads X-Ray's header, its parts in any order: `Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1`.
 * Undefined when the trace or the span is missing. If a part occurs twice, the first one counts.
 */
export function parseXrayHeader(text: string): TraceContext | undefined {
  if (text.length > XRAY_LENGTH_MAX) return undefined;
  const parts = text.split(';').map((part) => part.trim());
  const valueOf = (name: string): string =>
    parts
      .find((part) => part.startsWith(name))
      ?.slice(name.length)
      .toLowerCase() ?? '';
  const [, time = '', random = ''] = ROOT.exec(valueOf('Root=')) ?? [];
  return contextOf(`${time}${random}`, valueOf('Parent='), valueOf('Sampled=') === '1');
}

/** Reads W3C's `traceparent` (Trace Context level 1, and the part of it that later versions keep). Undefined when the text is not valid. */
export function parseTraceparent(text: string): TraceContext | undefined {
  if (text.length > TRACEPARENT_LENGTH_MAX) return undefined;
  const [, version, traceId = '', spanId = '', flags = '', more] = TRACEPARENT.exec(text.trim()) ?? [];
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  return contextOf(traceId, spanId, (Number.parseInt(flags, 16) & 1) === 1);
}

function contextOf(traceId: string, spanId: string, isSampled: boolean): TraceContext | undefined {
  if (traceId === '' || !SPAN_ID.test(spanId) || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, isSampled };
}
