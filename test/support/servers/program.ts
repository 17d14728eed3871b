/** The program under test, started as its users start it. */
import { readFileSync } from 'node:fs';

export const MAIN = new URL('../../../src/tally.js', import.meta.url).pathname;

/** What its first line gives to Node. */
export function nodeOptions(): readonly string[] {
  const [firstLine = ''] = readFileSync(MAIN, 'utf8').split('\n');
  const options = /^#!\/usr\/bin\/env -S node((?: --[a-z-]+=\d+)*)$/.exec(firstLine)?.[1];
  if (options === undefined) throw new Error(`${MAIN} does not begin with a line for env and node: ${firstLine}`);
  return options.split(' ').filter((option) => option !== '');
}
