import { readFileSync } from 'node:fs';
import { REFRESH_INTERVAL_MS } from '../../domain/ordering/constants.ts';
import type { Clock } from '../../pipeline/ports/clock.ts';
import type { Store } from '../../pipeline/ports/store.ts';
import { createOpenSearchClient } from './client.ts';
import { createObjectMaintenance } from './maintenance.ts';
import { indexNames } from './names.ts';
import { createObjectIndex } from './objects.ts';
import { createObjectScan } from './scan.ts';
import type { IndexDefinition } from './setup.ts';
import { createIndexSetup, indexDefinitionSchema } from './setup.ts';
import { createStateStore } from './state.ts';

export interface OpenSearchOptions {
  /** Nodes of one cluster, `user:pass@` allowed; never logged. */
  readonly urls: readonly string[];
  /** Certificates (PEM) of the authorities that the nodes' own are checked against, instead of Node's; read once. */
  readonly caFile?: string | undefined;
  /** Signs requests with AWS's credentials of this process, for the region of the host, else for this one. */
  readonly signing?: { readonly region: string } | undefined;
  /** First word of every index name. */
  readonly prefix: string;
  readonly shards: number;
  readonly replicas: number;
  readonly clock: Clock;
  /** Of one request, its answer included. Default 15 s: with C and P below Q, so that no write lands after a reconcile's wait. */
  readonly requestTimeoutMs?: number;
}

/**
 * The store on OpenSearch 3 (written so that 2.19 should work). Connects when it is first used. With the security plugin
 * it needs the permissions in config/opensearch/role.json (there for the prefix `tally`), each of them and no more.
 */
export function createOpenSearchStore({ prefix, shards, replicas, clock, ...connection }: OpenSearchOptions): Store {
  const client = createOpenSearchClient({ requestTimeoutMs: 15_000, ...connection });
  const names = indexNames(prefix);
  const definitions = {
    objects: definition('objects', {
      number_of_shards: shards,
      number_of_replicas: replicas,
      // explicit also because an index without it stops refreshing when nobody searches
      refresh_interval: `${REFRESH_INTERVAL_MS}ms`,
    }),
    state: definition('state', { number_of_replicas: replicas }),
  };
  // without _meta: a template of a newer version adds its fields, and then its schema must be the index's
  const { _meta, ...mappings } = definitions.objects.mappings;
  const state = createStateStore({ client, names, clock });

  return {
    product: 'opensearch',
    objects: createObjectIndex({ client, names, newIndex: { settings: definitions.objects.settings, mappings } }),
    scan: createObjectScan({ client, names }),
    state,
    maintenance: createObjectMaintenance(client, names),
    setup: createIndexSetup({ client, state, names, clock, definitions }),
    close: () => client.close(),
  };
}

function definition(name: 'objects' | 'state', settings: Readonly<Record<string, string | number>>): IndexDefinition {
  const file = new URL(`../../../config/opensearch/${name}.json`, import.meta.url);
  const parsed = indexDefinitionSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  return { ...parsed, settings: { ...parsed.settings, ...settings } };
}
