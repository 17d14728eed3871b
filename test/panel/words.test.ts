import { expect, it } from 'vitest';
import { keyParts, visibleText } from '../../src/panel/browser/words.ts';

it.each([
  [' ', '\\u{20}'],
  ['\u00a0\n', '\\u{a0}\\u{a}'],
  [' a ', ' a '],
  ['a\u200bb', 'a\\u{200b}b'],
])('%j is shown as %s, so that a link with it can be seen', (text, shown) => {
  expect(visibleText(text)).toBe(shown);
});

it.each([
  ['a/b/c.txt', 'a/b/', 'c.txt'],
  ['c.txt', '', 'c.txt'],
  ['a/b/', 'a/', 'b/'],
  ['a//b', 'a//', 'b'],
  ['/', '', '/'],
])('of the key %j the folder is %j and the name is %j: the list may cut the folder, and never the name', (key, folder, name) => {
  expect(keyParts(key)).toEqual([folder, name]);
});
