/** Makes what a daemon of this version left what the version before leaves: its schema, its documents, its words. */
import { DatabaseSync } from 'node:sqlite';
import { raw } from '../servers/opensearch.ts';
import type { Environment } from '../servers/daemon.ts';
import type { IndexKind } from './flow.ts';

/** Older than every write that may still be under way. */
const AGE_US = 3_600_000_000;
/** What that version did not know. */
const NEW_FIELD = /^(schema|folded|extensions|d[1-8])$/;

/** No process may have the index open. */
export async function makeEarlier(kind: IndexKind, env: Environment, bucket: string): Promise<void> {
  if (kind === 'sqlite') makeEarlierFile((env['TALLY_INDEX_URL'] ?? '').replace('sqlite:', ''));
  else await makeEarlierIndex(env['TALLY_INDEX_PREFIX'] ?? '', bucket);
}

function makeEarlierFile(path: string): void {
  const database = new DatabaseSync(path);
  database.exec(`
    BEGIN;
    DROP INDEX objects_facts;
    DROP INDEX objects_outdated;
    ALTER TABLE objects DROP COLUMN formed;
    ALTER TABLE objects DROP COLUMN size;
    ALTER TABLE objects DROP COLUMN modified;
    ALTER TABLE objects DROP COLUMN class;
    ALTER TABLE objects DROP COLUMN built;
    CREATE INDEX objects_live ON objects (bucket, key, extension) WHERE deleted = 0;
    UPDATE objects SET clock = clock - ${AGE_US}, document = json_set(document, '$.clock', clock - ${AGE_US});
    DELETE FROM object_words WHERE rowid IN (SELECT id FROM objects);
    INSERT INTO object_words (rowid, words) SELECT id, 'earlier' FROM objects WHERE deleted = 0;
    PRAGMA user_version = 3;
    COMMIT;
  `);
  database.close();
}

interface Hits {
  readonly hits: { readonly hits: readonly { readonly _id: string; readonly _source: Readonly<Record<string, unknown>> }[] };
}
interface Mapped {
  readonly mappings: { readonly properties: Readonly<Record<string, unknown>> };
  readonly settings: { readonly index: Readonly<Record<string, unknown>> };
}

async function makeEarlierIndex(prefix: string, bucket: string): Promise<void> {
  const name = `${prefix}-objects-${bucket}`;
  const { mappings, settings } = Object.values((await raw('GET', `/${name}`)).body as Record<string, Mapped>)[0]!;
  // the daemon has ended: what it wrote last may not be visible to searches yet
  await raw('POST', `/${name}/_refresh`);
  const found = await raw('POST', `/${name}/_search`, { size: 10_000 });
  await raw('DELETE', `/${name}`);
  await raw('DELETE', `/_index_template/${prefix}-objects`);
  const { analysis, sort } = settings.index;
  await raw('PUT', `/${name}`, {
    settings: { analysis, sort, number_of_replicas: 0 },
    mappings: { ...mappings, _meta: { schema: 1 }, properties: withoutNew(mappings.properties) },
    aliases: { [`${prefix}-write-${bucket}`]: {}, [`${prefix}-objects`]: { filter: { term: { deleted: false } } } },
  });
  for (const { _id: id, _source: source } of (found.body as Hits).hits.hits) {
    const clock = Number(source['clock']) - AGE_US;
    const before = { ...withoutNew(source), clock, words: ['earlier'] };
    await raw('PUT', `/${name}/_doc/${encodeURIComponent(id)}?version=${clock}&version_type=external&refresh=true`, before);
  }
}

function withoutNew(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fields).filter(([field]) => !NEW_FIELD.test(field)));
}
