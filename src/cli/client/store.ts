/**
 * What is stored for one user of this machine: the addresses, an interactive login, an API key. The Python SDK reads and writes
 * the same files, so their form is a contract.
 */
import { z } from 'zod';
import { jsonOf } from '../../base/json.ts';
import { catalogAddress, registryOrigin } from './addresses.ts';
import { ClientError } from './client-error.ts';
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
  type Stats,
} from 'node:fs';
import { join } from 'node:path';

const CONFIG = 'config.json';
const CREDENTIALS = 'credentials.json';

/** Raised by a change that earlier versions would misread. */
const FORMAT = 1;

const catalog = z.string().transform(catalogAddress);
const registry = z.string().transform((text) => registryOrigin(text));
const config = z.object({ catalog_url: catalog, registry_url: registry });
export type Config = z.infer<typeof config>;

const session = z.object({
  registry_url: registry,
  catalog_url: catalog,
  token: z.string(),
  /** When the session ends at the latest, by the clock of this machine, in seconds since 1970. */
  expires_at: z.number(),
});
export type StoredSession = z.infer<typeof session>;

const credentials = z.object({
  session: session.optional(),
  api_key: z.object({ registry_url: registry, catalog_url: catalog, secret: z.string() }).optional(),
});
type StoredCredentials = z.infer<typeof credentials>;

export interface Store {
  /** Undefined before the first login. */
  readConfig(): Config | undefined;
  writeConfig(config: Config): void;
  /** `isOpenAllowed`: also from files that others can read, to end what is in them. */
  readCredentials(how?: ReadHow): StoredCredentials;
  writeCredentials(credentials: StoredCredentials): void;
  /** Removes all credentials without reading them. */
  removeCredentials(): void;
}

/** The store. Each function throws `credentials.unusable`, with what to do, for files that cannot be trusted, read or written. */
export function createStore(folder: string | undefined): Store {
  const files = createPrivateFiles(folder);

  function read<Schema extends z.ZodType>(name: string, schema: Schema, how?: ReadHow): z.output<Schema> | undefined {
    const text = files.read(name, how);
    if (text === undefined) return undefined;
    const json = jsonOf(text);
    if (typeof json === 'object' && json !== null && 'format' in json && json.format !== FORMAT) {
      throw unusable(`${name} was written by another version of Tally: upgrade this one, or remove the file and log in again`);
    }
    const parsed = safely(() => schema.safeParse(json));
    if (parsed?.success !== true) throw unusable(`${name} is not as Tally writes it: remove it and log in again`);
    return parsed.data;
  }

  function change(what: string, work: () => void): void {
    try {
      work();
    } catch (error) {
      if (error instanceof ClientError) throw error;
      throw unusable(`${what} (${codeOf(error)}): check the folder ${folder ?? ''}`);
    }
  }

  const write = (name: string, values: object): void =>
    change(`${name} cannot be written`, () => files.write(name, `${JSON.stringify({ format: FORMAT, ...values }, undefined, 2)}\n`));
  const removeCredentials = (): void => change(`${CREDENTIALS} cannot be removed`, () => files.remove(CREDENTIALS));

  return {
    readConfig: () => read(CONFIG, config),
    writeConfig: (values) => write(CONFIG, values),
    readCredentials: (how) => read(CREDENTIALS, credentials, how) ?? {},
    writeCredentials: (values) => write(CREDENTIALS, values),
    removeCredentials,
  };
}

const unusable = (message: string): ClientError => new ClientError('credentials.unusable', message);

/** An address that may not be used is a mistake of the file as well. */
function safely<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

/**
 * Files that only their owner can read: a folder with the mode 0700 and files with the mode 0600, on systems that have modes.
 * A file is replaced as a whole (written beside it, then renamed), so that another process reads the old or the new one.
 */

// Windows lacks the last two: they count as 0 there
const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants;
const HAS_MODES = process.platform !== 'win32';
/** Our files have a few hundred bytes. */
const SIZE_MAX_BYTES = 64 * 1_024;
/** Bits of a mode that files with credentials must not have. */
const OPEN_TO_OTHERS = 0o077;
const WRITABLE_BY_OTHERS = 0o022;

