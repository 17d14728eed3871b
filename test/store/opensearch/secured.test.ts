/** OpenSearch as it is run in earnest: TLS with a CA of its own, and a user that may do what config/opensearch/role.json says. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createOpenSearchClient, type OpenSearchClient } from '../../../src/store/opensearch/client.ts';
import { createOpenSearchStore } from '../../../src/store/opensearch/store.ts';
import { systemClock } from '../../../src/process/clock.ts';
import { faultOf, type Fault } from '../../../src/base/fault.ts';
import { storeTour } from '../../contracts/store-tour.ts';
import { openTestStore, type Ask, type TestStore } from '../../support/servers/opensearch.ts';
import { securedOpensearch } from '../../support/servers/found.ts';

const role = readFileSync(new URL('../../../config/opensearch/role.json', import.meta.url), 'utf8');
/** Every character that a URL cannot hold as it is. */
const password = 'Wet-Lamp/7:@?#%,&ü';

describe.skipIf(securedOpensearch() === undefined)('OpenSearch with TLS and users', () => {
  const { adminUrl = '', caFile = '' } = securedOpensearch() ?? {};
  let admin: OpenSearchClient;

  beforeAll(async () => {
    admin = createOpenSearchClient({ urls: [adminUrl], caFile, requestTimeoutMs: 60_000 });
    // the demo configuration gives everybody a role that is wider than ours in places
    await ask('DELETE', '/_plugins/_security/api/rolesmapping/own_index');
  });
  afterAll(() => admin?.close());

  const ask: Ask = (method, path, body) => admin.send({ method, path, ...(body !== undefined && { body }) });

  function urlOf(user: string, secret = password): string {
    const url = new URL(adminUrl);
    url.username = user;
    url.password = encodeURIComponent(secret);
    return url.href;
  }

  async function security(kind: 'roles' | 'internalusers' | 'rolesmapping', name: string, body: Readonly<Record<string, unknown>>) {
    const answer = await ask('PUT', `/_plugins/_security/api/${kind}/${name}`, body);
    expect(answer).toMatchObject({ status: 201 });
  }

  /** A store whose user is its prefix, and has the role for that prefix and nothing else. */
  async function openWithRole(): Promise<TestStore> {
    const name = `tally${Math.random().toString(36).slice(2)}`;
    const opened = openTestStore({ urls: [urlOf(name)], caFile }, ask);
    await security('roles', name, JSON.parse(role.replaceAll('tally-', `${opened.prefix}-`)));
    await security('internalusers', name, { password });
    await security('rolesmapping', name, { users: [name] });
    return {
      ...opened,
      async dispose() {
        await opened.dispose();
        for (const kind of ['rolesmapping', 'internalusers', 'roles']) await ask('DELETE', `/_plugins/_security/api/${kind}/${name}`);
      },
    };
  }

  storeTour('the OpenSearch store of a user with that role', openWithRole);

  async function prepareFault(options: { readonly url: string; readonly caFile?: string }): Promise<Fault> {
    const store = createOpenSearchStore({ urls: [options.url], ...options, prefix: 'absent', shards: 1, replicas: 0, clock: systemClock });
    try {
      return await store.setup.prepare().then(
        () => expect.fail('it was let in'),
        (error: unknown) => faultOf(error),
      );
    } finally {
      await store.close();
    }
  }

  it('is not trusted without its CA', async () => {
    const fault = await prepareFault({ url: adminUrl });
    expect(fault).toEqual({ code: 'index.unreachable', reason: expect.stringContaining('certificate') });
  });

  it('lets nobody in with a wrong password, which no message repeats', async () => {
    const fault = await prepareFault({ url: urlOf('admin', 'wrong-secret'), caFile });
    expect(fault.code).toBe('index.denied');
    expect(fault.reason).not.toContain('secret');
  });

  it('lets no user in that has no role', async () => {
    const name = `guest${Math.random().toString(36).slice(2)}`;
    await security('internalusers', name, { password });
    expect(await prepareFault({ url: urlOf(name), caFile })).toMatchObject({ code: 'index.denied' });
    await ask('DELETE', `/_plugins/_security/api/internalusers/${name}`);
  });
});
