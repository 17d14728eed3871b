import { expect, it } from 'vitest';
import { fencesOf, pages, textOf } from './pages.ts';

it('the JSON blocks of the pages are JSON', () => {
  const blocks = pages().flatMap((page) => fencesOf(textOf(page)).filter(({ language }) => language === 'json'));
  expect(blocks.length).toBeGreaterThan(1);
  for (const { text } of blocks) expect(() => JSON.parse(text) as unknown, text).not.toThrow();
});
