/** /livez, /readyz and /metrics: the same on the health listener and on the control plane. */
import type { FastifyInstance } from 'fastify';
import type { Readiness } from '../pipeline/serving/readiness.ts';

export interface MetricsSource {
  metricsText(): Promise<string>;
  readonly contentType: string;
}

export const healthPaths = ['/livez', '/readyz', '/metrics'] as const;

/** Adds the routes. /livez says that the process turns; /readyz whether it can do its roles, check by check (503: not all of them). */
export function addHealthRoutes(
  app: FastifyInstance,
  { readiness, metrics }: { readonly readiness: Readiness; readonly metrics: MetricsSource },
): void {
  app.get('/livez', async () => ({ status: 'ok' }));
  app.get('/readyz', async (_request, reply) => {
    const report = readiness.read();
    return reply.code(report.ready ? 200 : 503).send(report);
  });
  app.get('/metrics', async (_request, reply) => reply.type(metrics.contentType).send(await metrics.metricsText()));
}
