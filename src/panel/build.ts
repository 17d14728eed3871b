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

/** Preact's sources have no notice that a bundler would keep, as the style sheet of Pico has. */
const PREACT_LICENSE =
  '/*! Contains Preact, Copyright (c) 2015-present Jason Miller, licensed under MIT: https://github.com/preactjs/preact/blob/main/LICENSE */';

/** Relative addresses, so that the page works behind any prefix of a proxy. */
function pageOf(script: string, style: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>Tally</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${style}">
</head>
<body>
<noscript><p>This page needs JavaScript.</p></noscript>
<div id="panel"></div>
<script type="module" src="${script}"></script>
</body>
</html>
`;
}

/** Resolves to the files of the panel by name. The names of script and style contain a hash of what is in them. */
export async function buildPanel(): Promise<ReadonlyMap<string, Uint8Array>> {
  const { outputFiles } = await build({
    entryPoints: { panel: join(BROWSER, 'main.tsx'), style: join(BROWSER, 'style.css') },
    entryNames: '[name]-[hash]',
    outdir: BUILT,
    tsconfig: join(BROWSER, 'tsconfig.json'),
    define: { TALLY_FACTS: JSON.stringify(facts) },
    format: 'esm',
    target: 'es2024',
    bundle: true,
    minify: true,
    write: false,
    banner: { js: PREACT_LICENSE },
    logLevel: 'silent',
  });
  // esbuild is a process, which would otherwise wait for a next build
  await stop();
  const files = new Map(outputFiles.map(({ path, contents }) => [basename(path), contents]));
  const named = (end: string): string => [...files.keys()].find((name) => name.endsWith(end)) ?? '';
  files.set('index.html', new TextEncoder().encode(pageOf(named('.js'), named('.css'))));
  return files;
}

/** Writes the files into a folder, which is emptied before. */
export async function writePanel(folder: string): Promise<void> {
  const files = await buildPanel();
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  for (const [name, bytes] of files) await writeFile(join(folder, name), bytes);
}

if (import.meta.main) await writePanel(BUILT);
