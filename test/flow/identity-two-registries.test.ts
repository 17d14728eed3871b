/** Two processes on one store: what one of them revokes the other refuses, and the store itself holds no secret. */
import { DatabaseSync } from 'node:sqlite';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { BrowserAnswer } from '../support/identity/browser.ts';
import { openWalk, request, type Token, type Walk } from '../support/identity/walk.ts';
import { until } from '../support/servers/aws.ts';
import { runTally } from '../support/servers/daemon.ts';
import { raw } from '../support/servers/opensearch.ts';
import { indexKinds } from '../support/worlds/flow.ts';

let walk: Walk;

afterEach(() => walk[Symbol.asyncDispose]());

const jsonOf = ({ text }: BrowserAnswer) => JSON.parse(text) as Record<string, unknown>;

/** A request to the registry with this number. */
const sendTo = (number: number, method: string, path: string, sent: Parameters<typeof request>[2] = {}) =>
  request(method, `${walk.url(number)}${path}`, sent);

async function createKey(number: number, { access_token: token }: Token): Promise<{ readonly id: string; readonly secret: string }> {
  const { key, secret } = jsonOf(await sendTo(number, 'POST', '/v1/api-keys', { token, body: { name: 'two' } })) as {
    readonly key: { readonly id: string };
    readonly secret: string;
  };
  walk.secrets.add(secret);
  return { id: key.id, secret };
}

const statusAt = async (number: number, token: string): Promise<number> => (await sendTo(number, 'GET', '/v1/session', { token })).status;

describe('a registry and commands on one SQLite file', () => {
  it('end the same keys and sessions, and the event streams of a key', async () => {
    walk = await openWalk('sqlite');
    const embedded = { TALLY_ROLES: 'ingest,reindex,http', TALLY_EMBEDDED_DATA: join(walk.folder, 'data') };
    const registry = await walk.start(0, embedded, ['serve', '--embedded']);
    const alice = await walk.logIn('alice');
    const other = await createKey(0, alice);
    expect(await statusAt(0, other.secret)).toBe(200);
    const root = await walk.logIn('root');
    const token = root.access_token;
    const { id, secret } = await createKey(0, root);
    expect((await fetch(`${registry.embeddedUrl}/photos`, { method: 'PUT' })).status).toBe(200);
    // the first job of a bucket waits a minute for late events, so that it can be paused; a paused job does not end, nor does its stream
    const job = String(jsonOf(await sendTo(0, 'POST', '/v1/buckets', { token, body: { bucket: 'photos' } }))['job_id']);
    expect((await sendTo(0, 'POST', `/v1/jobs/${job}/pause`, { token })).status).toBe(200);
    const stream = await fetch(`${walk.url()}/v1/jobs/${job}/events`, { headers: { authorization: `Bearer ${secret}` } });
    expect(stream.status).toBe(200);
    expect(await runTally(['admin', 'keys', 'revoke', id], walk.env)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Revoked'),
    });
    await until('the key is refused', async () => (await statusAt(0, secret)) === 401);
    expect(await stream.text()).toMatch(/event: problem\ndata: .*"authentication.failed"/);
    const users = jsonOf(await sendTo(0, 'GET', '/v1/admin/users', { token }))['items'] as readonly {
      readonly id: string;
      readonly email: string;
    }[];
    const user = users.find(({ email }) => email === 'alice@example.com')?.id ?? '';
    expect(await runTally(['admin', 'users', 'disable', user], walk.env)).toMatchObject({ code: 0 });
    expect(await statusAt(0, alice.access_token)).toBe(401);
    await until('the keys of the user are refused', async () => (await statusAt(0, other.secret)) === 401);
    expect(await runTally(['admin', 'users', 'enable', user], walk.env)).toMatchObject({ code: 0 });
    expect(await statusAt(0, alice.access_token)).toBe(401);
    await until('the keys are accepted again', async () => (await statusAt(0, other.secret)) === 200);
    const database = new DatabaseSync((walk.env['TALLY_INDEX_URL'] ?? '').replace('sqlite:', ''), { readOnly: true });
    const rows = [...database.prepare('SELECT * FROM state').all(), ...database.prepare('SELECT * FROM audit').all()];
    database.close();
    for (const each of walk.secrets) expect(JSON.stringify(rows)).not.toContain(each);
  });
});

describe.skipIf(!indexKinds.includes('opensearch'))('two registries on one OpenSearch', () => {
  it('share logins, keys, revocations and disabled users, and store no secret', async () => {
    walk = await openWalk('opensearch');
    await Promise.all([walk.start(0), walk.start(1, { TALLY_TRUSTED_PROXIES: '127.0.0.1/32' })]);
    const [alice, root] = [await walk.logIn('alice', 0), await walk.logIn('root', 1)];
    const { id, secret } = await createKey(1, alice);
    const leaked = await createKey(0, alice);
    for (const number of [0, 1]) {
      for (const token of [alice.access_token, secret, leaked.secret]) expect(await statusAt(number, token)).toBe(200);
    }
    const revoked = await sendTo(0, 'DELETE', `/v1/admin/api-keys/${id}`, { token: root.access_token });
    expect(revoked.status, revoked.text).toBe(204);
    expect((await sendTo(1, 'POST', '/v1/api-keys/revoke', { body: { secret: leaked.secret } })).status).toBe(204);
    await until(
      'the other process refuses both',
      async () => (await statusAt(1, secret)) === 401 && (await statusAt(0, leaked.secret)) === 401,
    );

    // only the proxy's own part of X-Forwarded-For counts, and only where the proxy is trusted
    const headers = { 'x-forwarded-for': '198.51.100.1, 203.0.113.9' };
    for (const [number, name] of ['untrusted', 'trusted'].entries()) {
      expect((await sendTo(number, 'POST', '/v1/api-keys', { token: alice.access_token, body: { name }, headers })).status).toBe(201);
    }
    const records = async (): Promise<readonly Record<string, unknown>[]> => {
      const audit = jsonOf(await sendTo(0, 'GET', '/v1/admin/audit?event=ApiKeyCreate', { token: root.access_token }));
      return audit['items'] as Record<string, unknown>[];
    };
    await until('the audit lists the acts', async () => JSON.stringify(await records()).includes('"trusted"'));
    const addresses = new Map(
      (await records()).map((record) => [(record['parameters'] as { name?: string }).name, record['sourceipaddress']]),
    );
    expect([addresses.get('untrusted'), addresses.get('trusted')]).toEqual(['127.0.0.1', '203.0.113.9']);

    const { items } = jsonOf(await sendTo(0, 'GET', '/v1/admin/users', { token: root.access_token }));
    const user = (items as { readonly id: string; readonly email: string }[]).find(({ email }) => email === 'alice@example.com');
    expect((await sendTo(0, 'POST', `/v1/admin/users/${user?.id ?? ''}/disable`, { token: root.access_token })).status).toBe(200);
    // a session is read with its user at each request
    expect(await statusAt(1, alice.access_token)).toBe(401);
    expect((await sendTo(0, 'POST', '/login/logout', { token: root.access_token })).status).toBe(204);
    expect(await statusAt(1, root.access_token)).toBe(401);

    const prefix = walk.env['TALLY_INDEX_PREFIX'] ?? '';
    await raw('POST', `/${prefix}-*/_refresh`);
    const stored = JSON.stringify((await raw('GET', `/${prefix}-*/_search?size=1000&expand_wildcards=all`)).body);
    expect(stored).toContain(id);
    for (const each of walk.secrets) expect(stored).not.toContain(each);
  });
});
