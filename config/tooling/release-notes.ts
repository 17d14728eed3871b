/** Prints the notes of a release: its section of CHANGELOG.md. `node config/tooling/release-notes.ts 1.67.0` */
import { readFileSync } from 'node:fs';
import packageJson from '../../package.json' with { type: 'json' };

/** The section of a version without its heading. Throws unless the changelog gives the version a date: `## 1.67.0 — 2026-12-01`. */
export function releaseNotes(changelog: string, version: string): string {
  const [, ...sections] = changelog.split(/^## /m);
  const section = sections.find((each) => each.startsWith(`${version} — `));
  if (section === undefined) throw new Error(`CHANGELOG.md has no section "## ${version} — DATE"`);
  const [heading = '', ...lines] = section.split('\n');
  if (!/ — \d{4}-\d{2}-\d{2}$/.test(heading)) throw new Error(`CHANGELOG.md gives ${version} no date: "## ${heading}"`);
  return `${lines.join('\n').trim()}\n`;
}

if (import.meta.main) {
  const [version = ''] = process.argv.slice(2);
  if (version !== packageJson.version) throw new Error(`the version of package.json is ${packageJson.version}, not ${version}`);
  process.stdout.write(releaseNotes(readFileSync(new URL('../../CHANGELOG.md', import.meta.url), 'utf8'), version));
}
