/** Identity of running processes on one store: two registries on one OpenSearch; a registry and commands on one SQLite file. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { get } from '../support/identity/browser.ts';
import { bearer, jsonOf } from '../support/identity/http-world.ts';
import { CLIENT_ID, CLIENT_SECRET, startProvider } from '../support/identity/provider.ts';
import { logInAt } from '../support/identity/real-login.ts';
import { until } from '../support/servers/aws.ts';
import { runTally, startDaemon, type Daemon } from '../support/servers/daemon.ts';
import { opensearchUrl } from '../support/servers/found.ts';
import { openIndex, type IndexKind } from '../support/worlds/flow.ts';

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

async function unusedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => void server.close(resolve));
  return port;
}

async function startRegistries(kind: IndexKind, count: number) {
  const index = await openIndex(kind);
  stops.push(() => index.close());
  const publicUrl = `http://127.0.0.1:${await unusedPort()}`;
  const provider = await startProvider([`${publicUrl}/login/callback`]);
  stops.push(() => provider.close());
  const env = {
    ...index.env,
    TALLY_ROLES: 'http',
    TALLY_PUBLIC_URL: publicUrl,
    TALLY_OIDC_ISSUER: provider.url,
    TALLY_OIDC_CLIENT_ID: CLIENT_ID,
    TALLY_OIDC_CLIENT_SECRET: CLIENT_SECRET,
    TALLY_OIDC_ALLOWED: 'domain=example.com',
  };
  const daemons: Daemon[] = [];
  for (let at = 0; at < count; at += 1) {
    const daemon = await startDaemon(env);
    stops.push(() => daemon.kill());
    await daemon.ready();
    daemons.push(daemon);
  }
  const urls = daemons.map(({ controlUrl }) => controlUrl);
  const logIn = () => logInAt({ provider, publicUrl, urls });
  /** A request to one of them. */
  const send = (at: number, token: string, place = 'GET /v1/session', body?: unknown) => {
    const [method = '', path = ''] = place.split(' ');
    const headers = { ...bearer(token), ...(body !== undefined && { 'content-type': 'application/json' }) };
    return get(`${urls[at]}${path}`, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
  };
  async function createKey(access: string) {
    const { key, secret } = jsonOf(await send(0, access, 'POST /v1/api-keys', { name: 'ci' }));
    return { id: String((key as Readonly<Record<string, unknown>>)['id']), secret: String(secret) };
  }
  return { env, logIn, send, createKey, written: () => daemons.map(({ text, log }) => text + JSON.stringify(log)).join('\n') };
}

describe.skipIf(opensearchUrl() === undefined)('two registries on one OpenSearch', () => {
  it('accept one login and its keys, and a session that one of them ended is refused by the other at the next request', async () => {
    const { logIn, send, createKey, written } = await startRegistries('opensearch', 2);
    const access = await logIn();
    const { id, secret } = await createKey(access);
    for (const at of [0, 1]) {
      expect((await send(at, access)).status).toBe(200);
      expect(jsonOf(await send(at, secret))).toMatchObject({ kind: 'api_key', key: { id } });
      expect(jsonOf(await send(at, access, 'GET /v1/api-keys'))).toMatchObject({ items: [{ id }] });
    }
    // guesses at one address do not keep the valid key out
    const guesses = await Promise.all(Array.from({ length: 30 }, () => send(1, `qk_${'0'.repeat(49)}`)));
    expect(new Set(guesses.map(({ status }) => status))).toEqual(new Set([401]));
    expect((await send(1, secret)).status).toBe(200);
    expect((await send(0, access, `DELETE /v1/api-keys/${id}`)).status).toBe(204);
    await until('the other registry refuses the key', async () => (await send(1, secret)).status !== 200);
    expect((await send(1, access)).status).toBe(200);
    expect((await send(0, access, 'POST /login/logout')).status).toBe(204);
    expect((await send(1, access)).status).toBe(401);
    for (const token of [access, secret]) expect(written()).not.toContain(token.slice(-20));
  });
});

describe('a registry and commands on one SQLite file', () => {
  it('end the same keys and sessions', async () => {
    const { env, logIn, send, createKey } = await startRegistries('sqlite', 1);
    const access = await logIn();
    const { id, secret } = await createKey(access);
    expect((await send(0, secret)).status).toBe(200);
    expect(await runTally(['admin', 'keys', 'revoke', id], env)).toMatchObject({ code: 0 });
    await until('the registry refuses the key', async () => (await send(0, secret)).status !== 200);
    const other = await createKey(access);
    expect((await send(0, other.secret)).status).toBe(200);
    const { stdout } = await runTally(['admin', 'users', 'list', '--json'], env);
    const [user] = (JSON.parse(stdout) as { readonly items: readonly { readonly id: string }[] }).items;
    // an operator at the store may disable whom they like: the person is no administrator
    expect(await runTally(['admin', 'users', 'disable', user?.id ?? ''], env)).toMatchObject({ code: 0 });
    expect((await send(0, access)).status).toBe(401);
    await until('the registry refuses the keys of the user', async () => (await send(0, other.secret)).status !== 200);
    expect(await runTally(['admin', 'users', 'enable', user?.id ?? ''], env)).toMatchObject({ code: 0 });
    expect((await send(0, access)).status).toBe(401);
    await until('the registry accepts the keys again', async () => (await send(0, other.secret)).status === 200);
  });
});
