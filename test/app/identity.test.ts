/** Two registries on one store, a real issuer, and the whole way from a browser to a session. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createSqliteStore } from '../../src/adapters/sqlite/store.ts';
import { createKeyParts } from '../../src/app/api-keys.ts';
import { createIdentity } from '../../src/app/identity.ts';
import { challengeOf } from '../../src/domain/identity/tokens.ts';
import { createControlPlane } from '../../src/http/control-plane.ts';
import { systemClock } from '../../src/adapters/system-clock.ts';
import { createPeople } from '../../src/pipeline/identity/people.ts';
import { userRecordSchema } from '../../src/domain/identity/user.ts';
import { listAllRecords } from '../../src/pipeline/records/stored.ts';
import { parseSettings } from '../../src/settings/settings.ts';
import { createFakeControl } from '../support/fakes/control.ts';
import { createFakeTelemetry } from '../support/fakes/ports.ts';
import { get } from '../support/identity/browser.ts';
import { bearer, jsonOf } from '../support/identity/http-world.ts';
import { CLIENT_ID, CLIENT_SECRET, startProvider, type StartedProvider } from '../support/identity/provider.ts';
import { REDIRECT, VERIFIER } from '../support/identity/world.ts';
import { unusedPort } from '../support/servers/unused-port.ts';

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

let provider: StartedProvider;
let folder: string;
let publicUrl: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tally-identity-'));
  stops.push(() => rm(folder, { recursive: true }));
  publicUrl = `http://127.0.0.1:${await unusedPort()}`;
  provider = await startProvider([`${publicUrl}/login/callback`]);
  stops.push(() => provider.close());
});

/** One of several processes on the same file. */
async function startRegistry(more: Readonly<Record<string, string>> = {}) {
  const parsed = parseSettings(
    {
      TALLY_OIDC_ISSUER: provider.url,
      TALLY_OIDC_CLIENT_ID: CLIENT_ID,
      TALLY_OIDC_CLIENT_SECRET: CLIENT_SECRET,
      TALLY_OIDC_ALLOWED: 'domain=example.com,claim:groups=tally-users',
      TALLY_OIDC_ADMIN_CLAIM: 'groups=tally-admins',
      TALLY_PUBLIC_URL: publicUrl,
      ...more,
    },
    () => ({ mode: 0, text: '' }),
  );
  if (!parsed.ok) throw new Error(parsed.mistakes.join('; '));
  const { settings } = parsed;
  const store = createSqliteStore({ path: join(folder, 'index.sqlite') });
  await store.setup.prepare();
  const telemetry = createFakeTelemetry();
  const keys = createKeyParts(store, settings, telemetry);
  const listener = createControlPlane({
    address: { host: '127.0.0.1', port: 0 },
    verbs: createFakeControl().verbs,
    readiness: { read: () => ({ ready: true, roles: {}, checks: {} }) },
    metrics: { metricsText: async () => '', contentType: 'text/plain' },
    telemetry,
    clock: systemClock,
    version: '1.67.0',
    identity: await createIdentity({
      settings,
      proxyEnv: undefined,
      store,
      telemetry,
      keys,
      publicUrl: () => publicUrl,
    }),
    publicUrl: settings.TALLY_PUBLIC_URL,
  });
  const { port } = await listener.listen();
  stops.push(
    () => store.close(),
    () => listener.close(),
  );
  return { url: `http://127.0.0.1:${port}`, store, telemetry, keys };
}

type Registry = Awaited<ReturnType<typeof startRegistry>>;

const json = { 'content-type': 'application/json' };
const client = {
  code_challenge: challengeOf(VERIFIER),
  code_challenge_method: 'S256',
  state: 'mine',
  redirect_uri: REDIRECT,
  machine: 'laptop',
};

/** The browser's way; each step is served by the next of the registries. */
async function logIn(...registries: readonly Registry[]): Promise<string> {
  let step = 0;
  const next = () => registries[step++ % registries.length]!.url;
  const cookies = new Map<string, string>();
  const begun = await get(`${next()}/login/authorize?${new URLSearchParams(client).toString()}`, { cookies });
  const back = await provider.authorize(begun.location ?? '');
  expect(back.startsWith(`${publicUrl}/login/callback?`)).toBe(true);
  const answered = await get(back.replace(publicUrl, next()), { cookies });
  if (answered.location !== '/login/consent') return answered.location ?? answered.text;
  const page = await get(`${next()}/login/consent`, { cookies });
  const login = /data-login="([^"]+)"/.exec(page.text)?.[1];
  const headers = { ...json, 'x-tally-csrf': '1', origin: publicUrl };
  const decided = await get(`${next()}/login/consent`, { cookies, method: 'POST', headers, body: JSON.stringify({ login, allow: true }) });
  return String(jsonOf(decided)['redirect']);
}

