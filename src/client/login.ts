/**
 * The interactive login (OAuth with PKCE): by a browser on this machine, which returns to a listener on 127.0.0.1; or by a code
 * that a browser anywhere shows, which is pasted here.
 */
import { createHash, randomBytes } from 'node:crypto';
import { printable } from '../domain/printable.ts';
import type { OpenBrowser } from './browser.ts';
import { callerOf } from './caller.ts';
import { ClientError } from './client-error.ts';
import { listen, type Return } from './listener.ts';
import { send } from './send.ts';
import type { Config, StoredSession } from './store.ts';
import { endSession, requestToken, type Grant } from './tokens.ts';

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
  const attempt: Attempt = { config, ports, state: randomText(32), verifier: randomText(48), signal };
  const { openBrowser } = ports;
  const login = openBrowser === undefined ? undefined : await byBrowser(attempt, openBrowser);
  return login ?? byCode(attempt);
}

/** Returns undefined if the browser could not be opened. */
async function byBrowser(attempt: Attempt, openBrowser: OpenBrowser): Promise<string | undefined> {
  const { ports, state, signal } = attempt;
  const listener = await listen(state).catch(() => undefined);
  if (listener === undefined) return undefined;
  try {
    listener.leadTo(addressOf(attempt, { redirect_uri: listener.address }));
    const { startAddress } = listener;
    ports.say(`Log in in the browser. If it does not open, open this address on this machine:\n${startAddress}`);
    const returned = await firstOf([listener.returned, failureOf(openBrowser(startAddress))], signal);
    return returned && (await answered(returned, () => finish(attempt, returned.parameters, listener.address)));
  } finally {
    listener.close();
  }
}

/** Shows in the browser how the login ended. */
async function answered(returned: Return, work: () => Promise<string>): Promise<string> {
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
    throw new ClientError('login.failed', `the login was answered by another server than ${registry}: nothing was sent to it`);
  }
  const error = parameters.get('error');
  if (error !== undefined) {
    const reason = printable(parameters.get('error_description') ?? error, REASON_LENGTH_MAX);
    throw new ClientError('login.failed', `the login was refused: ${reason}`);
  }
  const code = parameters.get('code');
  if (code === undefined) throw new ClientError('login.failed', 'the browser returned without a code: repeat the login');
  return redeem(attempt, { code, redirect_uri: redirectUri });
}

async function byCode(attempt: Attempt): Promise<string> {
  const { ports, signal } = attempt;
  if (ports.ask === undefined) {
    throw new ClientError(
      'login.failed',
      'there is neither a browser nor a terminal here: programs that run without a person use TALLY_API_KEY_FILE',
    );
  }
  ports.say(`Open this address in a browser, and paste the code that it shows:\n${addressOf(attempt, { no_browser: 'true' })}`);
  const code = await firstOf([ports.ask('Code: ')], signal);
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
  throw new ClientError(
    'login.failed',
    'the registry refused the code: it is wrong, was used already, or is older than 60 s; repeat the login',
  );
}

async function emailOf({ registry_url: registry, token }: StoredSession, signal: AbortSignal): Promise<string> {
  const address = new URL('/v1/session', registry);
  const { user } = callerOf(await send(address, { method: 'GET', token }, signal), address);
  if (user === undefined) throw new ClientError('login.failed', `${address.href} does not name the person who has logged in`);
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
async function failureOf(opening: Promise<boolean>): Promise<undefined> {
  const isOpened = await opening;
  if (isOpened) await new Promise<never>(() => undefined);
  return undefined;
}

/** The first of them that ends, within the time of a login. */
async function firstOf<Result>(works: readonly Promise<Result>[], signal: AbortSignal): Promise<Result> {
  const ended = Promise.withResolvers<never>();
  const late = AbortSignal.timeout(LOGIN_TIMEOUT_MS);
  const end = (): void => ended.reject(new ClientError('login.failed', 'the login was not finished in time: repeat the login'));
  const abort = (): void => ended.reject(signal.reason);
  late.addEventListener('abort', end, { once: true });
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  try {
    return await Promise.race([...works, ended.promise]);
  } finally {
    late.removeEventListener('abort', end);
    signal.removeEventListener('abort', abort);
  }
}
