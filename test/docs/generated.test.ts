import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { pages } from './write-docs.ts';

it.each(Object.entries(pages))('%s says what the code says (npm run docs writes it)', (path, page) => {
  expect(readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')).toBe(page());
});
