/** A collector of traces for tests: takes OTLP over HTTP with protobuf, and can fail as real ones do. */
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { gunzipSync } from 'node:zlib';
import protobuf from 'protobufjs';
import { z } from 'zod';
import { closeServer, listen } from './listening.ts';

/** What this reads of opentelemetry/proto/trace/v1/trace.proto and its like, by their field numbers. */
const types = protobuf.parse(`
  syntax = "proto3";
  message Request { repeated ResourceSpans resource_spans = 1; }
  message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
  message Resource { repeated KeyValue attributes = 1; }
  message ScopeSpans { repeated Span spans = 2; }
  message Span {
    bytes trace_id = 1; bytes span_id = 2; bytes parent_span_id = 4; string name = 5; int32 kind = 6;
    fixed64 start = 7; fixed64 end = 8; repeated KeyValue attributes = 9; repeated Link links = 13; Status status = 15;
  }
  message Link { bytes trace_id = 1; bytes span_id = 2; fixed32 flags = 6; }
  message Status { int32 code = 3; }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message AnyValue { oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4; ArrayValue array_value = 5; } }
  message ArrayValue { repeated AnyValue values = 1; }
`).root;
const requestType = types.lookupType('Request');

export type AttributeValue = string | number | boolean | readonly AttributeValue[];
export type SpanAttributes = Readonly<Record<string, AttributeValue>>;

export interface SpanLink {
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
  readonly isRemote: boolean;
}

export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Undefined for the root of a trace. */
  readonly parentSpanId: string | undefined;
  readonly name: string;
  readonly kind: 'internal' | 'server' | 'client' | 'producer' | 'consumer';
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly attributes: SpanAttributes;
  readonly links: readonly SpanLink[];
  readonly isError: boolean;
  /** Of the process. */
  readonly resource: SpanAttributes;
}

export type Behaviour =
  | { readonly kind: 'take' }
  | { readonly kind: 'answer'; readonly status: number; readonly body?: string; readonly headers?: Readonly<Record<string, string>> }
  | { readonly kind: 'hang' };

export interface OtlpReceiver {
  readonly url: string;
  /** Every span taken so far. */
  readonly spans: readonly ReceivedSpan[];
  /** The headers of each export, taken or not. */
  readonly exports: readonly IncomingHttpHeaders[];
  named(name: string): readonly ReceivedSpan[];
  behave(behaviour: Behaviour): void;
  close(): Promise<void>;
}

/** Starts a collector that takes what is sent to /v1/traces. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const exports: IncomingHttpHeaders[] = [];
  let behaviour: Behaviour = { kind: 'take' };

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    exports.push(request.headers);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (behaviour.kind === 'hang') return;
    if (behaviour.kind === 'answer') {
      response.writeHead(behaviour.status, behaviour.headers).end(behaviour.body);
      return;
    }
    if (request.url !== '/v1/traces' || request.headers['content-type'] !== 'application/x-protobuf') {
      response.writeHead(404).end();
      return;
    }
    const sent = Buffer.concat(chunks);
    spans.push(...spansOf(request.headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent));
    response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
  }

  // an exporter's idle connection is not closed under its next request
  const server = createServer(
    { keepAliveTimeout: 3_600_000 },
    (request, response) => void take(request, response).catch(() => response.destroy()),
  );
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}`,
    spans,
    exports,
    named: (name) => spans.filter((span) => span.name === name),
    behave(next) {
      behaviour = next;
    },
    close: () => closeServer(server),
  };
}

const id = z.string().transform((base64) => Buffer.from(base64, 'base64').toString('hex'));
const whole = z.union([z.string(), z.number()]).transform(Number);
const anyValue: z.ZodType<AttributeValue> = z.lazy(() =>
  z.union([
    z.object({ stringValue: z.string() }).transform(({ stringValue }) => stringValue),
    z.object({ boolValue: z.boolean() }).transform(({ boolValue }) => boolValue),
    z.object({ intValue: whole }).transform(({ intValue }) => intValue),
    z.object({ doubleValue: z.number() }).transform(({ doubleValue }) => doubleValue),
    z.object({ arrayValue: z.object({ values: z.array(anyValue).default([]) }) }).transform(({ arrayValue }) => arrayValue.values),
  ]),
);
const attributes = z
  .array(z.object({ key: z.string(), value: anyValue }))
  .default([])
  .transform((list) => Object.fromEntries(list.map(({ key, value }) => [key, value])));
const kinds = ['internal', 'internal', 'server', 'client', 'producer', 'consumer'] as const;
const ERROR = 2;

const spanSchema = z.object({
  traceId: id,
  spanId: id,
  parentSpanId: id.optional(),
  name: z.string(),
  kind: z.number().default(0),
  start: z.coerce.bigint(),
  end: z.coerce.bigint(),
  attributes,
  links: z.array(z.object({ traceId: id, spanId: id, flags: z.number().default(0) })).default([]),
  status: z.object({ code: z.number().default(0) }).optional(),
});
const requestSchema = z.object({
  resourceSpans: z.array(
    z.object({ resource: z.object({ attributes }), scopeSpans: z.array(z.object({ spans: z.array(spanSchema).default([]) })) }),
  ),
});

/** Flags of a link: the sender's trace flags, and whether it is known to be remote, and is. */
const SAMPLED = 0x1;
const REMOTE = 0x300;

function spansOf(body: Uint8Array): readonly ReceivedSpan[] {
  const plain = requestType.toObject(requestType.decode(body), { longs: String, bytes: String, arrays: false });
  return requestSchema.parse(plain).resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(({ start, end, kind, status, links, parentSpanId, ...span }) => ({
        ...span,
        parentSpanId: parentSpanId === '' ? undefined : parentSpanId,
        kind: kinds[kind] ?? 'internal',
        startNs: start,
        endNs: end,
        links: links.map(({ flags, ...link }) => ({
          ...link,
          isSampled: (flags & SAMPLED) === SAMPLED,
          isRemote: (flags & REMOTE) === REMOTE,
        })),
        isError: status?.code === ERROR,
        resource: resource.attributes,
      })),
    ),
  );
}
