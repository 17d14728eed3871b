/**
 * Builds what is published. `node config/tooling/package.ts FOLDER` writes the package, and packs it beside the folder; with
 * `--program` it writes only what the image contains of it. The program is one bundle with everything that it needs, which starts in half of the time of its
 * sources; a checkout runs from its sources without a build.
 */
import { execFileSync } from 'node:child_process';
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, stop, type Metafile } from 'esbuild';
import packageJson from '../../package.json' with { type: 'json' };
import { writePanel } from '../../src/panel/build.ts';
import { noticesOf, packageIn } from './notices.ts';
import { sbomOf } from './sbom.ts';

/** Two folders below the package, as the sources that look for the panel are two below a checkout. */
const PROGRAM = 'dist/program';
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** Beside the program: what its messages and pages refer to. */
const FILES = ['README.md', 'CHANGELOG.md', 'compose.yaml', 'clients/python/README.md', 'docs', 'config'];

/** What the panel contains. */
const PANEL_PACKAGES = ['@tanstack/query-core', 'preact'].map((name) => `node_modules/${name}`);

/** Libraries that are not modules of ECMAScript call `require`, which a module does not have. */
const REQUIRE = "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);";

/** Writes the package into the folder, which is emptied before. */
export async function writePackage(folder: string): Promise<void> {
  await writeProgram(folder);
  const isOfUsers = (path: string): boolean => path !== join(ROOT, 'config/tooling') && path !== join(ROOT, 'config/oxfmt.ignore');
  for (const name of FILES) await cp(join(ROOT, name), join(folder, name), { recursive: true, filter: isOfUsers });
}

/** Writes the program, the panel, the manifest, the notices and the list of components into the folder, which is emptied before. */
export async function writeProgram(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const { metafile } = await build({
    absWorkingDir: ROOT,
    // the thread that searches a SQLite index is started by its file's name, beside the chunks
    entryPoints: { tally: 'src/tally.js', 'sqlite-reader': 'src/store/sqlite/reader.ts' },
    outdir: join(folder, PROGRAM),
    bundle: true,
    // what one command needs is not loaded by another one
    splitting: true,
    format: 'esm',
    platform: 'node',
    // an import of a part of a CommonJS module, which is not loaded before it is needed, would find no names
    mainFields: ['module', 'main'],
    target: `node${needed()}`,
    // its settings are of types, and extend packages that the image's build lacks
    tsconfigRaw: {},
    // names in stack traces, of errors, and of commands, which name the permissions they need (src/connect/aws/ask.ts)
    keepNames: true,
    minifySyntax: true,
    minifyWhitespace: true,
    banner: { js: REQUIRE },
    // it builds the panel from its sources, which a package does not have
    external: ['esbuild'],
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
  });
  await stop();
  await writePanel(join(folder, 'dist/panel'));
  await cp(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
  const packages = [...packagesIn(metafile), ...PANEL_PACKAGES].toSorted();
  await writeFile(join(folder, 'THIRD-PARTY-NOTICES.txt'), await noticesOf(packages, ROOT));
  const names = await Promise.all(packages.map((each) => packageIn(join(ROOT, each))));
  await writeFile(join(folder, 'sbom.cdx.json'), await sbomOf(names, ROOT));
  await writeFile(join(folder, 'package.json'), `${JSON.stringify(manifest(), null, 2)}\n`);
}

/** The lowest version of Node that package.json permits. */
function needed(): string {
  return packageJson.engines.node.replace('>=', '');
}

/** The manifest of what is published: it has no dependencies, because the bundle contains them. */
function manifest(): object {
  const { name, version, description, keywords, homepage, repository, license, type, engines } = packageJson;
  // npm keeps a package with a scope private otherwise
  const publishConfig = { access: 'public' };
  const bin = { tally: `${PROGRAM}/tally.js` };
  return { name, version, description, keywords, homepage, repository, license, type, engines, bin, publishConfig };
}

/** The folders of the packages of which the bundle contains something. */
function packagesIn({ inputs }: Metafile): readonly string[] {
  const folders = Object.keys(inputs).flatMap((path) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []);
  return [...new Set(folders)].toSorted();
}

if (import.meta.main) {
  const [folder = join(ROOT, 'dist/package')] = process.argv.slice(2).filter((each) => each !== '--program');
  if (process.argv.includes('--program')) await writeProgram(folder);
  else {
    await writePackage(folder);
    const archive = `./${relative('.', packed(folder))}`;
    console.log(
      `The package is ${archive}. Install it where Node ${needed()} or later runs:\n\n  npm install --global ${JSON.stringify(archive)}\n`,
    );
  }
}

/** Packs the folder, and returns the archive beside it. */
function packed(folder: string): string {
  const options = ['pack', folder, '--pack-destination', dirname(folder), '--silent'];
  return join(dirname(folder), execFileSync('npm', options, { encoding: 'utf8' }).trim());
}
