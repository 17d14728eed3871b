import { rowsOfHealth, type HealthName } from './contract/contract.ts';
import type { Telemetry } from '../process/telemetry.ts';
import { requireLocalHost } from './guard.ts';
import { addRoutes, type Handler, createServer, listenerOf, type Address, type Listener } from './server.ts';
import type { Readiness } from '../observing/readiness.ts';

interface HealthListenerParts extends HealthParts {
  readonly address: Address;
  readonly telemetry: Telemetry;
  /** How long a connection may take to send a request. Default: half a minute. */
  readonly requestTimeoutMs?: number;
}

const LOOPBACK = new Set(['127.0.0.1', 'localhost', '::1']);

/**
 * Creates the listener for health and metrics only. Its address may be reachable from outside, unlike the control plane's, and
 * under any name. On loopback it answers this machine's own names only.
 */
export function createHealthListener({ address, telemetry, requestTimeoutMs, ...parts }: HealthListenerParts): Listener {
  const guarded = LOOPBACK.has(address.host) && { guard: requireLocalHost };
  const app = createServer({ telemetry, rows: rowsOfHealth, requestTimeoutMs, ...guarded });
  const handlers = healthHandlers(parts);
  addRoutes(app, rowsOfHealth, ({ operation }) => handlers[operation]);
  return listenerOf(app, address);
}

/** /livez, /readyz and /metrics: the same on the health listener and on the control plane. */

interface MetricsSource {
  metricsText(): Promise<string>;
  readonly contentType: string;
}

export interface HealthParts {
  readonly readiness: Readiness;
  readonly metrics: MetricsSource;
}

/** Creates the handlers. Readiness answers 503 while the process cannot perform all its roles. */
export function healthHandlers({ readiness, metrics }: HealthParts): Readonly<Record<HealthName, Handler>> {
  return {
    getLiveness: async (_request, reply) => reply.send({ status: 'ok' }),
    async getReadiness(_request, reply) {
      const report = readiness.read();
      return reply.code(report.ready ? 200 : 503).send(report);
    },
    getMetrics: async (_request, reply) => reply.type(metrics.contentType).send(await metrics.metricsText()),
  };
}
