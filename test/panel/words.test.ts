import { expect, it } from 'vitest';
import { visibleText } from '../../src/panel/browser/words.ts';

it.each([
  [' ', '\\u{20}'],
  ['\u00a0\n', '\\u{a0}\\u{a}'],
  [' a ', ' a '],
  ['a\u200bb', 'a\\u{200b}b'],
])('%j is shown as %s, so that a link with it can be seen', (text, shown) => {
  expect(visibleText(text)).toBe(shown);
});
