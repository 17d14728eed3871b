/**
 * Prepares OpenSearch: the state index, then the templates. What another version has prepared is refused and left as it is,
 * by the number of its schema (`_meta.schema` in config/opensearch/, which is raised with each change): a newer one of anything, and
 * an older one of the state index, which is raised with each change of the records as well.
 */
import { z } from 'zod';
import { FaultError } from '../../domain/fault.ts';
import type { Store } from '../../pipeline/ports/store.ts';
import type { OpenSearchClient } from './client.ts';
import { bodyOf, parseAnswer, requestFault, errorOf } from './faults.ts';
import type { IndexNames } from './names.ts';

/** The content of a file in config/opensearch/: objects.json, state.json or audit.json. */
export const indexDefinitionSchema = z.object({
  settings: z.record(z.string(), z.unknown()),
  mappings: z.looseObject({ _meta: z.object({ schema: z.number() }) }),
});
export type IndexDefinition = z.infer<typeof indexDefinitionSchema>;

interface SetupTarget {
  readonly client: OpenSearchClient;
  readonly names: IndexNames;
  /** With the settings of this process (shards, replicas) merged in. */
  readonly definitions: { readonly objects: IndexDefinition; readonly state: IndexDefinition; readonly audit: IndexDefinition };
}

/**
 * Creates the setup. In addition to the permissions of the object index it needs `indices:admin/get` on the indices of this
 * prefix, and `indices:admin/index_template/get` and `…/put` on the cluster.
 */
export function createIndexSetup(target: SetupTarget): Store['setup'] {
  const { client, names, definitions } = target;
  const templates = [
    createTemplate(client, { name: names.objectsTemplate, pattern: names.objectsPattern, definition: definitions.objects }),
    createTemplate(client, { name: names.auditTemplate, pattern: names.auditPattern, definition: definitions.audit }),
  ];

  return {
    async prepare(signal) {
      const outdated = await Promise.all(templates.map((template) => template.isOutdated(signal)));
      await createStateIndex(target, signal);
      await checkStateIndex(target, signal);
      for (const template of templates.filter((_, at) => outdated[at])) await template.put(signal);
    },
  };
}

async function createStateIndex({ client, names, definitions }: SetupTarget, signal?: AbortSignal): Promise<void> {
  const found = await client.send({ method: 'GET', path: `/${names.state}-*/_alias/${names.state}` }, signal);
  if (found.status === 200) return;
  if (found.status !== 404) throw requestFault(found);
  await createAliased(client, { index: names.stateIndex, alias: names.state, definition: definitions.state }, signal);
}

const metaSchema = z.object({ schema: z.number(), settings: z.string().optional() }).catch({ schema: 0 });
const indicesSchema = z.record(z.string(), z.object({ mappings: z.object({ _meta: metaSchema }).optional() }));

/** Throws `index.older` or `index.newer` if another version has made the state index. */
async function checkStateIndex({ client, names, definitions }: SetupTarget, signal?: AbortSignal): Promise<void> {
  const query = { filter_path: '*.mappings._meta' };
  const answer = await client.send({ method: 'GET', path: `/${names.state}`, query }, signal);
  for (const [index, { mappings }] of Object.entries(parseAnswer(indicesSchema, bodyOf(answer)))) {
    const schema = mappings?._meta.schema ?? 0;
    refuseNewer(`the state index ${index}`, schema, definitions.state);
    if (schema < definitions.state.mappings._meta.schema)
      throw otherVersion('index.older', `the state index ${index}`, schema, definitions.state);
  }
}

function refuseNewer(what: string, schema: number, definition: IndexDefinition): void {
  if (schema > definition.mappings._meta.schema) throw otherVersion('index.newer', what, schema, definition);
}

function otherVersion(code: 'index.older' | 'index.newer', what: string, schema: number, { mappings }: IndexDefinition): FaultError {
  return new FaultError(code, `${what} has schema ${schema}, and this version of Tally reads schema ${mappings._meta.schema}`);
}

const templateSchema = z.object({ index_templates: z.array(z.object({ index_template: z.object({ _meta: metaSchema }) })) });

interface Template {
  /** Whether the template is missing, or has other settings (shards, replicas). Throws `index.newer` for that of a newer version. */
  isOutdated(signal?: AbortSignal): Promise<boolean>;
  put(signal?: AbortSignal): Promise<void>;
}

/** The template is for indices that Tally does not create (by a restore or a manual copy). */
function createTemplate(
  client: OpenSearchClient,
  { name, pattern, definition }: { readonly name: string; readonly pattern: string; readonly definition: IndexDefinition },
): Template {
  const path = `/_index_template/${name}`;
  const _meta = { ...definition.mappings._meta, settings: JSON.stringify(definition.settings) };

  return {
    async isOutdated(signal) {
      const answer = await client.send({ method: 'GET', path }, signal);
      if (answer.status === 404) return true;
      const stored = parseAnswer(templateSchema, bodyOf(answer)).index_templates[0]?.index_template._meta;
      if (stored === undefined) return true;
      refuseNewer(`the index template ${name}`, stored.schema, definition);
      return stored.schema < _meta.schema || stored.settings !== _meta.settings;
    },
    async put(signal) {
      const body = { index_patterns: [pattern], priority: 500, _meta, template: definition };
      bodyOf(await client.send({ method: 'PUT', path, body, changesCluster: true }, signal));
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
