/**
 * Prepares OpenSearch: makes the state index. What another version has prepared is refused and left as it is, by the number of its
 * schema (`_meta.schema` in config/opensearch/state.json, which is raised with each change of a record, a document or an index).
 */
import { z } from 'zod';
import { FaultError } from '../../base/fault.ts';
import type { Store } from '../store.ts';
import type { OpenSearchClient } from './client.ts';
import { bodyOf, errorOf, isIndexMissing, parseAnswer, requestFault } from './faults.ts';
import type { IndexNames } from './names.ts';

interface SetupTarget {
  readonly client: OpenSearchClient;
  readonly names: IndexNames;
  /** Settings and mappings of the state index. */
  readonly newIndex: { readonly mappings: { readonly _meta: { readonly schema: number } } };
}

const indicesSchema = z.record(
  z.string(),
  z.object({ mappings: z.object({ _meta: z.object({ schema: z.number() }).catch({ schema: 0 }) }).optional() }),
);

/** Creates the setup. It needs the permissions of the object index on the indices of this prefix. */
export function createIndexSetup({ client, names, newIndex }: SetupTarget): Store['setup'] {
  return {
    async prepare(signal) {
      const read = { method: 'GET', path: `/${names.state}`, query: { filter_path: '*.aliases,*.mappings._meta' } } as const;
      let answer = await client.send(read, signal);
      if (isIndexMissing(answer)) {
        await createAliased(client, { index: names.stateIndex, alias: names.state, definition: newIndex }, signal);
        answer = await client.send(read, signal);
      }
      const wanted = newIndex.mappings._meta.schema;
      for (const [index, { mappings }] of Object.entries(parseAnswer(indicesSchema, bodyOf(answer)))) {
        const schema = mappings?._meta.schema ?? 0;
        if (schema === wanted) continue;
        const reason = `the state index ${index} has schema ${schema}, and this version of Tally reads schema ${wanted}`;
        throw new FaultError(schema > wanted ? 'index.newer' : 'index.older', reason);
      }
    },
  };
}

/**
 * Makes an index behind an alias, with these settings and mappings. An index of that name that exists keeps its own and is given the
 * alias: another worker made it first, or its alias was deleted. A write to the alias with `require_alias` never makes an index by
 * itself, which would have neither.
 */
export async function createAliased(
  client: OpenSearchClient,
  { index, alias, definition }: { readonly index: string; readonly alias: string; readonly definition: Readonly<Record<string, unknown>> },
  signal?: AbortSignal,
): Promise<void> {
  const body = { ...definition, aliases: { [alias]: {} } };
  const created = await client.send({ method: 'PUT', path: `/${index}`, body, changesCluster: true }, signal);
  if (created.status === 200) return;
  if (errorOf(created).type !== 'resource_already_exists_exception') throw requestFault(created);
  const actions = [{ add: { index, alias } }];
  bodyOf(await client.send({ method: 'POST', path: '/_aliases', body: { actions }, changesCluster: true }, signal));
}
