/** What only OpenSearch has of the audit: indices of months, their mapping, and blocks of one of them. */
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { type AuditRecord } from '../../../src/base/audit.ts';
import { opensearchUrl } from '../../support/servers/found.ts';
import { openTestStore, raw, type TestStore } from '../../support/servers/opensearch.ts';
import { newAuditRecord } from '../../../src/store/stored.ts';

const NOVEMBER_MS = Date.UTC(2026, 10, 22);
const DECEMBER_MS = Date.UTC(2026, 11, 1);

function recordAt(atMs: number): AuditRecord {
  return newAuditRecord({ event: 'BucketRemove', actor: { kind: 'local', host: 'here' }, requestId: 'r', outcome: 'done', atMs });
}

describe.skipIf(opensearchUrl() === undefined)('the audit on OpenSearch', () => {
  let opened: TestStore;

  beforeEach(async () => {
    opened = openTestStore();
    await opened.store.setup.prepare();
  });
  afterEach(() => opened.dispose());

  const mappingOf = async (month: string): Promise<unknown> => {
    const { body } = await raw('GET', `/${opened.prefix}-audit-${month}`);
    return Object.values(body as object)[0];
  };
  const strict = { mappings: { dynamic: 'strict', properties: { id: { type: 'keyword' }, parameters: { enabled: false } } } };

  it('has an index for each month with its settings and mapping', async () => {
    for (const atMs of [NOVEMBER_MS, DECEMBER_MS]) await opened.store.audit.append(recordAt(atMs));
    for (const month of ['2026.11', '2026.12']) {
      expect(await mappingOf(month)).toMatchObject({ ...strict, settings: { index: { number_of_shards: '1', number_of_replicas: '0' } } });
    }
  });

  it('stores records of two processes in the index that one of them created, and again after it was deleted', async () => {
    const other = opened.another();
    for (const store of [opened.store, other]) await store.audit.append(recordAt(NOVEMBER_MS));
    await opened.refresh();
    expect(await opened.store.audit.list({ limit: 10 })).toHaveLength(2);
    await raw('DELETE', `/${opened.prefix}-audit-2026.11`);
    await other.audit.append(recordAt(NOVEMBER_MS));
    expect(await mappingOf('2026.11')).toMatchObject(strict);
  });

  it('refuses a record where all of the installation was deleted, makes no index for it, and stores the next in one that has the mapping', async () => {
    await opened.store.audit.append(recordAt(NOVEMBER_MS));
    await raw('DELETE', `/${opened.prefix}-*`);
    await expect(opened.store.audit.append(recordAt(NOVEMBER_MS))).rejects.toMatchObject({ code: 'index.state-missing' });
    expect(await raw('GET', `/${opened.prefix}-*`)).toMatchObject({ body: {} });
    await opened.another().setup.prepare();
    await opened.store.audit.append(recordAt(NOVEMBER_MS));
    expect(await mappingOf('2026.11')).toMatchObject(strict);
  });

  it('adds to the index of a month that was restored without its alias', async () => {
    await opened.store.audit.append(recordAt(NOVEMBER_MS));
    await raw('DELETE', `/${opened.prefix}-audit-2026.11/_alias/*`);
    await opened.store.audit.append(recordAt(NOVEMBER_MS));
    await opened.refresh();
    expect(await opened.store.audit.list({ limit: 10 })).toHaveLength(2);
  });

  it('refuses a record that a pipeline drops', async () => {
    await opened.store.audit.append(recordAt(NOVEMBER_MS));
    const name = `${opened.prefix}-pipeline`;
    await raw('PUT', `/_ingest/pipeline/${name}`, { processors: [{ drop: {} }] });
    onTestFinished(async () => void (await raw('DELETE', `/_ingest/pipeline/${name}`)));
    await raw('PUT', `/${opened.prefix}-audit-2026.11/_settings`, { 'index.default_pipeline': name });
    await expect(opened.store.audit.append(recordAt(NOVEMBER_MS))).rejects.toMatchObject({
      reason: expect.stringContaining('noop') as string,
    });
    await opened.store.audit.append(recordAt(DECEMBER_MS));
  });

  it('refuses a record while its month is read-only, and takes those of another month', async () => {
    for (const atMs of [NOVEMBER_MS, DECEMBER_MS]) await opened.store.audit.append(recordAt(atMs));
    await raw('PUT', `/${opened.prefix}-audit-2026.11/_settings`, { 'index.blocks.write': true });
    await expect(opened.store.audit.append(recordAt(NOVEMBER_MS))).rejects.toMatchObject({ code: 'index.blocked' });
    await opened.store.audit.append(recordAt(DECEMBER_MS));
    // nothing else is blocked
    await opened.store.objects.probe();
    await raw('PUT', `/${opened.prefix}-audit-2026.11/_settings`, { 'index.blocks.write': false });
    await opened.store.audit.append(recordAt(NOVEMBER_MS));
  });

  it('purges indices of months, and no other index whose name begins alike', async () => {
    await opened.store.audit.append(recordAt(NOVEMBER_MS));
    await raw('PUT', `/${opened.prefix}-audit-restored-2020.01`, { settings: { number_of_replicas: 0 } });
    await raw('PUT', `/${opened.prefix}-audit-2020.13`, { settings: { number_of_replicas: 0 } });
    expect(await opened.store.audit.purge(NOVEMBER_MS)).toBe('none');
    expect(await opened.store.audit.purge(DECEMBER_MS)).toBe('more');
    expect(await opened.store.audit.purge(DECEMBER_MS)).toBe('none');
    const { body } = await raw('GET', `/_cat/indices/${opened.prefix}-audit-*?format=json`);
    const left = (body as { readonly index: string }[]).map(({ index }) => index.slice(opened.prefix.length));
    expect(left.toSorted()).toEqual(['-audit-2020.13', '-audit-restored-2020.01']);
  });
});
