/** What a run leaves out: each skip has a reason that the end of the run tells. */
import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROOT, textOf } from '../docs/pages.ts';
import { collectNotRun, noteNotRun, notRunText } from '../support/not-run.ts';

const VARIABLES = ['CI', 'TALLY_TEST_NOT_RUN_FILE'] as const;

describe('what a run leaves out', () => {
  const before = VARIABLES.map((name) => process.env[name]);
  const folder = mkdtempSync(join(tmpdir(), 'tally-not-run-'));
  const file = join(folder, 'suites');
  beforeAll(() => {
    writeFileSync(file, '');
    delete process.env['CI'];
    collectNotRun(file);
  });
  afterAll(() => {
    rmSync(folder, { recursive: true });
    VARIABLES.forEach((name, index) => {
      if (before[index] === undefined) delete process.env[name];
      else process.env[name] = before[index];
    });
  });

  it('is told once, by what is missing, and is an error in CI', () => {
    expect(notRunText(file)).toBe('');
    noteNotRun('the chart', 'helm (on the PATH or by TALLY_TEST_HELM)');
    noteNotRun('the panel', 'chromium (on the PATH or by TALLY_TEST_CHROMIUM)');
    for (let files = 0; files < 2; files += 1) noteNotRun('logins', 'chromium (on the PATH or by TALLY_TEST_CHROMIUM)');
    expect(notRunText(file)).toBe(
      [
        ' NOT RUN, because this machine lacks it:',
        '   chromium (on the PATH or by TALLY_TEST_CHROMIUM): logins, the panel',
        '   helm (on the PATH or by TALLY_TEST_HELM): the chart',
        ' To run them too, install what is missing or name it by its variable: docs/internals/README.md#tests.',
      ].join('\n'),
    );
    process.env['CI'] = 'true';
    expect(() => noteNotRun('the chart', 'helm')).toThrow('CI=true, and the chart cannot be run: missing helm');
    delete process.env['CI'];
  });
});

/** What notes its reason: a server (global-setup.ts), or something of this machine. */
const REASONS = /\b(?:awsEndpoint|opensearchUrl|securedOpensearch|canRun|canBrowse|indexKinds|noteNotRun)\b/;

it.each(globSync('test/**/*.test.ts', { cwd: ROOT }).toSorted())('Fix: %s skips nothing without a reason', (path) => {
  const text = textOf(path);
  const reasonless = [...text.matchAll(/\b(?:skipIf|runIf)\((.*)/g)]
    .map(([, condition = '']) => condition)
    .filter((condition) => !REASONS.test(condition))
    // a name that this file gives to a reason, or beside which it notes one
    .filter((condition) => {
      const names = condition.match(/\b[a-zA-Z]\w*\b/g) ?? [];
      return !names.some(
        (name) =>
          [...text.matchAll(new RegExp(`\\b${name}\\b.*`, 'g'))].some(([line]) => REASONS.test(line)) ||
          REASONS.test(new RegExp(`function ${name}\\([^]*?\\n\\}`).exec(text)?.[0] ?? ''),
      );
    });
  expect(reasonless).toEqual([]);
  expect(text).not.toMatch(/\b(?:describe|it|test)\.(?:skip|todo)\(/);
});
