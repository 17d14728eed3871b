/** /livez, /readyz and /metrics: the same on the health listener and on the control plane. */
import type { HealthName } from '../api/contract.ts';
import type { Readiness } from '../pipeline/serving/readiness.ts';
import type { Handler } from './routes.ts';

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