interface ReadHow {
  readonly isOpenAllowed?: boolean;
}

interface PrivateFiles {
  /**
   * Returns the content of a file; undefined if it is not there. Throws `credentials.unusable` if others can replace it, and
   * unless `isOpenAllowed`, if others can read it.
   */
  read(name: string, how?: ReadHow): string | undefined;
  /** Replaces a file. Throws the error of the file system, and `credentials.unusable` if others can read the folder. */
  write(name: string, text: string): void;
  /** Removes a file, and what killed processes left of it. */
  remove(name: string): void;
}

/** The folder of all clients of Tally; undefined for a user without a home. */
export function clientFolder(env: Readonly<Record<string, string | undefined>>, home: string): string | undefined {
  const base = env[HAS_MODES ? 'XDG_CONFIG_HOME' : 'APPDATA'] ?? '';
  if (isAbsolute(base)) return join(base, 'tally');
  return isAbsolute(home) ? join(home, '.config', 'tally') : undefined;
}

const isAbsolute = (path: string): boolean => (HAS_MODES ? path.startsWith('/') : /^[a-z]:\\/i.test(path));

/** `folder`: an absolute path; undefined for a user without a home. */
function createPrivateFiles(folder: string | undefined): PrivateFiles {
  const place = (): string => {
    if (folder === undefined) throw new ClientError('credentials.unusable', 'this user has no home folder, so nothing can be stored');
    return folder;
  };

  function write(name: string, text: string): void {
    mkdirSync(place(), { recursive: true, mode: 0o700 });
    check(statSync(place()), place());
    const beside = join(place(), `.${name}.${process.pid}.${randomBytes(8).toString('hex')}`);
    try {
      const file = openSync(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
      try {
        writeSync(file, text);
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
      renameSync(beside, join(place(), name));
    } catch (error) {
      rmSync(beside, { force: true });
      throw error;
    }
  }

  return {
    write,
    read: (name, how) => (folder === undefined ? undefined : readPrivate(folder, name, how)),
    remove(name) {
      if (folder === undefined || statSync(folder, { throwIfNoEntry: false }) === undefined) return;
      const left = readdirSync(folder).filter((each) => each.startsWith(`.${name}.`));
      for (const each of [name, ...left]) rmSync(join(folder, each), { force: true });
    },
  };
}

function readPrivate(folder: string, name: string, { isOpenAllowed = false }: ReadHow = {}): string | undefined {
  const forbidden = isOpenAllowed ? WRITABLE_BY_OTHERS : OPEN_TO_OTHERS;
  const path = join(folder, name);
  let file: number;
  try {
    // a link is refused, and a pipe does not block
    file = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw new ClientError('credentials.unusable', `${path} cannot be read (${code}): remove it and log in again`);
  }
  try {
    check(statSync(folder), folder, forbidden);
    check(fstatSync(file), path, forbidden);
    const content = Buffer.alloc(SIZE_MAX_BYTES + 1);
    const sizeBytes = readSync(file, content, 0, content.length, 0);
    if (sizeBytes > SIZE_MAX_BYTES)
      throw new ClientError('credentials.unusable', `${path} is not a file of Tally: remove it and log in again`);
    return content.toString('utf8', 0, sizeBytes);
  } finally {
    closeSync(file);
  }
}

function check(found: Stats, path: string, forbidden = OPEN_TO_OTHERS): void {
  const isFolder = found.isDirectory();
  if (!isFolder && !found.isFile()) throw new ClientError('credentials.unusable', `${path} is not a file: remove it and log in again`);
  if (!HAS_MODES) return;
  if (found.uid !== process.geteuid?.()) {
    throw new ClientError(
      'credentials.unusable',
      `${path} belongs to another user, who can read or replace it: remove it and log in again`,
    );
  }
  if ((found.mode & forbidden) !== 0) {
    const mode = isFolder ? '700' : '600';
    throw new ClientError(
      'credentials.unusable',
      `${path} is open to other users: revoke what it contains if they may have read it, then chmod ${mode} ${path}`,
    );
  }
}

/** Returns the code of an error of the file system: ENOENT. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}
