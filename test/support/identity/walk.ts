/** What an outsider has who tries identity: real registries on one store, a real issuer, people with browsers, and commands. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { challengeOf } from '../../../src/domain/identity/tokens.ts';
import { startDaemon, type Daemon, type Environment } from '../servers/daemon.ts';
import { unusedPort } from '../servers/unused-port.ts';
import { openIndex, type IndexKind } from '../worlds/flow.ts';
import { get, type BrowserAnswer } from './browser.ts';
import { CLIENT_ID, CLIENT_SECRET, startProvider, type Person } from './provider.ts';
import { VERIFIER } from './world.ts';

/** Nothing listens there: a client that is simulated takes its code from the address. */
const CALLBACK = 'http://127.0.0.1:9999/callback';

const people = {
  alice: { sub: 's-alice', email: 'alice@example.com', email_verified: true, groups: ['tally-users'] },
  bob: { sub: 's-bob', email: 'bob@example.com', email_verified: true, groups: ['tally-users'] },
  root: { sub: 's-root', email: 'root@example.com', email_verified: true, groups: ['tally-users', 'tally-admins'] },
  /** No rule of TALLY_OIDC_ALLOWED applies to this one. */
  mallory: { sub: 's-mallory', email: 'mallory@example.com', email_verified: true, groups: ['others'] },
} as const satisfies Record<string, Person>;
type PersonName = keyof typeof people;

/** What the browser of a person shows at the end of a login. */
interface Decided {
  /** Where the browser is sent back to: the program that waits. */
  readonly redirect?: string;
  /** The code to paste, where no program waits. */
  readonly code?: string;
}

export interface Walk {
  /** The settings of the store, for commands that open it themselves. */
  readonly env: Environment;
  /** A folder that is removed at the end. */
  readonly folder: string;
  /** The address of the registry with this number, whether or not it runs. */
  url(number?: number): string;
  /** Starts a registry, and waits until it is ready. */
  start(number?: number, env?: Environment, args?: readonly string[]): Promise<Daemon>;
  /** Logs a person in as a program, and resolves with its token. */
  logIn(who: PersonName, number?: number): Promise<Token>;
  /** A server that browses for programs: they send the address to the path that names the person. */
  readonly driverUrl: string;
  /** All texts that were secret: none of them may be stored or logged. */
  readonly secrets: Set<string>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface Token {
  readonly access_token: string;
}

const visit = { accept: 'text/html', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', 'sec-fetch-site': 'cross-site' };
const json = { 'content-type': 'application/json' };

/** Opens the world: the issuer runs, and no registry yet. */
export async function openWalk(kind: IndexKind): Promise<Walk> {
  const index = await openIndex(kind);
  const folder = await mkdtemp(join(tmpdir(), 'tally-walk-'));
  const urls = [`http://127.0.0.1:${await unusedPort()}`, `http://127.0.0.1:${await unusedPort()}`];
  const url = (number = 0): string => urls[number] ?? '';
  const provider = await startProvider(urls.map((each) => `${each}/login/callback`));
  const secrets = new Set([CLIENT_SECRET]);
  const daemons: Daemon[] = [];

  /** Logs a person in at the issuer and, for a program, allows it on the consent page. Rejects if a page shows an error instead. */
  async function browse(who: PersonName, address: string): Promise<Decided> {
    provider.personIs(people[who]);
    const { origin } = new URL(address);
    const cookies = new Map<string, string>();
    const begun = await get(address, { cookies, headers: { accept: 'text/html' } });
    for (const value of cookies.values()) secrets.add(value);
    const back = await provider.authorize(locationOf(begun));
    secrets.add(new URL(back).searchParams.get('code') ?? CLIENT_SECRET);
    const answered = await get(back, { cookies, headers: visit });
    const location = locationOf(answered);
    if (location !== '/login/consent') return { redirect: location };
    const page = await get(`${origin}/login/consent`, { cookies, headers: visit });
    const login = /data-login="([^"]+)"/.exec(page.text)?.[1] ?? '';
    const headers = { ...json, 'x-tally-csrf': '1', origin, 'sec-fetch-site': 'same-origin' };
    const answer = await get(`${origin}/login/consent`, { cookies, method: 'POST', headers, body: JSON.stringify({ login, allow: true }) });
    const decided = JSON.parse(answer.text) as Decided;
    secrets.add(decided.code ?? codeIn(decided.redirect ?? ''));
    return decided;
  }

