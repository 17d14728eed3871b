/** The files that settings name. */

/** A file that a setting names. */
interface SettingFile {
  readonly text: string;
  /** The permission bits. */
  readonly mode: number;
}

/** Reads a file. Throws an error with a `code` (ENOENT, EACCES, …) when it cannot be read. */
export type ReadFile = (filePath: string) => SettingFile;

/**
 * The text of a file without its last newline, or why it cannot be used. The mistake never contains the path, because the
 * user may have put the secret itself there. Files that everyone may read are allowed: Kubernetes and Docker mount secrets
 * that way.
 */
export function textOfFile(filePath: string, readFile: ReadFile): { readonly text: string } | { readonly mistake: string } {
  try {
    const { text, mode } = readFile(filePath.trim());
    if ((mode & 0o002) !== 0) return { mistake: 'must name a file that not everyone may write to (chmod o-w)' };
    const value = text.replace(/\r?\n$/, '');
    return value === '' ? { mistake: 'must name a file that is not empty' } : { text: value };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    return { mistake: `must name a file that can be read (${code})` };
  }
}