async function redeem({ url }: Registry, redirect: string) {
  const code = new URL(redirect).searchParams.get('code');
  const body = JSON.stringify({ grant_type: 'authorization_code', code, code_verifier: VERIFIER, redirect_uri: REDIRECT });
  return String(jsonOf(await get(`${url}/login/token`, { method: 'POST', headers: json, body }))['access_token']);
}

const sessionAt = ({ url }: Registry, token: string) => get(`${url}/v1/session`, { headers: bearer(token) });

describe('a login at a real issuer', () => {
  it('passes through two registries, and its session counts in both until its user is disabled', async () => {
    const [a, b] = [await startRegistry(), await startRegistry()];
    const redirect = await logIn(a, b);
    expect(new URL(redirect).searchParams.get('iss')).toBe(publicUrl);
    const access = await redeem(b, redirect);
    for (const registry of [a, b])
      expect(jsonOf(await sessionAt(registry, access))).toMatchObject({ role: 'user', user: { email: 'alice@example.com' } });
    const [user] = await listAllRecords(a.store.state, 'user', userRecordSchema);
    await createPeople({
      state: a.store.state,
      clock: systemClock,
      rules: { allowed: [{ kind: 'any' }], adminEmails: ['root@example.com'] },
    }).disable(user?.userId ?? '');
    expect((await sessionAt(b, access)).status).toBe(401);
    const events = (await a.store.audit.list({ limit: 100 })).map(({ eventname }) => eventname);
    expect(events).toEqual(['Login']);
  });

  it('gives the role that the claims state', async () => {
    const registry = await startRegistry();
    provider.personIs({ sub: 's-root', email: 'root@elsewhere.example', email_verified: true, groups: ['tally-users', 'tally-admins'] });
    const access = await redeem(registry, await logIn(registry));
    expect(jsonOf(await sessionAt(registry, access))).toMatchObject({ role: 'admin', scopes: ['read', 'operate', 'admin'] });
  });

  it('of a person whom no rule lets in ends with a reason, and without a user record', async () => {
    const registry = await startRegistry();
    provider.personIs({ sub: 's-eve', email: 'eve@elsewhere.example', email_verified: true });
    const redirect = new URL(await logIn(registry));
    expect(redirect.searchParams.get('error')).toBe('access_denied');
    expect(redirect.searchParams.get('error_description')).toContain('eve@elsewhere.example may not log in');
    expect(await registry.store.state.count('user')).toBe(0);
  });

  it('with a wrong client secret names the settings', async () => {
    const registry = await startRegistry({ TALLY_OIDC_CLIENT_SECRET: 'wrong' });
    const redirect = new URL(await logIn(registry));
    expect(redirect.searchParams.get('error_description')).toContain('invalid_client');
    // anyone can bring about such a failure, so it is counted in windows
    await registry.keys.flush(AbortSignal.timeout(10_000));
    const [record] = await registry.store.audit.list({ limit: 1 });
    expect(record).toMatchObject({ eventname: 'LoginFailed', useridentity: { email: 'unknown' }, parameters: { count: 1 } });
  });

  it('gives one token to ten processes, and ends in all registries with a logout at one of them', async () => {
    const registries = [await startRegistry(), await startRegistry()];
    const [a, b] = registries;
    const access = await redeem(a!, await logIn(...registries));
    const requests = Array.from({ length: 10 }, (_, index) => sessionAt(registries[index % 2]!, access));
    expect((await Promise.all(requests)).map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 200));
    expect((await get(`${b!.url}/login/logout`, { method: 'POST', headers: bearer(access) })).status).toBe(204);
    expect((await sessionAt(a!, access)).status).toBe(401);
    expect((await sessionAt(b!, access)).status).toBe(401);
  });
});

it('without an issuer there is no identity', async () => {
  const parsed = parseSettings({}, () => ({ mode: 0, text: '' }));
  if (!parsed.ok) throw new Error('no settings');
  const store = createSqliteStore({ path: join(folder, 'other.sqlite') });
  stops.push(() => store.close());
  const { settings } = parsed;
  const telemetry = createFakeTelemetry();
  const keys = createKeyParts(store, settings, telemetry);
  expect(await createIdentity({ settings, proxyEnv: undefined, store, telemetry, keys, publicUrl: () => '' })).toBeUndefined();
});
