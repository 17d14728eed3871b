/** The list of components of what is published (CycloneDX): of all packages of a checkout those of which it contains something. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { z } from 'zod';
import packageJson from '../../package.json' with { type: 'json' };
import type { PackageName } from './notices.ts';

const bomSchema = z.looseObject({
  metadata: z.looseObject({ component: z.looseObject({ 'bom-ref': z.string() }) }),
  components: z.array(z.looseObject({ 'bom-ref': z.string(), name: z.string(), version: z.string() })),
  dependencies: z.array(z.object({ ref: z.string(), dependsOn: z.array(z.string()) })),
});

const NPM = ['sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'application', '--package-lock-only'];
/** Of all packages of a checkout, half a megabyte. */
const TEXT_BYTES_MAX = 64 * 1024 * 1024;

/** The list for these packages. Throws if one of them is not in package-lock.json of the root. */
export async function sbomOf(contained: readonly PackageName[], root: string): Promise<string> {
  const { stdout } = await promisify(execFile)('npm', NPM, { cwd: root, maxBuffer: TEXT_BYTES_MAX });
  const all = bomSchema.parse(JSON.parse(stdout));
  const named = new Set(contained.map(textOf));
  const components = all.components.filter((component) => named.has(textOf(component)));
  const found = new Set(components.map(textOf));
  const missing = [...named].filter((name) => !found.has(name));
  if (missing.length > 0) throw new Error(`npm sbom does not list ${missing.join(', ')}`);
  const { component } = all.metadata;
  const refs = new Set([component, ...components].map((each) => each['bom-ref']));
  const dependencies = all.dependencies
    .filter(({ ref }) => refs.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((each) => refs.has(each)) }));
  // npm names what is private after its folder
  const metadata = { ...all.metadata, component: { ...component, name: packageJson.name } };
  return `${JSON.stringify({ ...all, metadata, components, dependencies }, undefined, 2)}\n`;
}

function textOf({ name, version }: PackageName): string {
  return `${name}@${version}`;
}
