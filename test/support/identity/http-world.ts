/** A control plane with identity, on stores in memory and with an issuer in memory, and its callers of each kind. */
import { expect, onTestFinished } from 'vitest';
import type { CheckedOperations } from '../../../src/registry/contract/contract.ts';
import type { Actor, KeyScope } from '../../../src/base/actor.ts';
import type { Store } from '../../../src/store/store.ts';
import type { LoadFiles } from '../../../src/registry/panel.ts';
import { createPeople } from '../../../src/identity/users.ts';
import { createFakeControl } from '../fakes/control.ts';
import { listenControlPlane } from '../servers/control-plane.ts';
import { get, type BrowserAnswer } from './browser.ts';
import { keyActor } from './actors.ts';
import { createIdentityWorld, logIn, type IdentityWorld } from './world.ts';

type ControlParts = Parameters<typeof listenControlPlane>[0];

interface HttpWorldOptions {
  /** Default: anyone may log in. */
  readonly world?: IdentityWorld;
  readonly operations?: CheckedOperations;
  readonly ownAccess?: ControlParts['ownAccess'];
  readonly store?: Store;
  /** Default: the bound address. */
  readonly publicUrl?: string;
  readonly catalogUrl?: string;
  readonly trustedProxies?: readonly string[];
  /** Default: keys are valid once keyOf has made them, and failures are noted, of which none is too many. */
  readonly identity?: Partial<ControlParts['identity']>;
  /** Default: files with some text. */
  readonly loadPanel?: LoadFiles;
}

const EXAMPLES = ['index.html', 'panel-QSV32F7P.js', 'README.html', 'concepts.html', 'reference/error-codes.html'];

/** The files that the examples of the contract name. */
export const someFiles: LoadFiles = async () => new Map(EXAMPLES.map((name) => [name, new TextEncoder().encode('text')]));

/** Ends with the test. */
export async function openHttpWorld(options: HttpWorldOptions = {}): Promise<HttpWorld> {
  const world = await startHttpWorld(options);
  onTestFinished(() => world.close());
  return world;
}

/** The same for several tests, until it is closed. */
export async function startHttpWorld(options: HttpWorldOptions = {}) {
  const { operations, ownAccess, store, publicUrl, catalogUrl, trustedProxies = [], identity, loadPanel = someFiles } = options;
  const world = options.world ?? createIdentityWorld({ allowed: ['any'], ...(store !== undefined && { store }) });
  const fake = createFakeControl();
  const failures: { readonly address: string | undefined; readonly reason: string }[] = [];
  const keys = new Map<string, Extract<Actor, { kind: 'api_key' }>>();
  const listener = await listenControlPlane({
    operations: operations ?? fake.checked,
    ...(ownAccess !== undefined && { ownAccess }),
    telemetry: world.telemetry,
    version: '1.67.0',
    loadPanel,
    identity: {
      sessions: world.sessions,
      logins: world.logins,
      authenticateKey: async (secret) => keys.get(secret),
      attempts: { failed: ({ address, reason }) => void failures.push({ address, reason }) },
      trustedProxies,
      publicUrl: world.publicUrl,
      ...identity,
    },
    publicUrl,
    catalogUrl,
  });
  const { port, url } = listener;
  world.isAt(publicUrl ?? url);

  return {
    ...world,
    fake,
    /** The credentials that were not valid. */
    failures,
    port,
    url,
    tokenOf: (role: Role) => tokenIn(world, role),
    /** Makes a key valid, and returns its secret. */
    keyOf(role: 'user' | 'admin', scopes: readonly KeyScope[]): string {
      const secret = `qk_${role}${scopes.join('')}`;
      keys.set(secret, keyActor({ role, scopes }));
      return secret;
    },
    send: (method: string, path: string, sent: Parameters<typeof get>[1] = {}): Promise<BrowserAnswer> =>
      get(`${url}${path}`, { ...sent, method }),
    close: () => listener.close(),
    listenAtSocket: (path: string) => listener.listenAtSocket(path),
  };
}

type Role = 'user' | 'admin';

/** Logs a person of the role in as a program, and resolves with the token. */
async function tokenIn(world: IdentityWorld, role: Role): Promise<string> {
  const sub = `s-${role}`;
  world.issuer.personIs({ sub, email: `${role}@example.com`, email_verified: true });
  const { store, clock } = world;
  const rules = { allowed: [{ kind: 'any' as const }], adminEmails: [] };
  if (role === 'admin') await createPeople({ state: store.state, clock, rules }).change(`sub:${sub}`, { role: 'admin' }, 'root');
  return (await logIn(world)).token;
}

export type HttpWorld = Awaited<ReturnType<typeof startHttpWorld>>;

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

export const jsonOf = ({ text }: BrowserAnswer): Record<string, unknown> => JSON.parse(text) as Record<string, unknown>;

/** What a browser sends with the page that it comes from the issuer to. */
export const visit = { accept: 'text/html', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', 'sec-fetch-site': 'cross-site' };

/** What a page of the registry sends. */
export const ownPage = (world: HttpWorld) => ({
  'content-type': 'application/json',
  'x-tally-csrf': '1',
  origin: world.publicUrl(),
  'sec-fetch-site': 'same-origin',
});

/** A browser that began a login at this path, and comes back from the issuer. */
export async function backFromIssuer(world: HttpWorld, path: string) {
  const cookies = new Map<string, string>();
  const { host } = new URL(world.publicUrl());
  const begun = await world.send('GET', path, { cookies, headers: { host, accept: 'text/html' } });
  expect(begun.status).toBe(302);
  const answered = await world.send('GET', world.issuer.answerTo(begun.location ?? ''), { cookies, headers: { host, ...visit } });
  return { cookies, answered };
}

/** It goes on to the consent page. */
export async function toConsent(world: HttpWorld, { cookies, answered }: Awaited<ReturnType<typeof backFromIssuer>>) {
  expect([answered.status, answered.location]).toEqual([303, '/login/consent']);
  const page = await world.send('GET', '/login/consent', { cookies, headers: visit });
  expect(page.status).toBe(200);
  const login = /data-login="([^"]+)"/.exec(page.text)?.[1] ?? '';
  const decide = (allow: boolean, headers: Readonly<Record<string, string>> = ownPage(world)) =>
    world.send('POST', '/login/consent', { cookies, headers, body: JSON.stringify({ login, allow }) });
  return { cookies, page, decide };
}
