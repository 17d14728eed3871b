/** The glossary: one word means one thing, and is explained once. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const page = readFileSync(new URL('../../docs/internals/glossary.md', import.meta.url), 'utf8');
const words = [...page.matchAll(/^\| (.+?) \|/gm)].map(([, word]) => word ?? '').filter((word) => word !== 'word');

it('explains each word once', () => {
  expect(words.length).toBeGreaterThan(15);
  expect(words.filter((word, index) => words.indexOf(word) !== index)).toEqual([]);
});

it('adds the context to each meaning of a word that has several', () => {
  const plain = new Set(words);
  const withContext = words.filter((word) => word.endsWith(')'));
  expect(withContext.filter((word) => plain.has(word.replace(/ \([^()]*\)$/, '')))).toEqual([]);
});
