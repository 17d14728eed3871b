import type { OpenSearchClient } from './client.ts';
import { bodyOf, errorOf, requestFault } from './faults.ts';

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
