import { expect, it } from 'vitest';
import { sizeText, visibleText } from '../../src/panel/browser/words.ts';

it.each([
  [' ', '\\u{20}'],
  ['\u00a0\n', '\\u{a0}\\u{a}'],
  [' a ', ' a '],
  ['a\u200bb', 'a\\u{200b}b'],
])('%j is shown as %s, so that a link with it can be seen', (text, shown) => {
  expect(visibleText(text)).toBe(shown);
});

it.each([
  [0, '0 bytes'],
  [1, '1 byte'],
  [1_023, '1,023 bytes'],
  [1_024, '1.0 KiB'],
  [2 ** 55, '32 PiB'],
])('a size of %s reads %s', (bytes, shown) => {
  expect(sizeText(bytes)).toBe(shown);
});
