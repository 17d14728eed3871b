/**
 * Builds the panel with esbuild: one page, one script, one style sheet. `node src/panel/build.ts` writes them to dist/panel;
 * a server that runs from its sources builds them in memory.
 */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, stop } from 'esbuild';
import { facts } from './facts.ts';

const BROWSER = fileURLToPath(new URL('browser/', import.meta.url));
export const BUILT = fileURLToPath(new URL('../../dist/panel/', import.meta.url));

/** The licences of the script's packages, which contain no notice that a bundler would keep. */
const LICENSES =
  '/*! Contains Preact, Copyright (c) 2015-present Jason Miller; TanStack Query, Copyright (c) 2021-present Tanner Linsley (all licensed under MIT) */';

/** Five tally marks. */
const ICON =
  "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><rect width='16' height='16' rx='3' fill='%232a55d5'/><path d='M4 4v8M6.7 4v8M9.3 4v8M12 4v8M2.5 10.5l11-5' stroke='white' stroke-width='1.2'/></svg>";

interface PageFiles {
  readonly script: string;
  /** What the script needs to begin. Browsers load it at the same time. */
  readonly parts: readonly string[];
  readonly style: string;
}

/** Relative addresses, so that the page works behind any path prefix of a proxy. */
function pageOf({ script, parts, style }: PageFiles): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>Tally</title>
<link rel="icon" href="${ICON}">
<link rel="stylesheet" href="${style}">
${parts.map((part) => `<link rel="modulepreload" href="${part}">`).join('\n')}
</head>
<body>
<noscript><p>This page needs JavaScript.</p></noscript>
<div id="panel"></div>
<script type="module" src="${script}"></script>
</body>
</html>
`;
}

/** Resolves to the panel's files by name. The names of script and style contain a hash of their content. */
export async function buildPanel(): Promise<ReadonlyMap<string, Uint8Array>> {
  const { outputFiles, metafile } = await build({
    entryPoints: { panel: join(BROWSER, 'main.tsx'), style: join(BROWSER, 'style.css') },
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    // a page's script loads when the page is shown
    splitting: true,
    metafile: true,
    outdir: BUILT,
    tsconfig: join(BROWSER, 'tsconfig.json'),
    define: { TALLY_FACTS: JSON.stringify(facts) },
    format: 'esm',
    target: 'es2024',
    bundle: true,
    minify: true,
    write: false,
    banner: { js: LICENSES },
    logLevel: 'silent',
  });
  // esbuild is a process, which would otherwise wait for the next build
  await stop();
  const outputs = Object.fromEntries(Object.entries(metafile.outputs).map(([path, output]) => [basename(path), output]));
  const files = new Map(outputFiles.map(({ path, contents }) => [basename(path), contents]));
  const entry = (name: string): string => [...files.keys()].find((file) => file.startsWith(`${name}-`)) ?? '';
  const script = entry('panel');
  const parts = (outputs[script]?.imports ?? []).filter(({ kind }) => kind === 'import-statement').map(({ path }) => basename(path));
  files.set('index.html', new TextEncoder().encode(pageOf({ script, parts, style: entry('style') })));
  return files;
}

/** Empties the folder, and writes the files into it. */
export async function writePanel(folder: string): Promise<void> {
  const files = await buildPanel();
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  for (const [name, bytes] of files) await writeFile(join(folder, name), bytes);
}

if (import.meta.main) await writePanel(BUILT);
