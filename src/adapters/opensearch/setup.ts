/**
 * Prepares OpenSearch for this version, so that no write is rejected during a rolling upgrade: first the state index, then
 * the templates, then additive mapping updates. Older schemas (`_meta.schema` in config/opensearch/, which is raised with
 * each added field) are upgraded. Newer ones are not changed.
 */
import { z } from 'zod';
import { backgroundOf } from '../../domain/fault.ts';
import type { Clock } from '../../pipeline/ports/clock.ts';
import type { StateStore } from '../../pipeline/ports/state.ts';
import type { Store } from '../../pipeline/ports/store.ts';
import type { OpenSearchClient } from './client.ts';
import { bodyOf, errorOf, parseAnswer, requestFault } from './faults.ts';
import { createSetupLock } from './lock.ts';
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

interface SetupDependencies extends SetupTarget {
  readonly state: StateStore;
  readonly clock: Clock;
}

/**
 * Creates the setup. In addition to the permissions of the object index it needs `indices:admin/get` and
 * `indices:admin/mapping/put` on the indices of this prefix, and `indices:admin/index_template/get` and `…/put` on the
 * cluster.
 */
export function createIndexSetup({ state, clock, ...target }: SetupDependencies): Store['setup'] {
  const withLock = createSetupLock({ state, clock });
  const { client, names, definitions } = target;
  const templates = [
    createTemplate(client, { name: names.objectsTemplate, pattern: names.objectsPattern, definition: definitions.objects }),
    createTemplate(client, { name: names.auditTemplate, pattern: names.auditPattern, definition: definitions.audit }),
  ];
  const mappings = createMappings(target);

  return {
    async prepare(signal) {
      await createStateIndex(target, signal);
      // usually everything is up to date at a start, and then no lock is needed
      if ((await outdatedOf(templates, signal)).length === 0 && (await mappings.outdated(signal)).length === 0) return;
      await withLock(async (keep) => {
        for (const template of await outdatedOf(templates, signal)) await template.put(signal);
        for (const group of await mappings.outdated(signal)) {
          await keep();
          await mappings.upgrade(group, signal);
        }
      }, signal);
    },
  };
}

async function createStateIndex({ client, names, definitions }: SetupTarget, signal?: AbortSignal): Promise<void> {
  const found = await client.send({ method: 'GET', path: `/${names.state}-*/_alias/${names.state}` }, signal);
  if (found.status === 200) return;
  if (found.status !== 404) throw requestFault(found);
  const body = { ...definitions.state, aliases: { [names.state]: {} } };
  const created = await client.send({ method: 'PUT', path: `/${names.stateIndex}`, body, changesCluster: true }, signal);
  if (created.status === 200) return;
  if (errorOf(created).type !== 'resource_already_exists_exception') throw requestFault(created);
  // another worker created the index first, or its alias was deleted
  const actions = [{ add: { index: names.stateIndex, alias: names.state } }];
  bodyOf(await client.send({ method: 'POST', path: '/_aliases', body: { actions }, changesCluster: true }, signal));
}

const metaSchema = z.object({ schema: z.number(), settings: z.string().optional() }).catch({ schema: 0 });
const templateSchema = z.object({ index_templates: z.array(z.object({ index_template: z.object({ _meta: metaSchema }) })) });

interface Template {
  /** Whether the template is missing, has an older schema, or has the same schema with other settings (shards, replicas). */
  isOutdated(signal?: AbortSignal): Promise<boolean>;
  put(signal?: AbortSignal): Promise<void>;
}

async function outdatedOf(templates: readonly Template[], signal?: AbortSignal): Promise<readonly Template[]> {
  const outdated = await Promise.all(templates.map((template) => template.isOutdated(signal)));
  return templates.filter((_, at) => outdated[at]);
}

/** The template is for indices that Tally does not create (by a restore or a manual copy). A newer version's template adds its fields to the indices that this version creates. */
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
      if (stored === undefined || stored.schema < _meta.schema) return true;
      return stored.schema === _meta.schema && stored.settings !== _meta.settings;
    },
    async put(signal) {
      const body = { index_patterns: [pattern], priority: 500, _meta, template: definition };
      bodyOf(await client.send({ method: 'PUT', path, body, changesCluster: true }, signal));
    },
  };
}

/** The most indices of one mapping request: their names (up to 110 characters each) must fit into a request line of 4,096 bytes. */
const INDICES_PER_REQUEST = 20;

const indicesSchema = z.record(z.string(), z.object({ mappings: z.object({ _meta: metaSchema }).optional() }));

interface IndexGroup {
  readonly indices: readonly string[];
  readonly definition: IndexDefinition;
}

function createMappings({ client, names, definitions }: SetupTarget) {
  /** The indices with older mappings than this version's, in groups for one request each: the state index, the audit, then the others. */
  async function outdated(signal?: AbortSignal): Promise<readonly IndexGroup[]> {
    const answer = await client.send(
      {
        method: 'GET',
        path: `/${names.objectsPattern},${names.auditPattern},${names.stateIndex}`,
        // with the uuid, the answer also contains indices without _meta
        query: { filter_path: '*.mappings._meta,*.settings.index.uuid', expand_wildcards: 'open,closed' },
      },
      signal,
    );
    const schemas = Object.entries(parseAnswer(indicesSchema, bodyOf(answer))).map(
      ([index, { mappings }]) => [index, mappings?._meta.schema ?? 0] as const,
    );
    const older = (isOfKind: (index: string) => boolean, definition: IndexDefinition): IndexGroup[] => {
      const indices = schemas.filter(([index, schema]) => isOfKind(index) && schema < definition.mappings._meta.schema);
      return chunksOf(indices.map(([index]) => index)).map((chunk) => ({ indices: chunk, definition }));
    };
    const isState = (index: string): boolean => index === names.stateIndex;
    const isAudit = (index: string): boolean => index.startsWith(names.auditIndex(''));
    return [
      ...older(isState, definitions.state),
      ...older(isAudit, definitions.audit),
      ...older((index) => !isState(index) && !isAudit(index), definitions.objects),
    ];
  }

  /**
   * Adds the missing fields to the mappings of these indices. An object index that cannot be upgraded (because it is blocked,
   * deleted or has a conflicting mapping) does not prevent the upgrade of others. Writes to it answer
   * `bucket.index-outdated` if they need a missing field.
   */
  async function upgrade({ indices, definition }: IndexGroup, signal?: AbortSignal): Promise<void> {
    const path = `/${indices.join(',')}/_mapping`;
    const answer = await client.send({ method: 'PUT', path, body: definition.mappings, changesCluster: true }, signal);
    if (answer.status === 200) return;
    if (indices.length > 1) {
      for (const index of indices) await upgrade({ indices: [index], definition }, signal);
      return;
    }
    const fault = requestFault(answer);
    if (definition === definitions.state || backgroundOf(fault.code) === 'stop') throw fault;
  }

  return { outdated, upgrade };
}

function chunksOf(indices: readonly string[]): readonly (readonly string[])[] {
  const count = Math.ceil(indices.length / INDICES_PER_REQUEST);
  return Array.from({ length: count }, (_, at) => indices.slice(at * INDICES_PER_REQUEST, (at + 1) * INDICES_PER_REQUEST));
}
