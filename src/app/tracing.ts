/** Tracing of `tally serve`: OpenTelemetry where an endpoint is set, else nothing at all. */
import { indexNodes } from '../settings/urls.ts';
import type { ServeEnvironment } from '../settings/traces.ts';
import type { Settings } from '../settings/settings.ts';
import { indexUrl } from './core.ts';
import { noTracing, type Tracing, type TracingTelemetry } from '../pipeline/ports/tracing.ts';
import type { Telemetry } from '../pipeline/ports/telemetry.ts';

/** Enough for a collector that answers; one that does not shall not hold up a stop. */
const FLUSH_MAX_MS = 3_000;
/** What closes after tracing (the embedded AWS, the serve lock) may need this of the time that is left. */
const CLOSING_MS = 200;

export interface TracingParts {
  readonly settings: Settings;
  readonly environment: Pick<ServeEnvironment, 'traces'>;
  readonly version: string;
  readonly telemetry: Telemetry;
  readonly tracingTelemetry: TracingTelemetry;
}

export interface StartedTracing {
  readonly tracing: Tracing;
  /** Sends what is left, for 3 s at most and so that `leftMs` suffices for what closes after it; what did not leave is told. */
  readonly stop: (leftMs: number) => Promise<void>;
}

/** Starts tracing, if an endpoint is set and this process has messages to trace. The SDK is loaded here, and only then. */
export async function startTracing({ settings, environment, version, telemetry, tracingTelemetry }: TracingParts): Promise<StartedTracing> {
  const { traces } = environment;
  if (traces === undefined || !settings.TALLY_ROLES.includes('ingest')) return { tracing: noTracing, stop: async () => {} };
  const { createOtelTracing } = await import('../adapters/otel/tracing.ts');
  const { tracing, stop } = createOtelTracing({
    ...traces,
    limits: traces,
    bulkActionsMax: settings.TALLY_BULK_ACTIONS,
    index: indexAttributes(indexUrl(settings)),
    version,
    telemetry: tracingTelemetry,
  });
  telemetry.info('tracing on', { collector: traces.collector, sampler: traces.sampler, ratio: traces.samplerRatio });
  return {
    tracing,
    async stop(leftMs) {
      const unsent = await stop(Math.max(0, Math.min(FLUSH_MAX_MS, leftMs - CLOSING_MS)));
      if (unsent > 0) telemetry.warn('spans lost at the stop: the collector did not take them in time', { spans: unsent });
    },
  };
}

/** The index as semantic conventions tell a database; its address where there is one. */
function indexAttributes(url: string): Readonly<Record<string, string | number>> {
  const [node, ...more] = indexNodes(url);
  if (node === undefined) return { 'db.system.name': 'sqlite' };
  if (more.length > 0) return { 'db.system.name': 'opensearch' };
  const { hostname, port } = new URL(node);
  return { 'db.system.name': 'opensearch', 'server.address': hostname, ...(port !== '' && { 'server.port': Number(port) }) };
}
