/** Where the files of the panel and of the documentation come from: the build that the package and the image bring, or the sources. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { RequestError } from '../domain/request-error.ts';
import type { LoadFiles } from '../http/panel.ts';

const DIST = fileURLToPath(new URL('../../dist/', import.meta.url));

/** Resolves to the files of the panel by name. Throws `panel.not-built` where there is no build, and nothing to build it with. */
const loadPanel: LoadFiles = async () =>
  (await readBuilt('panel')) ??
  (await buildInMemory(
    async () => (await import('../panel/build.ts')).buildPanel(),
    new RequestError(
      'panel.not-built',
      'the panel is not built, and esbuild is not installed: run `npm ci && npm run panel` in the folder of Tally, or use the package or the image, which bring it',
    ),
  ));

/** Resolves to the files of the documentation by their paths. Throws `docs.not-built` where there is no build, and nothing to build it with. */
const loadDocs: LoadFiles = async () =>
  (await readBuilt('docs')) ??
  (await buildInMemory(
    async () => (await import('../docs/build.ts')).buildDocs(),
    new RequestError(
      'docs.not-built',
      'the documentation is not rendered, and markdown-it is not installed: run `npm ci` in the folder of Tally, or use the package or the image, which bring it',
    ),
  ));

/** The files that a registry serves to browsers. */
export const builtFiles = { loadPanel, loadDocs };

async function readBuilt(folder: 'panel' | 'docs'): Promise<ReadonlyMap<string, Uint8Array> | undefined> {
  try {
    const entries = await readdir(join(DIST, folder), { recursive: true, withFileTypes: true });
    const paths = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
    const named = paths.map(
      async (path) => [path.slice(join(DIST, folder).length + 1).replaceAll('\\', '/'), new Uint8Array(await readFile(path))] as const,
    );
    return paths.length === 0 ? undefined : new Map(await Promise.all(named));
  } catch (error) {
    if (isOfCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** What builds the files is a dependency for development, so it is imported only where there is no build. */
async function buildInMemory(build: LoadFiles, missing: RequestError): Promise<ReadonlyMap<string, Uint8Array>> {
  try {
    return await build();
  } catch (error) {
    throw isOfCode(error, 'ERR_MODULE_NOT_FOUND') ? missing : error;
  }
}

function isOfCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
