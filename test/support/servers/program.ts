/** The program under test, started as its users start it. */
import { readFileSync } from 'node:fs';

const SOURCE = new URL('../../../src/tally.js', import.meta.url).pathname;

/** As it is published, where the tests have built it (global-setup.ts), and otherwise from its sources. */
export const MAIN = process.env['TALLY_TEST_PROGRAM'] ?? SOURCE;

/** What its first line gives to Node. */
export function nodeOptions(): readonly string[] {
  return firstLine()
    .options.split(' ')
    .filter((option) => option !== '');
}

/** The variables that its first line sets. */
export function ownVariables(): Readonly<Record<string, string>> {
  const assignments = firstLine().variables.matchAll(/(\w+)=(\d+)/g);
  return Object.fromEntries(assignments.map(([, name = '', value = '']) => [name, value]));
}

function firstLine(): { readonly variables: string; readonly options: string } {
  const [line = ''] = readFileSync(MAIN, 'utf8').split('\n');
  const parts = /^#!\/usr\/bin\/env -S ((?:[A-Z_]+=\d+ )*)node((?: --[a-z-]+=\d+)*)$/.exec(line);
  if (parts === null) throw new Error(`${MAIN} does not begin with a line for env and node: ${line}`);
  const [, variables = '', options = ''] = parts;
  return { variables, options };
}
