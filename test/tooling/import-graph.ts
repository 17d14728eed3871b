/** The import graph of src as it is written: every static and dynamic import of a relative path, types included. */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

/** One import: paths from the repository's root. */
export interface Import {
  readonly from: string;
  readonly to: string;
}

const RELATIVE_IMPORT = /(?:\bfrom|\bimport\(|^import)\s*'(\.[^']+)'/gm;

/** The imports that one source file holds. */
export function importsOf(file: string, source: string): readonly Import[] {
  return [...source.matchAll(RELATIVE_IMPORT)].map(([, path = '']) => ({ from: file, to: normalize(join(dirname(file), path)) }));
}

/** All imports between files of src. */
export function importsOfSource(): readonly Import[] {
  return globSync('src/**/*.{ts,tsx}')
    .flatMap((file) => importsOf(file, readFileSync(file, 'utf8')))
    .filter(({ to }) => to.startsWith('src/'));
}

/** The circles among rooms: for each, the rooms in the order in which they import each other. */
export function circlesOf(imports: readonly Import[], roomOf: (file: string) => string): readonly (readonly string[])[] {
  const arrows = new Map<string, Set<string>>();
  for (const { from, to } of imports) {
    if (roomOf(from) === roomOf(to)) continue;
    arrows.set(roomOf(from), (arrows.get(roomOf(from)) ?? new Set()).add(roomOf(to)));
  }
  const circles: (readonly string[])[] = [];
  const done = new Set<string>();
  function visit(room: string, path: readonly string[]): void {
    const start = path.indexOf(room);
    if (start >= 0) return void circles.push(path.slice(start));
    if (done.has(room)) return;
    for (const next of arrows.get(room) ?? []) visit(next, [...path, room]);
    done.add(room);
  }
  for (const room of arrows.keys()) visit(room, []);
  return circles;
}