  /** The address of a login of a program. */
  function authorization(number: number): string {
    const query = {
      code_challenge: challengeOf(VERIFIER),
      code_challenge_method: 'S256',
      state: 'mine',
      machine: 'laptop',
      redirect_uri: CALLBACK,
    };
    return `${url(number)}/login/authorize?${new URLSearchParams(query).toString()}`;
  }

  const driver = createServer((incoming, response) => {
    void (async () => {
      const start = await get((await incoming.toArray()).join(''), {});
      const address = locationOf(start);
      const { redirect, code } = await browse(personOf(incoming.url), address);
      response.end(redirect === undefined ? code : await (await fetch(redirect)).text());
    })().catch((error: unknown) => response.writeHead(500).end(String(error)));
  });
  await new Promise<void>((resolve) => void driver.listen(0, '127.0.0.1', resolve));

  return {
    env: index.env,
    folder,
    url,
    secrets,
    driverUrl: `http://127.0.0.1:${(driver.address() as AddressInfo).port}`,
    async start(number = 0, env = {}, args = ['serve']) {
      const settings = {
        TALLY_ROLES: 'http',
        ...index.env,
        TALLY_HTTP_ADDRESS: new URL(url(number)).host,
        TALLY_OIDC_ISSUER: provider.url,
        TALLY_OIDC_CLIENT_ID: CLIENT_ID,
        TALLY_OIDC_CLIENT_SECRET: CLIENT_SECRET,
        TALLY_OIDC_ALLOWED: 'claim:groups=tally-users',
        TALLY_READERS: 'everyone',
        TALLY_OIDC_ADMIN_CLAIM: 'groups=tally-admins',
        ...env,
      };
      const daemon = await startDaemon(settings, args);
      daemons.push(daemon);
      await daemon.ready();
      return daemon;
    },
    async logIn(who, number = 0) {
      const { redirect = '' } = await browse(who, authorization(number));
      const grant = { grant_type: 'authorization_code', code: codeIn(redirect), code_verifier: VERIFIER, redirect_uri: CALLBACK };
      const answer = await get(`${url(number)}/login/token`, { method: 'POST', headers: json, body: JSON.stringify(grant) });
      const issued = JSON.parse(answer.text) as Token;
      secrets.add(issued.access_token);
      return issued;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(daemons.map((daemon) => daemon.kill()));
      driver.closeAllConnections();
      await new Promise((resolve) => void driver.close(resolve));
      await Promise.all([provider.close(), index.close(), rm(folder, { recursive: true, force: true })]);
    },
  };
}

/** A request with a bearer token and a JSON body, as programs send it. */
export function request(
  method: string,
  address: string,
  {
    token,
    body,
    headers = {},
  }: { readonly token?: string; readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<BrowserAnswer> {
  return get(address, {
    method,
    headers: { ...(token !== undefined && { authorization: `Bearer ${token}` }), ...(body !== undefined && json), ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

function codeIn(redirect: string): string {
  return new URL(redirect).searchParams.get('code') ?? '';
}

function locationOf({ location, status, text }: BrowserAnswer): string {
  if (location === undefined) throw new Error(`the browser shows ${status}: ${text}`);
  return location;
}

function personOf(path = ''): PersonName {
  const name = path.slice(1);
  if (name === 'alice' || name === 'bob' || name === 'root' || name === 'mallory') return name;
  throw new Error(`no person is ${name}`);
}
