/** What a run leaves out: each skip has a reason that the end of the run tells. */
import { existsSync, globSync } from 'node:fs';
import { dirname, join } from 'node:path';
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

const BREADTH = 'test/support/breadth.ts';

/** Whether the file asks, itself or by what it imports of the tests, for how much is to be played. */
function playsPart(path: string, seen = new Set<string>()): boolean {
  if (path === BREADTH) return true;
  if (seen.has(path) || !path.startsWith('test/') || !existsSync(join(ROOT, path))) return false;
  seen.add(path);
  return [...textOf(path).matchAll(/from '(\.[^']+)'/g)].some(([, from = '']) => playsPart(join(dirname(path), from), seen));
}

it('Fix: `npm run test:long` plays whole each suite of which `npm test` plays a part, and no other one again', () => {
  const [, list = ''] = /\nconst whole = \[([^\]]*)\]/.exec(textOf('config/tooling/vitest.config.ts')) ?? [];
  const whole = [...list.matchAll(/'([^']+)'/g)].map(([, name]) => `test/${name}.test.ts`);
  expect(whole.toSorted()).toEqual(
    globSync('test/**/*.test.ts', { cwd: ROOT })
      .toSorted()
      .filter((path) => playsPart(path)),
  );
});
