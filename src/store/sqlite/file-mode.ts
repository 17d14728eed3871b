import { statSync } from 'node:fs';

/** The permissions of the group and of others. */
const NOT_THE_OWNER = 0o077;

/** Whether users other than its owner may read or write the file. False if it does not exist. */
export function isOpenToOthers(path: string): boolean {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
  return (mode & NOT_THE_OWNER) !== 0;
}
