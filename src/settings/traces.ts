/**
 * The variables of OpenTelemetry that Tally supports. They keep OpenTelemetry's names and meanings; its exporter and
 * resource read theirs directly from the environment. Malformed values are reported at the start, whereas the SDK would
 * continue with other values.
 */
import { z } from 'zod';
import { integer } from './fields.ts';
import type { OuterEnvironment } from './proxy.ts';
import { hasCredentials } from './urls.ts';

const samplers = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;

const SHARE = 'must be a number from 0 to 1';

const endpoint = z
  .string()
  .refine((text) => /^https?:\/\/[^\s?#]+$/i.test(text) && URL.canParse(text), 'must be an http or https URL without ? and #')
  .refine((text) => !hasCredentials(text), 'must not contain a user or password: put them into OTEL_EXPORTER_OTLP_HEADERS')
  .optional();

/** The exporters for gRPC and JSON are separate packages, which Tally does not have. */
const protocol = z
  .literal('http/protobuf', {
    error:
      'must be http/protobuf, the only protocol that Tally supports (a collector’s port 4318); OTEL_TRACES_EXPORTER=none turns traces off',
  })
  .default('http/protobuf');

const timeout = integer(1, 600_000, 10_000);
const compression = z.enum(['none', 'gzip'], { error: 'must be none or gzip' }).default('none');

interface PairRules {
  readonly name: RegExp;
  /** The value as it is written in the variable. */
  readonly written: RegExp;
  /** The value after percent-decoding. */
  readonly meant: RegExp;
}

/** NAME=VALUE, separated by commas. A value that the SDK would ignore or cut is a mistake. Mistakes never repeat a value, because headers contain tokens. */
const pairs = (rules: PairRules) =>
  z
    .string()
    .refine(
      (text) => text.split(',').every((pair) => pair.trim() === '' || isPair(pair, rules)),
      'must be NAME=VALUE, separated by commas; in values , ; and % (and = in attributes) must be percent-encoded',
    )
    .optional();

const headers = pairs({
  name: /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/,
  // the SDK does not read the text after a ; as part of the value
  written: /^[^;]+$/,
  meant: /^[\t\u0020-\u007E\u0080-\u00FF]+$/,
});
const attributes = pairs({ name: /^[^\s=]{1,255}$/, written: /^[^=]*$/, meant: /^[^]{0,255}$/ });

/** The supported variables of OpenTelemetry. */
export const tracesSchema = z.object({
  OTEL_EXPORTER_OTLP_ENDPOINT: endpoint.describe(
    'The base URL of an OTLP collector, to which Tally adds /v1/traces. Traces are on if this variable or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set.',
  ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: endpoint.describe(
    'The complete URL to which traces are sent. It takes precedence over OTEL_EXPORTER_OTLP_ENDPOINT.',
  ),
  OTEL_EXPORTER_OTLP_HEADERS: headers.describe(
    'The headers of each export, as NAME=VALUE separated by commas. The value is a secret if it contains a token.',
  ),
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: headers.describe(
    'Further headers for exports of traces, added to those of OTEL_EXPORTER_OTLP_HEADERS. The value is a secret if it contains a token.',
  ),
  OTEL_EXPORTER_OTLP_PROTOCOL: protocol.describe('The protocol of exports. Tally supports only http/protobuf.'),
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: protocol.describe('The protocol for exports of traces. Tally supports only http/protobuf.'),
  OTEL_EXPORTER_OTLP_TIMEOUT: timeout.describe('The longest time that one export may take, including retries, in milliseconds.'),
  OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: timeout.describe('The same as OTEL_EXPORTER_OTLP_TIMEOUT, for traces only.'),
  OTEL_EXPORTER_OTLP_COMPRESSION: compression.describe('The compression of exports: none or gzip.'),
  OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: compression.describe('The same as OTEL_EXPORTER_OTLP_COMPRESSION, for traces only.'),
  OTEL_TRACES_EXPORTER: z
    .enum(['otlp', 'none'], { error: 'must be otlp or none' })
    .default('otlp')
    .describe('The exporter of traces. With none, traces are off even if an endpoint is set.'),
  OTEL_SDK_DISABLED: z
    .string()
    .toLowerCase()
    .pipe(z.enum(['true', 'false'], { error: 'must be true or false' }))
    .default('false')
    .describe('Whether OpenTelemetry is disabled. With true, traces are off even if an endpoint is set.'),
  OTEL_SERVICE_NAME: z.string().default('tally').describe('The service name in all spans.'),
  OTEL_RESOURCE_ATTRIBUTES: attributes.describe('Further attributes of the service in all spans, as NAME=VALUE separated by commas.'),
  OTEL_TRACES_SAMPLER: z
    .enum(samplers, { error: `must be one of ${samplers.join(', ')}` })
    .default('parentbased_always_on')
    .describe(
      'The sampler, which decides which messages are traced. By default all are; parentbased_traceidratio traces the share in OTEL_TRACES_SAMPLER_ARG.',
    ),
  OTEL_TRACES_SAMPLER_ARG: z
    .string()
    .default('1')
    .transform(Number)
    .pipe(z.number(SHARE).min(0, SHARE).max(1, SHARE))
    .describe('The share of messages that a ratio sampler traces, from 0 to 1.'),
  OTEL_BSP_MAX_QUEUE_SIZE: integer(1, 1_000_000, 2_048).describe(
    'The largest number of spans that wait for export. Further spans are dropped and counted in tally_spans_dropped_total.',
  ),
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: integer(1, 1_000_000, 512).describe('The largest number of spans in one export.'),
  OTEL_BSP_SCHEDULE_DELAY: integer(1, 600_000, 5_000).describe('How long spans wait for an export to fill, in milliseconds.'),
  OTEL_BSP_EXPORT_TIMEOUT: integer(1, 600_000, 30_000).describe('How long Tally waits for an export to end, in milliseconds.'),
});

/** The values that Tally passes to OpenTelemetry's SDK, which does not read them from the environment. */
export interface TraceSettings {
  readonly sampler: (typeof samplers)[number];
  /** 0 to 1. */
  readonly samplerRatio: number;
  readonly queueMax: number;
  readonly batchMax: number;
  readonly batchDelayMs: number;
  readonly exportTimeoutMs: number;
  /** Scheme, host and port of the collector. The path is left out, because it may contain a token. */
  readonly collector: string;
}

/** What `tally serve` uses of the variables of other products: also those of OpenTelemetry. */
export interface ServeEnvironment extends OuterEnvironment {
  readonly traces: TraceSettings | undefined;
}

type TraceSettingsResult =
  /** `traces` is undefined when tracing is off. */
  { readonly ok: true; readonly traces: TraceSettings | undefined } | { readonly ok: false; readonly mistakes: readonly string[] };

/**
 * Reads OpenTelemetry's variables; an empty one counts as not set. Values are checked only if an endpoint is set, because
 * the environment may be shared with other programs.
 */
export function parseTraceSettings(environment: Readonly<Record<string, string | undefined>>): TraceSettingsResult {
  const names = Object.keys(tracesSchema.shape);
  const values = Object.fromEntries(names.map((name) => [name, environment[name]]).filter(([, value]) => value?.trim() !== ''));
  const url = values['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] ?? values['OTEL_EXPORTER_OTLP_ENDPOINT'];
  if (url === undefined || values['OTEL_TRACES_EXPORTER'] === 'none') return { ok: true, traces: undefined };
  if (values['OTEL_SDK_DISABLED']?.toLowerCase() === 'true') return { ok: true, traces: undefined };
  const parsed = tracesSchema.safeParse(values);
  if (!parsed.success)
    return { ok: false, mistakes: parsed.error.issues.map(({ path: [name], message }) => `${String(name)}: ${message}`) };
  return {
    ok: true,
    traces: {
      sampler: parsed.data.OTEL_TRACES_SAMPLER,
      samplerRatio: parsed.data.OTEL_TRACES_SAMPLER_ARG,
      queueMax: parsed.data.OTEL_BSP_MAX_QUEUE_SIZE,
      batchMax: Math.min(parsed.data.OTEL_BSP_MAX_EXPORT_BATCH_SIZE, parsed.data.OTEL_BSP_MAX_QUEUE_SIZE),
      batchDelayMs: parsed.data.OTEL_BSP_SCHEDULE_DELAY,
      exportTimeoutMs: parsed.data.OTEL_BSP_EXPORT_TIMEOUT,
      collector: new URL(url).origin,
    },
  };
}

function isPair(text: string, { name, written, meant }: PairRules): boolean {
  const at = text.indexOf('=');
  const value = text.slice(at + 1).trim();
  if (at === -1 || !name.test(text.slice(0, at).trim()) || !written.test(value)) return false;
  try {
    return meant.test(decodeURIComponent(value));
  } catch {
    return false;
  }
}
