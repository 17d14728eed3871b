/**
 * OpenTelemetry's own variables, as far as Tally honours them. Like those of the AWS SDK they keep their names and
 * meanings, and its exporter and resource read theirs themselves; what is malformed is told at the door, where the SDK
 * would go on with something else.
 */
import { z } from 'zod';
import type { AwsEnvironment } from './settings.ts';
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

const integer = (min: number, max: number, fallback: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, `must be a whole number from ${min} to ${max}`)
    .default(String(fallback))
    .transform(Number)
    .pipe(z.number().min(min, `must be at least ${min}`).max(max, `must be at most ${max}`));

const endpoint = z
  .string()
  .refine((text) => /^https?:\/\/[^\s?#]+$/i.test(text) && URL.canParse(text), 'must be an http or https URL without ? and #')
  .refine((text) => !hasCredentials(text), 'must name no user or password: put them into OTEL_EXPORTER_OTLP_HEADERS')
  .optional();

/** gRPC and JSON are packages of their own. */
const protocol = z
  .literal('http/protobuf', {
    error: 'must be http/protobuf, the only one that Tally speaks (a collector’s port 4318); OTEL_TRACES_EXPORTER=none turns traces off',
  })
  .default('http/protobuf');

const timeout = integer(1, 600_000, 10_000);
const compression = z.enum(['none', 'gzip'], { error: 'must be none or gzip' }).default('none');

interface PairRules {
  readonly name: RegExp;
  /** The value as it is written. */
  readonly written: RegExp;
  /** The value that is meant, without percent-encoding. */
  readonly meant: RegExp;
}

/** NAME=VALUE, comma-separated; what the SDK would leave out or cut is a mistake. No value is ever repeated: headers hold tokens. */
const pairs = (rules: PairRules) =>
  z
    .string()
    .refine(
      (text) => text.split(',').every((pair) => pair.trim() === '' || isPair(pair, rules)),
      'must be NAME=VALUE, comma-separated, with , ; and % (= too in attributes) percent-encoded in values',
    )
    .optional();

const headers = pairs({
  name: /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/,
  // the SDK takes what follows a ; for something else
  written: /^[^;]+$/,
  meant: /^[\t\u0020-\u007E\u0080-\u00FF]+$/,
});
const attributes = pairs({ name: /^[^\s=]{1,255}$/, written: /^[^=]*$/, meant: /^[^]{0,255}$/ });

/** OpenTelemetry's variables, by their own names. */
export const tracesSchema = z.object({
  OTEL_EXPORTER_OTLP_ENDPOINT: endpoint.describe('Traces are on when it is set: the base URL of an OTLP collector, `/v1/traces` is added.'),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: endpoint.describe('The URL for traces alone, taken as it stands; counts before the other.'),
  OTEL_EXPORTER_OTLP_HEADERS: headers.describe('Headers of each export, NAME=VALUE, comma-separated. Secret.'),
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: headers.describe('Headers for traces alone, besides the others. Secret.'),
  OTEL_EXPORTER_OTLP_PROTOCOL: protocol.describe('The only one that Tally speaks.'),
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: protocol.describe('The same for traces alone.'),
  OTEL_EXPORTER_OTLP_TIMEOUT: timeout.describe('Milliseconds that one export may take, retries included.'),
  OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: timeout.describe('The same for traces alone.'),
  OTEL_EXPORTER_OTLP_COMPRESSION: compression.describe('Compression of exports: none or gzip.'),
  OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: compression.describe('The same for traces alone.'),
  OTEL_TRACES_EXPORTER: z
    .enum(['otlp', 'none'], { error: 'must be otlp or none' })
    .default('otlp')
    .describe('With none, traces are off, whatever else is set.'),
  OTEL_SDK_DISABLED: z
    .string()
    .toLowerCase()
    .pipe(z.enum(['true', 'false'], { error: 'must be true or false' }))
    .default('false')
    .describe('With true, traces are off, whatever else is set.'),
  OTEL_SERVICE_NAME: z.string().default('tally').describe('The service that spans name.'),
  OTEL_RESOURCE_ATTRIBUTES: attributes.describe('More about it, NAME=VALUE, comma-separated.'),
  OTEL_TRACES_SAMPLER: z
    .enum(samplers, { error: `must be one of ${samplers.join(', ')}` })
    .default('parentbased_always_on')
    .describe('Which messages are traced. The default is all of them; parentbased_traceidratio takes OTEL_TRACES_SAMPLER_ARG of them.'),
  OTEL_TRACES_SAMPLER_ARG: z
    .string()
    .default('1')
    .transform(Number)
    .pipe(z.number(SHARE).min(0, SHARE).max(1, SHARE))
    .describe('The share of messages that a ratio sampler traces, 0 to 1.'),
  OTEL_BSP_MAX_QUEUE_SIZE: integer(1, 1_000_000, 2_048).describe('Spans that wait to be exported; more are dropped and counted.'),
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: integer(1, 1_000_000, 512).describe('Spans in one export.'),
  OTEL_BSP_SCHEDULE_DELAY: integer(1, 600_000, 5_000).describe('Milliseconds that spans wait for an export to be filled.'),
  OTEL_BSP_EXPORT_TIMEOUT: integer(1, 600_000, 30_000).describe('Milliseconds after which an export is no longer waited for.'),
});

/** What tracing needs that its SDK does not read by itself. */
export interface TraceSettings {
  readonly sampler: (typeof samplers)[number];
  /** 0 to 1. */
  readonly samplerRatio: number;
  readonly queueMax: number;
  readonly batchMax: number;
  readonly batchDelayMs: number;
  readonly exportTimeoutMs: number;
  /** Scheme, host and port of the collector: what stands after them may be a token. */
  readonly collector: string;
}

/** What `tally serve` needs of variables that are not its own. */
export interface ServeEnvironment extends AwsEnvironment {
  readonly traces: TraceSettings | undefined;
}

export type TraceSettingsResult =
  /** Undefined: tracing is off. */
  { readonly ok: true; readonly traces: TraceSettings | undefined } | { readonly ok: false; readonly mistakes: readonly string[] };

/** Reads OpenTelemetry's variables; an empty one counts as not set. Nothing is judged where no endpoint is set: others may share the environment. */
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
