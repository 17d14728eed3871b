import { globSync } from 'node:fs';
import { expect, it } from 'vitest';
import { ROOT, pages, textOf } from './pages.ts';

it('alerts and pages name log lines that the code writes', () => {
  const texts = ['config/monitoring/alerts.yaml', ...pages()].map(textOf);
  const named = new Set(texts.flatMap((text) => [...text.matchAll(/log\s+line\s+[`"]([^`"]+)[`"]/gi)].map(([, line = '']) => line)));
  expect(named.size).toBeGreaterThan(0);
  const code = globSync('src/**/*.ts', { cwd: ROOT }).map(textOf).join('\n');
  expect([...named].filter((line) => !code.includes(`'${line}'`) && !code.includes(`'${line}: `))).toEqual([]);
});
