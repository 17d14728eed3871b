/**
 * The interactive login (OAuth with PKCE): through a browser on this machine, which returns to a listener on 127.0.0.1; or with a
 * code that any browser shows and the user pastes here.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { inTime } from '../../base/in-time.ts';
import { printable } from '../../base/texts.ts';
import { readCaller } from './registry.ts';
import { CommandError } from '../errors.ts';
import { send, endSession, requestToken, type Grant } from './send.ts';
import type { Config, StoredSession } from './store.ts';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { spawn } from 'node:child_process';

/** The registry keeps a login that is under way for 10 min. */
const LOGIN_TIMEOUT_MS = 600_000;
const MACHINE_LENGTH_MAX = 64;
/** A longer reason helps no reader. */
const REASON_LENGTH_MAX = 500;

export interface LoginPorts {
  /** Absent: there is no browser on this machine. */
  readonly openBrowser?: OpenBrowser | undefined;
  /** Shows a question at the terminal; absent if there is none. */
  readonly ask?: ((question: string) => Promise<string>) | undefined;
  readonly say: (text: string) => void;
  /** The name of this machine, for the consent page. */
  readonly machine: string;
  readonly nowMs: () => number;
}

const localSession = z.object({ kind: z.literal('local') });

/** `keep` stores the session of a login that succeeded. A session that it does not store is ended. */
type KeepingPorts = LoginPorts & { readonly keep: (session: StoredSession) => void };

interface Attempt {
  readonly config: Config;
  readonly ports: KeepingPorts;
  readonly state: string;
  readonly verifier: string;
  readonly signal: AbortSignal;
}

/** Logs in at the registry, and resolves with the person, as the registry names it. Throws `login.failed`. */
export async function logIn(config: Config, ports: KeepingPorts, signal: AbortSignal): Promise<string> {
  await requireLogins(config, signal);
  const attempt: Attempt = { config, ports, state: randomText(32), verifier: randomText(48), signal };
  const { openBrowser } = ports;
  const login = openBrowser === undefined ? undefined : await logInByBrowser(attempt, openBrowser);
  return login ?? logInByCode(attempt);
}

/** A registry without an issuer accepts callers without credentials and has no login page that returns here. */
async function requireLogins({ registry_url: registry }: Config, signal: AbortSignal): Promise<void> {
  const { json } = await send(new URL('/v1/session', registry), { method: 'GET' }, signal);
  if (localSession.safeParse(json).success)
    throw new CommandError('login.failed', `${registry} has no login: commands with --registry ${registry} need none`);
}

/** Returns undefined if the browser could not be opened. */
async function logInByBrowser(attempt: Attempt, openBrowser: OpenBrowser): Promise<string | undefined> {
  const { ports, state, signal } = attempt;
  const listener = await listen(state).catch(() => undefined);
  if (listener === undefined) return undefined;
  try {
    listener.leadTo(addressOf(attempt, { redirect_uri: listener.address }));
    const { startAddress } = listener;
    ports.say(`Log in in the browser. If it does not open, open this address on this machine:\n${startAddress}`);
    const returned = await firstInTime([listener.returned, untilOpeningFails(openBrowser(startAddress))], signal);
    return returned && (await showingEnd(returned, () => finish(attempt, returned.parameters, listener.address)));
  } finally {
    listener.close();
  }
}

/** Shows in the browser how the login ended. */
async function showingEnd(returned: Return, work: () => Promise<string>): Promise<string> {
  try {
    const who = await work();
    await returned.show({ title: `You are logged in as ${printable(who)}`, text: 'You can close this window.' });
    return who;
  } catch (error) {
    await returned.show({ title: 'The login failed', text: error instanceof Error ? error.message : String(error) });
    throw error;
  }
}

async function finish(attempt: Attempt, parameters: ReadonlyMap<string, string>, redirectUri: string): Promise<string> {
  const { registry_url: registry } = attempt.config;
  if (parameters.get('iss') !== registry) {
    throw new CommandError('login.failed', `a server other than ${registry} answered the login, so nothing was sent to it`);
  }
  const error = parameters.get('error');
  if (error !== undefined) {
    const reason = printable(parameters.get('error_description') ?? error, REASON_LENGTH_MAX);
    throw new CommandError('login.failed', `the login was refused: ${reason}`);
  }
  const code = parameters.get('code');
  if (code === undefined) throw new CommandError('login.failed', 'the browser returned without a code: repeat the login');
  return redeem(attempt, { code, redirect_uri: redirectUri });
}

