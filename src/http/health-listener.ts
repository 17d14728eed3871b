import { rowsOfHealth } from '../api/contract.ts';
import type { Telemetry } from '../pipeline/ports/telemetry.ts';
import { healthHandlers, type HealthParts } from './health.ts';
import { addRoutes } from './routes.ts';
import { createServer, listenerOf, type Address, type Listener } from './server.ts';

interface HealthListenerParts extends HealthParts {
  readonly address: Address;
  readonly telemetry: Telemetry;
}

/** Creates the listener for health and metrics only. Its address may be reachable from outside, unlike the control plane's. */
export function createHealthListener({ address, telemetry, ...parts }: HealthListenerParts): Listener {
  const app = createServer({ telemetry, rows: rowsOfHealth });
  const handlers = healthHandlers(parts);
  addRoutes(app, rowsOfHealth, ({ operation }) => handlers[operation]);
  return listenerOf(app, address);
}
