import { statSync } from 'node:fs';
import { FaultError } from '../../domain/fault.ts';

/** The files of an open database, by what the file system calls them. */
export interface OpenFiles {
  /** Another where the path has another file, such as a copy that was put back. */
  readonly id: string;
  /** The path that no longer leads to the file that it led to when the database was opened; undefined if none moved. Two calls of stat: some 4 µs. */
  moved(): string | undefined;
}

interface Identity {
  readonly dev: number;
  readonly ino: number;
}

/**
 * Notes the database file at `path`, before it is opened. `reopened()` is to be called once it is open: it notes the log
 * too, and throws `index.replaced` if the file was replaced meanwhile, since then it is unknown which of both is open.
 */
export function filesAt(path: string): Pick<OpenFiles, 'id'> & { reopened(): OpenFiles } {
  const before = identityOf(path);
  const logPath = `${path}-wal`;
  return {
    id: idOf(before),
    reopened() {
      const file = identityOf(path);
      if (!isSame(before, file)) throw new FaultError('index.replaced', `${path} was replaced while this process opened it`);
      const log = identityOf(logPath);
      return {
        id: idOf(file),
        moved() {
          if (!isSame(file, identityOf(path))) return path;
          return isSame(log, identityOf(logPath)) ? undefined : logPath;
        },
      };
    },
  };
}

function idOf(file: Identity | undefined): string {
  return String(file?.ino ?? 0);
}

function identityOf(path: string): Identity | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

function isSame(one: Identity | undefined, other: Identity | undefined): boolean {
  return one?.ino === other?.ino && one?.dev === other?.dev;
}
