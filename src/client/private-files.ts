/**
 * Files that only their owner can read: a folder with the mode 0700 and files with the mode 0600, on systems that have modes.
 * A file is replaced as a whole (written beside it, then renamed), so that another process reads the old or the new one.
 */
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
import { ClientError } from './client-error.ts';

// Windows lacks the last two: they count as 0 there
const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants;
const HAS_MODES = process.platform !== 'win32';
/** Our files have a few hundred bytes. */
const SIZE_MAX_BYTES = 64 * 1_024;
/** Bits of a mode that files with credentials must not have. */
const OPEN_TO_OTHERS = 0o077;
const WRITABLE_BY_OTHERS = 0o022;

export interface ReadHow {
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
export function createPrivateFiles(folder: string | undefined): PrivateFiles {
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
