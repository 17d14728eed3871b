/** The settings of the process: its roles, where it listens, what it logs, and how long a stop may take. */
import { z } from 'zod';
import { address, flag, integer, itemsOf } from './fields.ts';
import { registryUrl } from './urls.ts';

const roles = ['ingest', 'reindex', 'http'] as const;

export const processSettings = {
  TALLY_ROLES: z
    .string()
    .default(roles.join(','))
    .transform(itemsOf)
    .pipe(z.array(z.enum(roles, { error: `must be of ${roles.join(', ')}` })).min(1, 'must name at least one role'))
    .describe(
      'The roles of this process, separated by commas: ingest (writes bucket events to the index), reindex (compares buckets with the index and runs scheduled work) and http (serves the control plane). By default a process has all of them, so that one process is a complete installation.',
    ),
  TALLY_HTTP_ADDRESS: address('127.0.0.1:8080').describe(
    'The address (HOST:PORT) on which the control plane listens. Any other than a loopback address needs identity (TALLY_OIDC_ISSUER), TALLY_PUBLIC_URL and TALLY_TRUSTED_PROXIES, because everyone who reaches it could use it otherwise.',
  ),
  TALLY_HEALTH_ADDRESS: address('127.0.0.1:8081').describe(
    'The address (HOST:PORT) that serves /livez, /readyz and /metrics in every process, whatever its roles. The default is reachable only from the same machine; the container image sets 0.0.0.0:8081.',
  ),
  TALLY_REGISTRY_URL: registryUrl
    .optional()
    .describe(
      'The address of a running control plane, for example http://127.0.0.1:8080. If it is set, all commands except serve and config send their requests there instead of opening the index and the queues themselves. The option --registry does the same.',
    ),
  TALLY_LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .describe(
      'The lowest severity that is logged: trace, debug, info, warn, error, fatal or silent. The default is info, because debug adds a line for each bulk request.',
    ),
  TALLY_SERIES: flag(true).describe(
    'Whether this process records, once a minute, what arrived and how the buckets stood, and once a day how large each bucket is, for the charts of the last fortnight and of growth. The default is true: it costs one small write a minute, and one a day for each bucket. With false, nothing is recorded; what was recorded stays visible until it is too old.',
  ),
  TALLY_SHUTDOWN_TIMEOUT_MS: integer(500, 600_000, 25_000).describe(
    'The longest time that a stop may take, in milliseconds. The default of 25 s is below the 30 s that ECS and Kubernetes allow.',
  ),
};
