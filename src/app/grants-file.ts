/** Reads TALLY_GRANTS_FILE. */
import { readFile, stat } from 'node:fs/promises';
import { parseDocument } from 'yaml';
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
  const document = parseDocument(await readText(path), { uniqueKeys: true });
  const [mistake] = document.errors;
  if (mistake !== undefined) throw new GrantsFileError(path, `is not YAML: ${mistake.message.split('\n')[0] ?? ''}`);
  // one name for many entries would let a short file become a long list
  const parsed = fileSchema.safeParse(document.toJS({ maxAliasCount: 0 }));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const [index, field] = issue?.path ?? [];
  const at = typeof index === 'number' ? `entry ${index + 1}${typeof field === 'string' ? `, ${field}:` : ''} ` : '';
  throw new GrantsFileError(path, at === '' ? (issue?.message ?? 'is not understood') : `is not understood: ${at}${issue?.message ?? ''}`);
}

async function readText(path: string): Promise<string> {
  try {
    if ((await stat(path)).size > POLICY_BYTES_MAX) {
      throw new GrantsFileError(path, `has more than ${POLICY_BYTES_MAX / 1024 / 1024} MiB`);
    }
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof GrantsFileError) throw error;
    throw new GrantsFileError(path, `cannot be read (${faultOf(error).reason})`);
  }
}
