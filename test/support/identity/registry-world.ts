/** The real program with identity: a real issuer, a reverse proxy before it, and people who log in as browsers do. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { challengeOf } from '../../../src/domain/identity/tokens.ts';
import { startDaemon, type Daemon, type Environment } from '../servers/daemon.ts';
import { startFront, type Front } from '../servers/front.ts';
import { get, type BrowserAnswer } from './browser.ts';
import { CLIENT_ID, CLIENT_SECRET, startProvider, type StartedProvider } from './provider.ts';
import { REDIRECT, VERIFIER } from './world.ts';

export const people = {
  user: { sub: 's-alice', email: 'alice@example.com', email_verified: true, groups: ['tally-users'] },
  admin: { sub: 's-root', email: 'root@example.com', email_verified: true, groups: ['tally-users', 'tally-admins'] },
  stranger: { sub: 's-eve', email: 'eve@elsewhere.example', email_verified: true, groups: [] },
} as const;

/** What a login leaves behind: each of it is secret. */
export interface Login {
  /** The cookie of the login, which begins with its secret name. */
  readonly name: string;
  /** What the consent page sent back. */
  readonly consent: string;
  readonly code: string;
  readonly token: string;
}

export interface RegistryWorld {
  readonly daemon: Daemon;
  readonly issuer: StartedProvider;
  readonly front: Front;
  /** Empty, for this world alone. */
  readonly folder: string;
  /** The settings of the program, for its commands. */
  readonly env: Environment;
  readonly send: (method: string, path: string, sent?: Sent) => Promise<BrowserAnswer>;
  /** From the first address to the callback of the registry, with its answer. */
  comeBack(
    cookies: Map<string, string>,
    query: Readonly<Record<string, string>>,
  ): Promise<BrowserAnswer & { readonly begun: BrowserAnswer }>;
  logIn(person: keyof typeof people, verifier?: string): Promise<Login>;
  close(): Promise<void>;
}

interface Sent {
  readonly token?: string | undefined;
  readonly body?: object | undefined;
  readonly cookies?: Map<string, string>;
  readonly headers?: Readonly<Record<string, string>>;
}

const visit = { accept: 'text/html', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', 'sec-fetch-site': 'cross-site' };

/** Starts `tally serve --embedded` with an issuer. `more`: further settings, for example another index. */
export async function startRegistryWorld(more: Environment = {}): Promise<RegistryWorld> {
  const [folder, front] = await Promise.all([mkdtemp(join(tmpdir(), 'tally-registry-')), startFront()]);
  const issuer = await startProvider([`${front.url}/login/callback`]);
  const env = {
    TALLY_EMBEDDED_DATA: join(folder, 'data'),
    TALLY_PUBLIC_URL: front.url,
    TALLY_TRUSTED_PROXIES: '127.0.0.1/32',
    TALLY_OIDC_ISSUER: issuer.url,
    TALLY_OIDC_CLIENT_ID: CLIENT_ID,
    TALLY_OIDC_CLIENT_SECRET: CLIENT_SECRET,
    TALLY_OIDC_ALLOWED: 'claim:groups=tally-users',
    TALLY_READERS: 'everyone',
    TALLY_OIDC_ADMIN_CLAIM: 'groups=tally-admins',
    ...more,
  };
  const daemon = await startDaemon(env, ['serve', '--embedded']);
  front.leadsTo(daemon.controlUrl);
  await daemon.ready();

  function send(method: string, path: string, { token, body, cookies, headers }: Sent = {}): Promise<BrowserAnswer> {
    return get(`${front.url}${path}`, {
      method,
      ...(cookies !== undefined && { cookies }),
      ...(body !== undefined && { body: JSON.stringify(body) }),
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
    });
  }

  async function comeBack(cookies: Map<string, string>, query: Readonly<Record<string, string>>) {
    const begun = await send('GET', `/login/authorize?${new URLSearchParams(query).toString()}`, { cookies, headers: visit });
    if (begun.location === undefined) throw new Error(`a login was refused with ${begun.status}: ${begun.text}`);
    const back = new URL(await issuer.authorize(begun.location));
    return { ...(await send('GET', `${back.pathname}${back.search}`, { cookies, headers: visit })), begun };
  }

  async function logIn(person: keyof typeof people, verifier = VERIFIER): Promise<Login> {
    issuer.personIs(people[person]);
    const cookies = new Map<string, string>();
    const query = { code_challenge: challengeOf(verifier), code_challenge_method: 'S256', state: 'mine', redirect_uri: REDIRECT };
    const answer = await comeBack(cookies, { ...query, machine: 'laptop' });
    const [name = ''] = cookies.values();
    const page = await send('GET', '/login/consent', { cookies, headers: visit });
    const consent = /data-login="([^"]+)"/.exec(page.text)?.[1];
    if (consent === undefined) throw new Error(`no consent page, but ${answer.status} and ${page.status}: ${page.text}`);
    const own = { 'x-tally-csrf': '1', origin: front.url, 'sec-fetch-site': 'same-origin' };
    const decided = await send('POST', '/login/consent', { cookies, headers: own, body: { login: consent, allow: true } });
    const { redirect } = JSON.parse(decided.text) as { readonly redirect: string };
    const code = new URL(redirect).searchParams.get('code') ?? '';
    const redemption = { grant_type: 'authorization_code', code, code_verifier: verifier, redirect_uri: REDIRECT };
    const answered = await send('POST', '/login/token', { body: redemption });
    if (answered.status !== 200) throw new Error(`no token, but ${answered.status}: ${answered.text}`);
    const { access_token: token } = JSON.parse(answered.text) as { readonly access_token: string };
    return { name, consent, code, token };
  }

  return {
    daemon,
    issuer,
    front,
    folder,
    env,
    send,
    comeBack,
    logIn,
    async close() {
      await daemon.kill();
      await Promise.all([front.close(), issuer.close(), rm(folder, { recursive: true, force: true })]);
    },
  };
}
