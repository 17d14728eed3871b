/**
 * Renders the pages of docs/ as static HTML without scripts, with one style sheet for light and dark. `node src/docs/build.ts FOLDER`
 * writes them; a registry that runs from its sources renders them in memory. Pages for maintainers (docs/internals) are left out.
 */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { renderPage, titleOf, type Page } from './render.ts';

const DOCS = fileURLToPath(new URL('../../docs/', import.meta.url));
const STYLE = fileURLToPath(new URL('style.css', import.meta.url));
const INTERNALS = 'internals';

/** Resolves to the files by their paths below /docs/: pages, pictures and the style sheet. */
export async function buildDocs(folder: string = DOCS): Promise<ReadonlyMap<string, Uint8Array>> {
  const paths = await readdir(folder, { recursive: true, encoding: 'utf8' });
  const served = paths
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => extname(path) !== '' && !path.startsWith(`${INTERNALS}/`));
  const files = new Map<string, Uint8Array>();
  const pages: Page[] = [];
  for (const path of served.toSorted()) {
    const bytes = await readFile(join(folder, path));
    if (!path.endsWith('.md')) files.set(path, new Uint8Array(bytes));
    else pages.push({ path, markdown: bytes.toString('utf8'), title: titleOf(bytes.toString('utf8')) });
  }
  const encoder = new TextEncoder();
  for (const page of pages) files.set(page.path.replace(/\.md$/, '.html'), encoder.encode(renderPage(page, pages, files)));
  files.set('style.css', new Uint8Array(await readFile(STYLE)));
  return files;
}

/** Writes the files into a folder, which is emptied before. */
export async function writeDocs(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  for (const [name, bytes] of await buildDocs()) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), bytes);
  }
}

if (import.meta.main) await writeDocs(process.argv[2] ?? fileURLToPath(new URL('../../dist/docs/', import.meta.url)));
