/** Where the panel's files come from: the build that the package and the image bring, or the sources. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { RequestError } from '../base/request-error.ts';
import type { LoadFiles } from '../registry/panel.ts';

const BUILT = fileURLToPath(new URL('../../dist/panel/', import.meta.url));

/** Resolves to the panel's files by name. Throws `panel.not-built` where there is no build, and nothing to build it with. */
export const loadPanel: LoadFiles = async () => (await readBuilt()) ?? (await buildInMemory());

async function readBuilt(): Promise<ReadonlyMap<string, Uint8Array> | undefined> {
  try {
    const names = await readdir(BUILT);
    const files = names.map(async (name) => [name, new Uint8Array(await readFile(join(BUILT, name)))] as const);
    return names.length === 0 ? undefined : new Map(await Promise.all(files));
  } catch (error) {
    if (isOfCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** What builds the files is a dependency for development, so it is imported only where there is no build. */
async function buildInMemory(): Promise<ReadonlyMap<string, Uint8Array>> {
  try {
    return await (await import('../panel/build.ts')).buildPanel();
  } catch (error) {
    if (!isOfCode(error, 'ERR_MODULE_NOT_FOUND')) throw error;
    throw new RequestError(
      'panel.not-built',
      "the panel is not built, and esbuild is not installed: run `npm ci && npm run panel` in Tally's folder, or use the package or the image, which include it",
    );
  }
}

function isOfCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
