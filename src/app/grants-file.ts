/** Reads TALLY_GRANTS_FILE. */
import { readFile, stat } from 'node:fs/promises';
import { z } from 'zod';
import { grantLine, type FileGrant } from '../domain/access/grant.ts';
import { GRANTS_MAX, POLICY_BYTES_MAX } from '../domain/access/policy.ts';
import { faultOf } from '../domain/fault.ts';

const fileSchema = z
  .array(grantLine, 'must be a list of entries with who and where; write [] for no grants')
  .max(GRANTS_MAX, `has more than ${GRANTS_MAX} entries`);

/** The file cannot be used. The message names it, and what to do. */
export class GrantsFileError extends Error {
  constructor(path: string, mistake: string) {
    super(`TALLY_GRANTS_FILE: ${path} ${mistake}. Correct the file, and start again; until then the grants stay as they were.`);
    this.name = 'GrantsFileError';
  }
}

/** Resolves with the entries of the file. Throws {@link GrantsFileError}; one mistake in it refuses all of it. */
export async function readGrantsFile(path: string): Promise<readonly FileGrant[]> {
  const parsed = fileSchema.safeParse(await valueOf(await readText(path), path));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new GrantsFileError(path, `is not understood: ${placeOf(issue?.path ?? [])}${issue?.message ?? ''}`);
}

/** Where in the file a mistake is. */
function placeOf([index, field]: readonly PropertyKey[]): string {
  if (typeof index !== 'number') return '';
  return `entry ${index + 1}${typeof field === 'string' ? `, ${field}` : ''}: `;
}

async function valueOf(text: string, path: string): Promise<unknown> {
  // few registries have this file
  const { parseDocument } = await import('yaml');
  try {
    const document = parseDocument(text, { uniqueKeys: true });
    // a tag that is not known, say, would be a warning only
    const [mistake] = [...document.errors, ...document.warnings];
    if (mistake !== undefined) throw mistake;
    // one name for many entries would let a short file become a long list
    return document.toJS({ maxAliasCount: 0 });
  } catch (error) {
    throw new GrantsFileError(
      path,
      `is not YAML (${faultOf(error).reason.split('\n')[0] ?? ''}; a text that begins with * must be in quotes)`,
    );
  }
}

async function readText(path: string): Promise<string> {
  try {
    if ((await stat(path)).size > POLICY_BYTES_MAX) {
      throw new GrantsFileError(path, `has more than ${POLICY_BYTES_MAX / 1024 / 1024} MiB`);
    }
    // without the byte order mark that an editor may have put before it
    return new TextDecoder('utf-8', { fatal: true }).decode(await readFile(path));
  } catch (error) {
    if (error instanceof GrantsFileError) throw error;
    throw new GrantsFileError(path, `cannot be read (${faultOf(error).reason})`);
  }
}
