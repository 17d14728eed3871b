import { rowsOfHealth } from '../api/contract.ts';
import type { Telemetry } from '../pipeline/ports/telemetry.ts';
import { requireLocalHost } from './guard.ts';
import { healthHandlers, type HealthParts } from './health.ts';
import { addRoutes } from './routes.ts';
import { createServer, listenerOf, type Address, type Listener } from './server.ts';

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
