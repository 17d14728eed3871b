/** The command line's logins, and the credential that its requests carry. */
import { FaultError } from '../../base/fault.ts';
import { registryOrigin, catalogAddress } from './addresses.ts';
import { keyToken, type Registry } from './registry.ts';
import { CommandError } from '../errors.ts';
import { logIn, type LoginPorts } from './login.ts';
import { send, endSession } from './send.ts';
import { createStore, type Config, type StoredSession } from './store.ts';
import { z } from 'zod';
import { documentRows } from '../../registry/contract/service.ts';
import { printable } from '../../base/texts.ts';

/** What the environment and a command's options say. */
interface Given {
  readonly registryUrl?: string | undefined;
  readonly apiKey?: string | undefined;
  /** Where to find a registry on this machine. */
  readonly local: {
    /** Its Unix sockets, nearest first. */
    readonly sockets: readonly string[];
    readonly url: string;
  };
}

interface ClientDependencies {
  /** Where the credentials are stored; undefined for a user without a home. */
  readonly folder: string | undefined;
  /** Whether a process listens at the Unix socket. Default: none does. */
  readonly isAnswered?: (socket: string) => Promise<boolean>;
}

export type Client = ReturnType<typeof createClient>;

export function createClient({ folder, isAnswered = async () => false }: ClientDependencies) {
  const store = createStore(folder);

  /** The stored credential for this registry, or for any. An API key takes precedence over a login. */
  function stored(url?: string): Registry | undefined {
    const { session, api_key: key } = store.readCredentials();
    const isFor = (found: { readonly registry_url: string }): boolean => url === undefined || found.registry_url === url;
    if (key !== undefined && isFor(key)) return { url: key.registry_url, token: keyToken(key.secret) };
    // the catalog now names another registry, which needs a new login
    if (url === undefined && session !== undefined && store.readConfig()?.registry_url !== session.registry_url) return undefined;
    return session !== undefined && isFor(session) ? { url: session.registry_url, token: session.token } : undefined;
  }

  async function end(session: StoredSession, signal: AbortSignal): Promise<void> {
    const answer = await endSession(session, signal);
    // 401: the session has already ended
    if (answer.status !== 204 && answer.status !== 401)
      throw new FaultError('registry.unknown-answer', `the registry answered ${answer.status} instead of 204`);
  }

  return {
    /** Logs in at the catalog, by default the last login's, and stores the login. Returns who has logged in, and where. */
    async login(catalogUrl: string | undefined, ports: LoginPorts, signal: AbortSignal): Promise<Config & { readonly email: string }> {
      const known = catalogUrl ?? store.readConfig()?.catalog_url;
      if (known === undefined)
        throw new CommandError('address.invalid', 'this machine knows no catalog yet: run `tally login https://HOST`');
      const config = await fetchConfig(known, signal);
      const keep = (session: StoredSession): void => {
        store.writeConfig(config);
        // a stored API key is no longer used
        store.writeCredentials({ session });
      };
      return { ...config, email: await logIn(config, { ...ports, keep }, signal) };
    },
    /** Removes all stored credentials, and ends the session. Returns why the session may still live at the registry, if so. */
    async logout(signal: AbortSignal): Promise<string | undefined> {
      try {
        // files that others can read are a reason more to end what is in them
        const { session } = store.readCredentials({ isOpenAllowed: true });
        if (session !== undefined) await end(session, signal);
        return undefined;
      } catch (error) {
        return error instanceof Error ? error.message : String(error);
      } finally {
        store.removeCredentials();
      }
    },
    /**
     * Finds the registry: the one that is given, that of the stored credentials, or the one of this machine. The socket of a registry
     * makes its caller the operator, so a request with an API key never goes there.
     */
    async registryOf({ registryUrl, apiKey, local }: Given): Promise<Registry> {
      if (apiKey !== undefined) {
        const url = registryOrigin(registryUrl ?? local.url, 'the registry that receives an API key');
        return { url, token: keyToken(apiKey) };
      }
      const known = stored(registryUrl);
      if (known !== undefined) return known;
      if (registryUrl !== undefined) return { url: registryUrl };
      for (const socket of local.sockets) if (await isAnswered(socket)) return { url: local.url, socket };
      return { url: local.url, tried: [...local.sockets, local.url] };
    },
  };
}

/** The document is static: an answer that takes longer does not come. */
const TIMEOUT_MS = 15_000;
const VERSION_LENGTH_MAX = 100;

/** An earlier version answers no version, or another kind of it. */
const document = documentRows['GET /config.json'].answer.pick({ registryUrl: true }).extend({ version: z.unknown() });

/** Reads which registry the catalog has, without a credential. Throws `platform.too-old` and `address.invalid`. */
async function fetchConfig(catalogUrl: string, signal: AbortSignal): Promise<Config> {
  const catalog = catalogAddress(catalogUrl);
  const address = new URL(`${catalog}/config.json`);
  const answer = await send(address, { method: 'GET', timeoutMs: TIMEOUT_MS }, signal);
  const parsed = document.safeParse(answer.json);
  if (!answer.ok || !parsed.success) {
    throw new FaultError(
      'registry.unknown-answer',
      `${address.href} answered ${answer.status} without a registryUrl: check the address of the catalog`,
    );
  }
  requireVersion(parsed.data.version, catalog);
  return { catalog_url: catalog, registry_url: registryOrigin(parsed.data.registryUrl, `the registryUrl of ${address.href}`) };
}

/** Throws `platform.too-old` below version 1.67. Versions are compared as numbers: 1.100 is later than 1.67. */
export function requireVersion(version: unknown, address: string): void {
  const text = typeof version === 'string' ? version : 'none';
  const [, major = 0, minor = 0] = /^v?(\d{1,9})\.(\d{1,9})(?!\d)/.exec(text) ?? [];
  if (Number(major) > 1 || (Number(major) === 1 && Number(minor) >= 67)) return;
  throw new CommandError(
    'platform.too-old',
    `${address} has version ${printable(text, VERSION_LENGTH_MAX)}: version 1.67 or later is needed; upgrade the registry`,
  );
}
