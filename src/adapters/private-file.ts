/** Files of the command line that only their owner can read. */
import { closeSync, constants, fstatSync, fsyncSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;

/** A file that is being written. */
export interface PrivateFile {
  /** Throws the error of the file system. */
  write(text: string): void;
  /** Closes the file, after all of it is on the disk. Throws the error of the file system. */
  keep(): void;
  /** Closes and removes the file. */
  drop(): void;
}

/** Creates a file with the mode 0600, whatever the umask is. Throws the error of the file system: EEXIST for a path that is taken, also by a link. */
export function createPrivateFile(path: string): PrivateFile {
  const file = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  return {
    write(text) {
      const bytes = Buffer.from(text);
      for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at);
    },
    keep() {
      fsyncSync(file);
      closeSync(file);
    },
    drop() {
      closeSync(file);
      rmSync(path, { force: true });
    },
  };
}

/** Returns the text of a file; undefined if it is longer than `bytesMax`. Throws the error of the file system. */
export function readTextFile(path: string, bytesMax: number): string | undefined {
  const file = openSync(path, 'r');
  try {
    return fstatSync(file).size > bytesMax ? undefined : readFileSync(file, 'utf8');
  } finally {
    closeSync(file);
  }
}
