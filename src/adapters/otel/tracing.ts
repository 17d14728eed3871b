/** Sets up the OpenTelemetry SDK. This module is loaded only if an endpoint is set. */
import type { Attributes } from '@opentelemetry/api';
import {
  defaultResource,
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceInstanceIdDetector,
  serviceNameEnvDetector,
  type Resource,
} from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
  type Sampler,
} from '@opentelemetry/sdk-trace';
import type { Telemetry } from '../../pipeline/ports/telemetry.ts';
import type { Tracing } from '../../pipeline/ports/tracing.ts';
import { createSpanExport, type ExportLimits } from './export.ts';
import { createSpans } from './spans.ts';

export interface OtelOptions {
  readonly sampler:
    | 'always_on'
    | 'always_off'
    | 'traceidratio'
    | 'parentbased_always_on'
    | 'parentbased_always_off'
    | 'parentbased_traceidratio';
  /** 0 to 1, for the ratio samplers. */
  readonly samplerRatio: number;
  readonly limits: ExportLimits;
  /** The most writes in one bulk request, and so the most messages that its span is linked to. */
  readonly bulkActionsMax: number;
  /** `db.system.name` of the index, and its address if there is one. */
  readonly index: Attributes;
  readonly version: string;
  /** The proxy's variables in the form of Node's agents; absent: exports use no proxy. */
  readonly proxyEnv?: Readonly<Record<string, string>> | undefined;
  readonly telemetry: Telemetry;
}

export interface OtelTracing {
  readonly tracing: Tracing;
  /** Exports the spans that ended. Resolves after `withinMs` at the latest, with the number of spans that were not exported. */
  readonly stop: (withinMs: number) => Promise<number>;
}

/** Starts tracing. No connection is opened before the first export. */
export function createOtelTracing(options: OtelOptions): OtelTracing {
  const spans = createSpanExport(options.limits, options.telemetry, options.proxyEnv);
  const common = { resource: resourceOf(options.version), spanProcessors: [spans.processor] };
  const tracerOf = (sampler: Sampler) =>
    new TracerProvider({ ...common, sampler, spanLimits: { linkCountLimit: Math.max(LINKS_MIN, options.bulkActionsMax) } }).getTracer(
      'tally',
      options.version,
    );
  const tracing = createSpans({ messages: tracerOf(samplerOf(options)), requests: tracerOf(new AlwaysOnSampler()), index: options.index });

  return {
    tracing,
    async stop(withinMs) {
      const late = Promise.withResolvers<void>();
      const timer = setTimeout(late.resolve, withinMs);
      // a failed export is reported where it fails
      await Promise.race([spans.shutdown().catch(() => undefined), late.promise]);
      clearTimeout(timer);
      return spans.unsent;
    },
  };
}

/** The default limit of OpenTelemetry. */
const LINKS_MIN = 128;

/** The attributes of this process. Those from the environment (OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME) come last, so they override the others. */
function resourceOf(version: string): Resource {
  const named = resourceFromAttributes({ 'service.name': 'tally', 'service.version': version });
  const detected = detectResources({ detectors: [serviceInstanceIdDetector, resourceAttributesEnvDetector, serviceNameEnvDetector] });
  return defaultResource().merge(named).merge(detected);
}

/** Every message is the root of a separate trace, so the root part of a parent-based sampler decides. */
function samplerOf({ sampler, samplerRatio }: OtelOptions): Sampler {
  switch (sampler) {
    case 'always_on':
      return new AlwaysOnSampler();
    case 'always_off':
      return new AlwaysOffSampler();
    case 'traceidratio':
      return new TraceIdRatioBasedSampler(samplerRatio);
    case 'parentbased_always_on':
      return new ParentBasedSampler({ root: new AlwaysOnSampler() });
    case 'parentbased_always_off':
      return new ParentBasedSampler({ root: new AlwaysOffSampler() });
    case 'parentbased_traceidratio':
      return new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(samplerRatio) });
  }
}
