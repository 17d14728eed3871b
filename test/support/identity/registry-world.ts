/** Registries as processes with a real issuer, and people who use both with browsers and programs. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { challengeOf } from '../../../src/identity/tokens.rules.ts';
import { until } from '../servers/aws.ts';
import { runTally, startDaemon, type CommandResult, type Daemon, type Environment } from '../servers/daemon.ts';
import { listenScripted } from '../servers/scripted.ts';
import { get, type BrowserAnswer } from './browser.ts';
import { CLIENT_ID, CLIENT_SECRET, startProvider, type Person, type StartedProvider } from './provider.ts';
import { REDIRECT, VERIFIER } from './world.ts';

const DRIVEN_BROWSER = fileURLToPath(new URL('driven-browser.ts', import.meta.url));

export const people = {
  alice: { sub: 's-alice', email: 'alice@example.com', email_verified: true, groups: ['tally-users'] },
  bob: { sub: 's-bob', email: 'bob@example.com', email_verified: true, groups: ['tally-users'] },
  root: { sub: 's-root', email: 'root@example.com', email_verified: true, groups: ['tally-users', 'tally-admins'] },
  /** No rule of TALLY_OIDC_ALLOWED applies to this one. */
  mallory: { sub: 's-mallory', email: 'mallory@example.com', email_verified: true, groups: ['others'] },
} as const satisfies Record<string, Person>;
export type PersonName = keyof typeof people;

interface Sent {
  readonly token?: string | undefined;
  readonly body?: object | undefined;
  readonly cookies?: Map<string, string>;
  readonly headers?: Readonly<Record<string, string>>;
}

