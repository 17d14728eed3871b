/**
 * What a test run leaves out for what this machine lacks: noted by the test files, in a file that global-setup.ts makes, and told
 * once at the end. With CI=true nothing may be left out.
 */
import { appendFileSync, readFileSync } from 'node:fs';

/** The environment variable that names the file to the processes of the tests. */
const VARIABLE = 'TALLY_TEST_NOT_RUN_FILE';

interface NotRun {
  readonly suite: string;
  /** What is missing, and how it is given. */
  readonly missing: string;
}

/** From now on, the processes that this one starts note in this file. */
export function collectNotRun(file: string): void {
  process.env[VARIABLE] = file;
}

/** Notes a suite that is left out. Throws with CI=true. */
export function noteNotRun(suite: string, missing: string): void {
  if (process.env['CI'] === 'true') throw new Error(`CI=true, and ${suite} cannot be run: missing ${missing}`);
  const file = process.env[VARIABLE];
  if (file !== undefined) appendFileSync(file, `${JSON.stringify({ suite, missing } satisfies NotRun)}\n`);
}

/** What the file has: one paragraph, empty if nothing was left out. */
export function notRunText(file: string): string {
  const lines = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '');
  const bySuite = Map.groupBy(
    lines.map((line) => JSON.parse(line) as NotRun),
    ({ missing }) => missing,
  );
  const items = [...bySuite].map(
    ([missing, suites]) => `   ${missing}: ${[...new Set(suites.map(({ suite }) => suite))].toSorted().join(', ')}`,
  );
  if (items.length === 0) return '';
  return [
    ' NOT RUN, because this machine lacks it:',
    ...items.toSorted(),
    ' To run them too, install what is missing or name it by its variable: docs/internals/README.md#tests.',
  ].join('\n');
}
