/**
 * One user's stored files on this machine: addresses, an interactive login, an API key. The Python SDK reads and writes the same files,
 * so their form is a contract.
 */
import { z } from 'zod';
import { jsonOf } from '../../base/json.ts';
import { catalogAddress, registryOrigin } from './addresses.ts';
import { CommandError } from '../errors.ts';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync, type Stats } from 'node:fs';
import { join } from 'node:path';

const CONFIG = 'config.json';
const CREDENTIALS = 'credentials.json';

/** Raised with any change that earlier versions would misread. */
const FORMAT = 1;

const catalog = z.string().transform(catalogAddress);
const registry = z.string().transform((text) => registryOrigin(text));
const config = z.object({ catalog_url: catalog, registry_url: registry });
export type Config = z.infer<typeof config>;

const session = z.object({
  registry_url: registry,
  catalog_url: catalog,
  token: z.string(),
  /** The latest end of the session by this machine's clock, in seconds since 1970. */
  expires_at: z.number(),
});
export type StoredSession = z.infer<typeof session>;

const credentials = z.object({
  session: session.optional(),
  api_key: z.object({ registry_url: registry, catalog_url: catalog, secret: z.string() }).optional(),
});
type StoredCredentials = z.infer<typeof credentials>;

/** What the folder contains; undefined for a user without a home. Each function throws `credentials.unusable`, with advice, for files that cannot be trusted, read or written. */
export function createStore(folder: string | undefined) {
  function read<Schema extends z.ZodType>(name: string, schema: Schema, forbidden = OPEN_TO_OTHERS): z.output<Schema> | undefined {
    const text = folder === undefined ? undefined : readPrivate(folder, name, forbidden);
    if (text === undefined) return undefined;
    const json = jsonOf(text);
    if (typeof json === 'object' && json !== null && 'format' in json && json.format !== FORMAT)
      throw unusable(`${name} was written by another version of Tally: upgrade this one, or remove the file and log in again`);
    try {
      return schema.parse(json);
    } catch {
      // an address that may not be used is a mistake in the file too
      throw unusable(`${name} is damaged: remove it and log in again`);
    }
  }

  function change(what: string, work: (place: string) => void): void {
    if (folder === undefined) throw unusable('this user has no home folder in which Tally could store credentials');
    try {
      work(folder);
    } catch (error) {
      if (error instanceof CommandError) throw error;
      throw unusable(`${what} (${codeOf(error)}): check the folder ${folder}`);
    }
  }

  const write = (name: string, values: object): void =>
    change(`${name} cannot be written`, (place) =>
      writePrivate(place, name, `${JSON.stringify({ format: FORMAT, ...values }, undefined, 2)}\n`),
    );

  return {
    /** Undefined before the first login. */
    readConfig: () => read(CONFIG, config),
    writeConfig: (values: Config) => write(CONFIG, values),
    /** `isOpenAllowed`: even from files that others can read, in order to end the session in them. */
    readCredentials: ({ isOpenAllowed = false } = {}): StoredCredentials =>
      read(CREDENTIALS, credentials, isOpenAllowed ? WRITABLE_BY_OTHERS : OPEN_TO_OTHERS) ?? {},
    writeCredentials: (values: StoredCredentials) => write(CREDENTIALS, values),
    /** Removes all credentials without reading them, including what killed processes left. */
    removeCredentials(): void {
      if (folder === undefined || statSync(folder, { throwIfNoEntry: false }) === undefined) return;
      change(`${CREDENTIALS} cannot be removed`, (place) => {
        const left = readdirSync(place).filter((each) => each.startsWith(`.${CREDENTIALS}.`));
        for (const each of [CREDENTIALS, ...left]) rmSync(join(place, each), { force: true });
      });
    },
  };
}

const unusable = (message: string): CommandError => new CommandError('credentials.unusable', message);

/** The folder of all Tally clients; undefined for a user without a home. */
export function clientFolder(env: Readonly<Record<string, string | undefined>>, home: string): string | undefined {
  const base = env[HAS_MODES ? 'XDG_CONFIG_HOME' : 'APPDATA'] ?? '';
  if (isAbsolute(base)) return join(base, 'tally');
  return isAbsolute(home) ? join(home, '.config', 'tally') : undefined;
}

const isAbsolute = (path: string): boolean => (HAS_MODES ? path.startsWith('/') : /^[a-z]:\\/i.test(path));

/**
 * Files that only their owner can read: a folder with the mode 0700 and files with the mode 0600, on systems that have modes.
 * A file is replaced as a whole (written beside it, then renamed), so that another process reads the old or the new one.
 */

const HAS_MODES = process.platform !== 'win32';
/** Mode bits that credential files must not have. */
const OPEN_TO_OTHERS = 0o077;
const WRITABLE_BY_OTHERS = 0o022;

function writePrivate(folder: string, name: string, text: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  check(statSync(folder), folder);
  const beside = join(folder, `.${name}.${process.pid}.${randomBytes(8).toString('hex')}`);
  try {
    writeFileSync(beside, text, { flag: 'wx', mode: 0o600, flush: true });
    renameSync(beside, join(folder, name));
  } catch (error) {
    rmSync(beside, { force: true });
    throw error;
  }
}

/** A file's content; undefined if it doesn't exist. `forbidden`: the bits that neither its mode nor its folder's may have. */
function readPrivate(folder: string, name: string, forbidden: number): string | undefined {
  const path = join(folder, name);
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found === undefined) return undefined;
    check(statSync(folder), folder, forbidden);
    check(found, path, forbidden);
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw error instanceof CommandError ? error : unusable(`${path} cannot be read (${codeOf(error)}): remove it and log in again`);
  }
}

function check(found: Stats, path: string, forbidden = OPEN_TO_OTHERS): void {
  const isFolder = found.isDirectory();
  if (!isFolder && !found.isFile()) throw unusable(`${path} is not a file: remove it and log in again`);
  if (!HAS_MODES) return;
  if (found.uid !== process.geteuid?.()) {
    throw unusable(`${path} belongs to another user, who can read or replace it: remove it and log in again`);
  }
  if ((found.mode & forbidden) !== 0) {
    const mode = isFolder ? '700' : '600';
    throw unusable(`${path} is open to other users: revoke what it contains if they may have read it, then chmod ${mode} ${path}`);
  }
}

/** A file system error's code, such as ENOENT. */
function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}