const visit = { accept: 'text/html', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', 'sec-fetch-site': 'cross-site' };

/** What people and programs do at the registry with this address. */
function visitorsOf(url: string, issuer: StartedProvider) {
  function send(method: string, path: string, { token, body, cookies, headers }: Sent = {}): Promise<BrowserAnswer> {
    return get(`${url}${path}`, {
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

  /** Where a program sends the browser of its user; by default one that does not wait for the answer. */
  function authorize(
    more: Readonly<Record<string, string>> = { state: 'mine', redirect_uri: REDIRECT, machine: 'laptop' },
    verifier = VERIFIER,
  ): string {
    const query = { code_challenge: challengeOf(verifier), code_challenge_method: 'S256', ...more };
    return `${url}/login/authorize?${new URLSearchParams(query).toString()}`;
  }

  /** From the first address to the callback of the registry, with its answer and the code of the issuer. */
  async function comeBack(cookies: Map<string, string>, address: string) {
    let begun = await get(address, { cookies, headers: visit });
    // when its issuer is too slow on a busy machine, the page says to begin the login again
    await until('the issuer answers', async () => {
      if (!begun.text.includes('issuer.unreachable')) return true;
      begun = await get(address, { cookies, headers: visit });
      return false;
    });
    if (begun.location === undefined) throw new Error(`a login was refused with ${begun.status}: ${begun.text}`);
    const back = await issuer.authorize(begun.location);
    return { ...(await get(back, { cookies, headers: visit })), issuerCode: new URL(back).searchParams.get('code') ?? '' };
  }

  /** What the browser of a person shows at the end: where it is sent, or the code to paste. A person who may not log in is sent back at once. */
  async function decide(person: PersonName, address: string) {
    issuer.personIs(people[person]);
    const cookies = new Map<string, string>();
    const { location, issuerCode } = await comeBack(cookies, address);
    // the cookie of the login begins with its secret name
    const [name = ''] = cookies.values();
    if (location !== undefined && location !== '/login/consent') return { name, issuerCode, consent: '', redirect: location };
    const page = await send('GET', '/login/consent', { cookies, headers: visit });
    const consent = /data-login="([^"]+)"/.exec(page.text)?.[1];
    if (consent === undefined) throw new Error(`no consent page, but ${page.status}: ${page.text}`);
    const own = { 'x-tally-csrf': '1', origin: url, 'sec-fetch-site': 'same-origin' };
    const decided = await send('POST', '/login/consent', { cookies, headers: own, body: { login: consent, allow: true } });
    return { name, issuerCode, consent, ...(JSON.parse(decided.text) as { readonly redirect?: string; readonly code?: string }) };
  }

  /** Logs a person in for a program. Each text that it resolves with is secret. */
  async function logIn(person: PersonName, verifier = VERIFIER) {
    const { redirect = '', name, consent, issuerCode } = await decide(person, authorize(undefined, verifier));
    const code = new URL(redirect).searchParams.get('code') ?? '';
    const redemption = { grant_type: 'authorization_code', code, code_verifier: verifier, redirect_uri: REDIRECT };
    const answered = await send('POST', '/login/token', { body: redemption });
    if (answered.status !== 200) throw new Error(`no token, but ${answered.status}: ${answered.text}`);
    const { access_token: token } = JSON.parse(answered.text) as { readonly access_token: string };
    return { name, consent, code, issuerCode, token };
  }

  /** Creates an API key in a session. */
  async function createKey(token: string, name: string) {
    const { status, text } = await send('POST', '/v1/api-keys', { token, body: { name } });
    if (status !== 201) throw new Error(`no key, but ${status}: ${text}`);
    const { key, secret } = JSON.parse(text) as { readonly key: { readonly id: string }; readonly secret: string };
    return { id: key.id, secret };
  }

  return { url, send, authorize, comeBack, decide, logIn, createKey };
}

const auditSchema = z.object({
  items: z.array(
    z.object({ eventname: z.string(), sourceipaddress: z.string().optional(), useridentity: z.object({ email: z.string() }) }),
  ),
});

/** Starts `tally serve --embedded` with an issuer. `settings`: further ones, for example another index or a proxy's address. */
export async function startRegistryWorld(settings: Environment = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'tally-registry-'));
  const urls: string[] = [];
  const issuer = await startProvider(() => urls.map((url) => `${url}/login/callback`));
  const env = {
    TALLY_EMBEDDED_DATA: join(folder, 'data'),
    TALLY_OIDC_ISSUER: issuer.url,
    TALLY_OIDC_CLIENT_ID: CLIENT_ID,
    TALLY_OIDC_CLIENT_SECRET: CLIENT_SECRET,
    TALLY_OIDC_ALLOWED: 'claim:groups=tally-users',
    TALLY_READERS: 'everyone',
    TALLY_OIDC_ADMIN_CLAIM: 'groups=tally-admins',
    ...settings,
  };
  const daemons: Daemon[] = [];

  async function start(more: Environment, args: readonly string[]) {
    const daemon = await startDaemon({ ...env, ...more }, args);
    daemons.push(daemon);
    const url = settings['TALLY_PUBLIC_URL'] ?? daemon.controlUrl;
    urls.push(url);
    await daemon.ready();
    return { daemon, operator: daemon.operator, ...visitorsOf(url, issuer) };
  }

  const first = await start({}, ['serve', '--embedded']);
  return {
    ...first,
    issuer,
    /** For this world alone. */
    folder,
    /** The settings of the program. */
    env,
    /** Starts another registry on the same index. The issuer must not have been asked before. */
    another: (more: Environment) => start({ TALLY_ROLES: 'http', ...more }, ['serve']),
    /** The events of the audit, the oldest first. */
    async audited() {
      const { stdout } = await runTally(['admin', 'audit', '--json'], first.operator);
      return auditSchema.parse(JSON.parse(stdout)).items.toReversed();
    },
    /** Runs a command of a person on this machine. `browse`: what the browser does with the address; without it there is none. */
    async tally(args: readonly string[], browse?: (address: string) => Promise<void>, more: Environment = {}): Promise<CommandResult> {
      const own = { HOME: folder, XDG_CONFIG_HOME: folder, TALLY_SOCKET: join(folder, 'none'), ...more };
      if (browse === undefined) return runTally(args, own);
      const browsed = Promise.withResolvers<void>();
      const driver = await startDriver(async (address) => {
        browse(address).then(browsed.resolve, browsed.reject);
        return '';
      });
      try {
        const [ended] = await Promise.all([runTally(args, { ...own, ...driver.env }), browsed.promise]);
        return ended;
      } finally {
        await driver.close();
      }
    },
    async close(): Promise<void> {
      await Promise.all(daemons.map((daemon) => daemon.kill()));
      await Promise.all([issuer.close(), rm(folder, { recursive: true, force: true })]);
    },
  };
}

export type RegistryWorld = Awaited<ReturnType<typeof startRegistryWorld>>;

/** A server that browses for programs: they send it the address, and `drive` does what the browser of a person does with it. */
export async function startDriver(drive: (address: string, path: string) => Promise<string>) {
  const { url, close } = await listenScripted(async ({ path, body }) => {
    const answer = drive(body, path).then((text) => ({ body: text }));
    return answer.catch((error: unknown) => ({ status: 500, body: String(error) }));
  });
  return { env: { BROWSER: `${process.execPath} ${DRIVEN_BROWSER} %s`, BROWSER_DRIVER: url }, close };
}
