import { expect, it } from 'vitest';
import { withFacts } from './facts.ts';
import { textOf } from './pages.ts';
import { pages } from './write-docs.ts';

it.each(Object.entries(pages))('%s says what the code says (npm run docs writes it)', (path, page) => {
  expect(textOf(path)).toBe(page());
});

// a row's `cli.description` says it in the words of the command line
it('the help of a command names commands, and no paths of the API', () => {
  expect(textOf('docs/reference/cli.md')).not.toContain('/v1/');
});

it('a number in a sentence is written from the code, and the sentence must be there', () => {
  const page = textOf('README.md');
  expect(withFacts('README.md', page.replace('more than 1,000 documents', 'more than 7 documents'))).toBe(page);
  expect(() => withFacts('README.md', 'It deletes nothing.')).toThrow('README.md has 0 times');
});
