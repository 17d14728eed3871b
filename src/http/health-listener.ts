import type { Telemetry } from '../pipeline/ports/telemetry.ts';
import type { Readiness } from '../pipeline/serving/readiness.ts';
import { addHealthRoutes, healthPaths, type MetricsSource } from './health-routes.ts';
import { answerUnknown, createServer, listenerOf, type Address, type Listener } from './server.ts';

interface HealthListenerParts {
  readonly address: Address;
  readonly readiness: Readiness;
  readonly metrics: MetricsSource;
  readonly telemetry: Telemetry;
}

/** Health and metrics on an address of their own, and nothing else: it may be reachable from outside where the control plane may not. */
export function createHealthListener({ address, readiness, metrics, telemetry }: HealthListenerParts): Listener {
  const app = createServer(telemetry);
  addHealthRoutes(app, { readiness, metrics });
  answerUnknown(
    app,
    healthPaths.map((path) => ({ method: 'GET', path })),
  );
  return listenerOf(app, address);
}
