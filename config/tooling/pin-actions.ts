/**
 * Pins every action of the workflows to the commit of its newest release: a tag can be moved, a commit cannot.
 * `node config/tooling/pin-actions.ts` asks GitHub, and changes the files. Read what changed in an action before you commit.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const WORKFLOWS = fileURLToPath(new URL('../../.github/workflows/', import.meta.url));

/** `uses: owner/name@commit # v1.2.3`; an action may be a folder of its repository. */
const USES = /(?<=\buses: )(?<repository>[\w-]+\/[\w.-]+)(?<path>(?:\/[\w.-]+)*)@\S+(?: # v\S+)?/g;
const TAG = /^(?<commit>[0-9a-f]{40})\trefs\/tags\/v(?<version>\d+\.\d+\.\d+)(?<peeled>\^\{\})?$/gm;

/** The workflow with its actions pinned. `tagsOf`: what `git ls-remote --tags` prints for a repository. */
function pinned(workflow: string, tagsOf: (repository: string) => string): string {
  return workflow.replaceAll(USES, (_, repository: string, path: string) => {
    const { commit, version } = newest(tagsOf(repository), repository);
    return `${repository}${path}@${commit} # v${version}`;
  });
}

/** The highest release. Of a tag with a message, the commit is what it points at. */
function newest(tags: string, repository: string): { readonly commit: string; readonly version: string } {
  const commits = new Map<string, string>();
  for (const { groups } of tags.matchAll(TAG)) {
    const { commit = '', version = '', peeled } = groups ?? {};
    if (peeled !== undefined || !commits.has(version)) commits.set(version, commit);
  }
  const version = [...commits.keys()].toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true })).at(-1);
  if (version === undefined) throw new Error(`${repository} has no tag of a release`);
  return { commit: commits.get(version)!, version };
}

if (import.meta.main) {
  const asked = new Map<string, string>();
  const tagsOf = (repository: string): string => {
    const known = asked.get(repository);
    if (known !== undefined) return known;
    const tags = execFileSync('git', ['ls-remote', '--tags', `https://github.com/${repository}.git`], { encoding: 'utf8' });
    asked.set(repository, tags);
    return tags;
  };
  for (const name of readdirSync(WORKFLOWS)) {
    const path = join(WORKFLOWS, name);
    writeFileSync(path, pinned(readFileSync(path, 'utf8'), tagsOf));
  }
}
