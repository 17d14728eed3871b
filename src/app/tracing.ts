/** Tracing of `tally serve`: OpenTelemetry if an endpoint is set, else none. */
import type { IndexLocation } from '../settings/urls.ts';
import type { ServeEnvironment } from '../settings/traces.ts';
import type { Settings } from '../settings/settings.ts';
import { indexLocation } from './core.ts';
import { noTracing, type Tracing } from '../pipeline/ports/tracing.ts';
import type { Telemetry } from '../pipeline/ports/telemetry.ts';

/** Enough for a collector that answers. One that does not must not delay a stop any longer. */
const FLUSH_MAX_MS = 3_000;
/** This much of the remaining time is left for the parts that close after tracing (the embedded AWS, the serve lock). */
const CLOSING_MS = 200;

export interface TracingParts {
  readonly settings: Settings;
  readonly environment: Pick<ServeEnvironment, 'traces' | 'proxy'>;
  readonly version: string;
  readonly telemetry: Telemetry;
}

export interface StartedTracing {
  readonly tracing: Tracing;
  /** Sends the remaining spans for at most 3 s, and leaves some of `leftMs` to the parts that close later. Spans that could not be sent are logged. */
  readonly stop: (leftMs: number) => Promise<void>;
}

/** Starts tracing if an endpoint is set and this process receives messages. Only then is the SDK loaded. */
export async function startTracing({ settings, environment, version, telemetry }: TracingParts): Promise<StartedTracing> {
  const { traces, proxy } = environment;
  if (traces === undefined || !settings.TALLY_ROLES.includes('ingest')) return { tracing: noTracing, stop: async () => {} };
  const { createOtelTracing } = await import('../adapters/otel/tracing.ts');
  const { tracing, stop } = createOtelTracing({
    ...traces,
    limits: traces,
    bulkActionsMax: settings.TALLY_BULK_ACTIONS,
    index: indexAttributes(indexLocation(settings)),
    version,
    proxyEnv: proxy,
    telemetry,
  });
  telemetry.info('tracing started', { collector: traces.collector, sampler: traces.sampler, ratio: traces.samplerRatio });
  return {
    tracing,
    async stop(leftMs) {
      const unsent = await stop(Math.max(0, Math.min(FLUSH_MAX_MS, leftMs - CLOSING_MS)));
      if (unsent > 0) telemetry.warn('spans were lost at the stop: the collector did not accept them in time', { spans: unsent });
    },
  };
}

/** The attributes of the index according to OpenTelemetry's semantic conventions for databases, with its address if there is only one. */
function indexAttributes(index: IndexLocation): Readonly<Record<string, string | number>> {
  const product = { 'db.system.name': index.product };
  const [node, ...more] = index.product === 'opensearch' ? index.nodes : [];
  if (node === undefined || more.length > 0) return product;
  const { hostname, port } = new URL(node);
  return { ...product, 'server.address': hostname, ...(port !== '' && { 'server.port': Number(port) }) };
}
