import { readFileSync } from 'node:fs';
import { REFRESH_INTERVAL_MS } from '../../domain/ordering/constants.ts';
import type { Clock, Store } from '../../pipeline/ports.ts';
import { createOpenSearchClient } from './opensearch-client.ts';
import { indexNames } from './opensearch-names.ts';
import { createObjectIndex } from './opensearch-objects.ts';
import type { IndexDefinition } from './opensearch-setup.ts';
import { createIndexSetup, indexDefinitionSchema } from './opensearch-setup.ts';
import { createStateStore } from './opensearch-state.ts';

export interface OpenSearchOptions {
  /** Nodes of one cluster, `user:pass@` allowed; never logged. */
  readonly urls: readonly string[];
  /** First word of every index name. */
  readonly prefix: string;
  readonly shards: number;
  readonly replicas: number;
  readonly clock: Clock;
  /** Of one request, its answer included. Default 30 s: longer than a bulk request takes on a busy cluster. */
  readonly requestTimeoutMs?: number;
}

/** The store on OpenSearch 3 (written so that 2.19 should work). Connects when it is first used. */
export function createOpenSearchStore({ urls, prefix, shards, replicas, clock, requestTimeoutMs = 30_000 }: OpenSearchOptions): Store {
  const client = createOpenSearchClient({ urls, requestTimeoutMs });
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
    state,
    setup: createIndexSetup({ client, state, names, clock, definitions }),
    close: () => client.close(),
  };
}

function definition(name: 'objects' | 'state', settings: Readonly<Record<string, string | number>>): IndexDefinition {
  const file = new URL(`../../../config/opensearch/${name}.json`, import.meta.url);
  const parsed = indexDefinitionSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  return { ...parsed, settings: { ...parsed.settings, ...settings } };
}
