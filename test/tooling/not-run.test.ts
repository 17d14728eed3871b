/** What a run leaves out: each skip has a reason that the end of the run tells. */
import { globSync } from 'node:fs';
import { expect, it } from 'vitest';
import { ROOT, textOf } from '../docs/pages.ts';

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
