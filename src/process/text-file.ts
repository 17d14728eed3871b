import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';

/** Returns the text of a file; undefined if it is longer than `bytesMax`. Throws the error of the file system. */
export function readTextFile(path: string, bytesMax: number): string | undefined {
  const file = openSync(path, 'r');
  try {
    return fstatSync(file).size > bytesMax ? undefined : readFileSync(file, 'utf8');
  } finally {
    closeSync(file);
  }
}