async function logInByCode(attempt: Attempt): Promise<string> {
  const { ports, signal } = attempt;
  if (ports.ask === undefined) {
    throw new CommandError('login.failed', 'this process has neither a browser nor a terminal: set TALLY_API_KEY_FILE instead');
  }
  ports.say(`Open this address in a browser, and paste the code that it shows:\n${addressOf(attempt, { no_browser: 'true' })}`);
  const code = await firstInTime([ports.ask('Code: ')], signal);
  // pages and terminals add spaces and line ends
  return redeem(attempt, { code: code.replaceAll(/\s/g, '') });
}

async function redeem({ config, ports, verifier, signal }: Attempt, given: Pick<Grant, 'code' | 'redirect_uri'>): Promise<string> {
  const session = await requestToken(config, { grant_type: 'authorization_code', code_verifier: verifier, ...given }, ports.nowMs, signal);
  if (session !== undefined) {
    try {
      // a login without a name is not used: another person may have answered it
      const email = await emailOf(session, signal);
      ports.keep(session);
      return email;
    } catch (error) {
      await endSession(session, AbortSignal.timeout(5_000)).catch(() => undefined);
      throw error;
    }
  }
  throw new CommandError(
    'login.failed',
    'the registry refused the code: it is wrong, has already been used, or is older than 60 s; repeat the login',
  );
}

async function emailOf({ registry_url: registry, token }: StoredSession, signal: AbortSignal): Promise<string> {
  const { user } = await readCaller({ url: registry, token }, signal);
  return user.email_verified === false ? `${user.email} (not verified)` : user.email;
}

function addressOf({ config, ports, state, verifier }: Attempt, others: Readonly<Record<string, string>>): string {
  const address = new URL('/login/authorize', config.registry_url);
  const challenge = createHash('sha256').update(verifier).digest('base64url');
  const query = { code_challenge: challenge, code_challenge_method: 'S256', state, machine: machineName(ports.machine), ...others };
  for (const [name, value] of Object.entries(query)) address.searchParams.set(name, value);
  return address.href;
}

function machineName(name: string): string {
  return name.replaceAll(/[^\w .-]/g, '').slice(0, MACHINE_LENGTH_MAX) || 'unknown';
}

const randomText = (sizeBytes: number): string => randomBytes(sizeBytes).toString('base64url');

/** Resolves with undefined if the browser cannot be opened; otherwise never. */
async function untilOpeningFails(opening: Promise<boolean>): Promise<undefined> {
  const isOpened = await opening;
  if (isOpened) await new Promise<never>(() => undefined);
  return undefined;
}

/** Resolves with the first that ends; rejects after a login's lifetime. */
async function firstInTime<Result>(works: readonly Promise<Result>[], signal: AbortSignal): Promise<Result> {
  const late = AbortSignal.timeout(LOGIN_TIMEOUT_MS);
  try {
    return await inTime(Promise.race(works), AbortSignal.any([signal, late]));
  } catch (error) {
    throw error === late.reason ? new CommandError('login.failed', 'the login was not finished in time: repeat the login') : error;
  }
}

/**
 * The listener on 127.0.0.1 from which a login begins, and to which the browser returns at its end:
 *
 *   start address ──once──► the registry ──► return ──► its page
 *        └──a second time──► the login has ended
 *
 * The address with which a browser is opened is a process's argument, which every user of this machine can read. So it is an address
 * of this listener that leads to the registry only once, and not the one with the login's secrets.
 */

/** A browser opens connections that it never uses. */
const HEADERS_TIMEOUT_MS = 10_000;

const NOTHING = { title: 'Nothing is here', text: 'This address belongs to a login that is under way.' } as const;

interface Page {
  readonly title: string;
  readonly text: string;
}

/** The browser's return. */
interface Return {
  readonly parameters: ReadonlyMap<string, string>;
  /** Shows the page in the browser; resolves once it is sent or cannot be sent. */
  show(page: Page): Promise<void>;
}

interface Listener {
  /** The redirect_uri. */
  readonly address: string;
  /** The address to open, which leads to the one that `leadTo` was given. */
  readonly startAddress: string;
  leadTo(address: string): void;
  /** Rejects with `login.failed` if the start address was opened twice: another user of this machine may have been the first. */
  readonly returned: Promise<Return>;
  close(): void;
}

