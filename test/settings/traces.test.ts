import { describe, expect, it } from 'vitest';
import { parseTraceSettings, type TraceSettings } from '../../src/settings/traces.ts';

const ON = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };

function tracesOf(environment: Readonly<Record<string, string | undefined>>): TraceSettings | undefined {
  const parsed = parseTraceSettings(environment);
  if (!parsed.ok) throw new Error(parsed.mistakes.join('; '));
  return parsed.traces;
}

function mistakesOf(environment: Readonly<Record<string, string | undefined>>): readonly string[] {
  const parsed = parseTraceSettings({ ...ON, ...environment });
  return parsed.ok ? [] : parsed.mistakes;
}

describe('tracing is off', () => {
  it.each([
    ['nothing is set', {}],
    ['the endpoint is empty', { OTEL_EXPORTER_OTLP_ENDPOINT: ' ' }],
    ['only other variables are set, whatever they are', { OTEL_TRACES_SAMPLER: 'nonsense', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }],
    ['OTEL_SDK_DISABLED is true', { ...ON, OTEL_SDK_DISABLED: 'TRUE' }],
    ['OTEL_TRACES_EXPORTER is none', { ...ON, OTEL_TRACES_EXPORTER: 'none', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }],
  ])('where %s', (_, environment) => {
    expect(tracesOf(environment)).toBeUndefined();
  });
});

describe('tracing is on', () => {
  it("with the SDK's own defaults where only an endpoint is set", () => {
    expect(tracesOf(ON)).toEqual({
      sampler: 'parentbased_always_on',
      samplerRatio: 1,
      queueMax: 2_048,
      batchMax: 512,
      batchDelayMs: 5_000,
      exportTimeoutMs: 30_000,
      collector: 'http://collector:4318',
    });
  });

  it('by the endpoint of traces alone, which counts before the common one; no path is told', () => {
    const own = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://tempo.internal/otlp/s3cret/v1/traces' };
    expect(tracesOf(own)?.collector).toBe('https://tempo.internal');
    expect(tracesOf({ ...ON, ...own })?.collector).toBe('https://tempo.internal');
  });

  it('as the variables say', () => {
    const environment = {
      ...ON,
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0.01',
      OTEL_BSP_MAX_QUEUE_SIZE: '100',
      OTEL_BSP_SCHEDULE_DELAY: '200',
      OTEL_BSP_EXPORT_TIMEOUT: '1000',
      OTEL_SDK_DISABLED: 'false',
    };
    expect(tracesOf(environment)).toMatchObject({
      sampler: 'parentbased_traceidratio',
      samplerRatio: 0.01,
      queueMax: 100,
      // no larger than the queue
      batchMax: 100,
      batchDelayMs: 200,
      exportTimeoutMs: 1_000,
    });
  });

  it.each(['authorization=Bearer%20abc', 'authorization=Basic dXNlcjpwYXNz==', 'x-a=1, x-b=2,', 'signoz-access-token=abc%2Cdef%3B'])(
    'with headers as the SDK reads them: %s',
    (OTEL_EXPORTER_OTLP_HEADERS) => {
      expect(mistakesOf({ OTEL_EXPORTER_OTLP_HEADERS })).toEqual([]);
    },
  );
});

describe('what is malformed is told at the door', () => {
  it.each([
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'grpc://collector:4317'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', ' http://collector:4318'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://collector:4318/?tenant=a'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://user:s3cret@collector:4318'],
    ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'nonsense'],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
    ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'http/json'],
    ['OTEL_EXPORTER_OTLP_TIMEOUT', '10s'],
    ['OTEL_EXPORTER_OTLP_COMPRESSION', 'zstd'],
    ['OTEL_TRACES_EXPORTER', 'zipkin'],
    ['OTEL_SDK_DISABLED', 'yes'],
    ['OTEL_TRACES_SAMPLER', 'sometimes'],
    ['OTEL_TRACES_SAMPLER_ARG', '1.5'],
    ['OTEL_TRACES_SAMPLER_ARG', 'half'],
    ['OTEL_BSP_MAX_QUEUE_SIZE', '0'],
    ['OTEL_BSP_SCHEDULE_DELAY', '-1'],
    ['OTEL_RESOURCE_ATTRIBUTES', 'deployment'],
    ['OTEL_RESOURCE_ATTRIBUTES', 'a=b=c'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 's3cret'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'authorization='],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'authorization=s3cret;more'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'authorization=s3cret%'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'authorization=s3cret%0d%0ax-more: 1'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'a header=s3cret'],
    ['OTEL_EXPORTER_OTLP_TRACES_HEADERS', 's3cret'],
  ])('%s=%s, without its value where that may be a secret', (name, value) => {
    const mistakes = mistakesOf({ [name]: value });
    expect(mistakes).toEqual([expect.stringMatching(new RegExp(`^${name}: must `))]);
    expect(mistakes.join()).not.toContain('s3cret');
  });

  it('all of it at once', () => {
    expect(mistakesOf({ OTEL_TRACES_SAMPLER: 'x', OTEL_BSP_SCHEDULE_DELAY: 'x', OTEL_EXPORTER_OTLP_ENDPOINT: 'x' })).toHaveLength(3);
  });
});
