import auditFile from '../../../config/opensearch/audit.json' with { type: 'json' };
import objectsFile from '../../../config/opensearch/objects.json' with { type: 'json' };
import stateFile from '../../../config/opensearch/state.json' with { type: 'json' };
import { REFRESH_INTERVAL_MS } from '../../ordering/constants.ts';
import type { Clock } from '../../process/clock.ts';
import type { Store } from '../store.ts';
import type { Telemetry } from '../../process/telemetry.ts';
import { probeState } from '../stored.ts';
import { createOpenSearchAudit } from './audit.ts';
import { createOpenSearchClient, type SigningCredentials } from './client.ts';
import { createObjectMaintenance, createObjectScan } from './scan.ts';
import { indexNames, createIndexSetup } from './setup.ts';
import { createObjectIndex } from './objects.ts';
import { createStateStore } from './state.ts';
import { createObjectUsage } from './usage.ts';

export interface OpenSearchOptions {
  /** The nodes of one cluster, with or without `user:pass@`. They are never logged. */
  readonly urls: readonly string[];
  /** A PEM file with the certificates of the authorities that may sign the nodes' certificates, instead of Node's. It is read once. */
  readonly caFile?: string | undefined;
  /** Signs requests with these credentials, for the region in the host name, else for this region. */
  readonly signing?: { readonly region: string; readonly credentials: SigningCredentials } | undefined;
  /** The proxy's variables in the form of Node's agents; absent: requests use no proxy. */
  readonly proxyEnv?: Readonly<Record<string, string>> | undefined;
  /** The first part of every index name. */
  readonly prefix: string;
  readonly shards: number;
  readonly replicas: number;
  readonly clock: Clock;
  /** Receives reports of nodes that don't answer. */
  readonly telemetry?: Pick<Telemetry, 'warnOnce' | 'info'>;
  /** The time-out of one request, including its answer. Default 15 s: together with C and P it is below Q, so that no write arrives after a reconcile's wait. */
  readonly requestTimeoutMs?: number;
}

/**
 * Creates the store on OpenSearch 3 (2.19 should work too). It connects when it is first used. With the security plugin it
 * needs exactly the permissions in config/opensearch/role.json, which is written for the prefix `tally`.
 */
export function createOpenSearchStore(options: OpenSearchOptions): Store {
  const { prefix, shards, replicas, clock, ...given } = options;
  const connection = { requestTimeoutMs: 15_000, ...given };
  const client = createOpenSearchClient(connection);
  const names = indexNames(prefix);
  // also set because an index without this setting stops refreshing while there are no searches
  const refreshed = { number_of_replicas: replicas, refresh_interval: `${REFRESH_INTERVAL_MS}ms` };
  const state = createStateStore({ client, names, clock });
  const scan = createObjectScan({ client, names });

  return {
    product: 'opensearch',
    objects: createObjectIndex({
      client,
      names,
      newIndex: withSettings(objectsFile, { ...refreshed, number_of_shards: shards }),
      clock,
      probe: (signal) => probeState(state, signal),
      refresh: (bucket, signal) => scan.refresh(bucket, signal),
    }),
    scan,
    state,
    audit: createOpenSearchAudit({ client, names, newIndex: withSettings(auditFile, refreshed) }),
    maintenance: createObjectMaintenance(client, names),
    usage: createObjectUsage(client, names),
    // one shard also where a cluster's default is five: a write that waits for a refresh waits for that of its shard
    setup: createIndexSetup({
      connection,
      client,
      names,
      newIndex: withSettings(stateFile, { number_of_shards: 1, number_of_replicas: replicas }),
    }),
    close: () => client.close(),
  };
}

function withSettings<File extends { readonly settings: object }>(file: File, settings: Readonly<Record<string, string | number>>): File {
  return { ...file, settings: { ...file.settings, ...settings } };
}