/** Starts listening. Requests without this state are not for this login, which continues to wait. */
export async function listen(state: string): Promise<Listener> {
  const returned = Promise.withResolvers<Return>();
  returned.promise.catch(() => undefined);
  const start = `/start/${randomBytes(16).toString('hex')}`;
  let isAnswered = false;
  let target: string | undefined;
  let isStarted = false;

  function begin(response: ServerResponse): void {
    if (target === undefined || isAnswered) {
      void answer(response, 404, NOTHING);
    } else if (isStarted) {
      isAnswered = true;
      const text = "this login's address was opened twice, maybe by another user of this machine, so Tally ended the login";
      void answer(response, 409, { title: 'The login has ended', text: `${text}. Begin it again.` });
      returned.reject(new CommandError('login.failed', `${text}: repeat the login`));
    } else {
      isStarted = true;
      response.writeHead(303, { location: target, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer', connection: 'close' });
      response.end();
    }
  }

  const server = createServer({ headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: HEADERS_TIMEOUT_MS }, (request, response) => {
    const host = hostOf(server.address());
    const parameters = parametersOf(request, { host, state });
    if (request.method === 'GET' && request.url === start && request.headers.host === host) {
      begin(response);
    } else if (parameters === undefined) {
      void answer(response, 404, NOTHING);
    } else if (isAnswered) {
      void answer(response, 409, { title: 'Nothing was done', text: 'This login has been answered already.' });
    } else {
      isAnswered = true;
      returned.resolve({ parameters, show: (page) => answer(response, 200, page) });
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    address: `http://${hostOf(server.address())}/callback`,
    startAddress: `http://${hostOf(server.address())}${start}`,
    leadTo(address) {
      target = address;
    },
    returned: returned.promise,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function hostOf(address: AddressInfo | string | null): string {
  return address === null || typeof address === 'string' ? '' : `127.0.0.1:${address.port}`;
}

/** Returns what the registry sends; undefined for a request that cannot come from this login. */
function parametersOf(
  { method, url = '', headers }: IncomingMessage,
  { host, state }: { readonly host: string; readonly state: string },
): ReadonlyMap<string, string> | undefined {
  // a different Host header means DNS rebinding
  if (method !== 'GET' || headers.host !== host) return undefined;
  const parsed = URL.parse(url, `http://${host}`);
  if (parsed?.pathname !== '/callback') return undefined;
  const pairs = [...parsed.searchParams];
  const parameters = new Map(pairs);
  // a parameter given twice could be read differently elsewhere
  return parameters.size === pairs.length && isSame(parameters.get('state') ?? '', state) ? parameters : undefined;
}

function isSame(text: string, expected: string): boolean {
  const [left, right] = [Buffer.from(text), Buffer.from(expected)];
  return left.length === right.length && timingSafeEqual(left, right);
}

async function answer(response: ServerResponse, status: number, { title, text }: Page): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    response.once('close', resolve);
  });
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    connection: 'close',
  });
  response.end(
    `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>Tally</title></head>
<body><h1>${escaped(title)}</h1><p>${escaped(text)}</p></body></html>
`,
  );
  await closed;
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Such a session's browser is on another machine, where 127.0.0.1 is that machine. */
const REMOTE = ['SSH_CONNECTION', 'SSH_TTY', 'CODESPACES'];
const DISPLAYS = ['DISPLAY', 'WAYLAND_DISPLAY', 'WSL_DISTRO_NAME'];

/** Opens the address; resolves with false if that failed, and not before the program that opens it has ended. */
export type OpenBrowser = (address: string) => Promise<boolean>;

/** Returns a function that opens a browser here; undefined if this machine seems to have none. */
export function browserOf(env: Environment, platform: NodeJS.Platform): OpenBrowser | undefined {
  const isSet = (name: string): boolean => (env[name] ?? '') !== '';
  if (REMOTE.some(isSet)) return undefined;
  const named = (env['BROWSER'] ?? '').split(/\s+/).filter((part) => part !== '');
  if (named.length > 0)
    return (address) => run(named.includes('%s') ? named.map((part) => (part === '%s' ? address : part)) : [...named, address]);
  if (platform === 'darwin') return (address) => run(['open', address]);
  if (platform === 'win32') return (address) => run(['rundll32', 'url.dll,FileProtocolHandler', address]);
  return DISPLAYS.some(isSet) ? (address) => run(['xdg-open', address]) : undefined;
}

async function run([program = '', ...args]: readonly string[]): Promise<boolean> {
  // no shell: the address is one argument, whatever it contains
  const child = spawn(program, args, { stdio: 'ignore', detached: true });
  child.unref();
  return new Promise((resolve) => {
    child.once('error', () => resolve(false));
    child.once('exit', (code) => resolve(code === 0));
  });
}
