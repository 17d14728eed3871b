import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ageOfText, printable, sizeText } from '../../src/base/texts.ts';
import { anyCharacter } from '../support/random/characters.ts';

describe('printable', () => {
  test.each([
    ['plain text, ünï and 😀 as they are', 'plain, ünï, 😀', 'plain, ünï, 😀'],
    ['a newline', 'a\nb', String.raw`a\u{a}b`],
    ['a terminal’s escape', '\u001b[2J', String.raw`\u{1b}[2J`],
    ['DEL and a C1 control', '\u007f\u009b', String.raw`\u{7f}\u{9b}`],
    ['bidi marks', '\u200e\u200f\u061c', String.raw`\u{200e}\u{200f}\u{61c}`],
    ['bidi embeddings and overrides', '\u202a\u202e', String.raw`\u{202a}\u{202e}`],
    ['bidi isolates', '\u2066\u2069', String.raw`\u{2066}\u{2069}`],
    ['line and paragraph separators', '\u2028\u2029', String.raw`\u{2028}\u{2029}`],
    ['zero-width spaces, joiners and marks', '\u200b\u200c\u200d\u2060\ufeff', String.raw`\u{200b}\u{200c}\u{200d}\u{2060}\u{feff}`],
    ['invisible fillers, hyphens and tags', '\u00ad\u3164\u{e0041}', String.raw`\u{ad}\u{3164}\u{e0041}`],
    ['the choice of a picture as it is', '❤\ufe0f', '❤\ufe0f'],
    ['half a surrogate pair', 'a\ud800b', String.raw`a\u{d800}b`],
  ])('shows %s', (_, text, shown) => {
    expect(printable(text)).toBe(shown);
  });

  test('never cuts a character in half', () => {
    expect(printable('a😀b', 2)).toBe('a…');
    expect(printable('a😀b', 3)).toBe('a😀…');
  });

  test('is one harmless line, whatever the text', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), fc.nat(20), (text, maxLength) => {
        expect(printable(text, maxLength)).toMatch(/^[^\p{Cc}\p{Cf}\p{Cs}\p{Bidi_Control}\u2028\u2029]*$/u);
      }),
    );
  });
});

test.each([
  [undefined, undefined],
  [0, '0 B'],
  [999, '999 B'],
  [1_023, '1023 B'],
  [1_024, '1 KiB'],
  [1_536, '1.5 KiB'],
  [10_239, '10 KiB'],
  [1_048_575, '1 MiB'],
  [5_000_000_000, '4.7 GiB'],
  [48.8 * 1_024 ** 4, '49 TiB'],
  [2 ** 55, '32 PiB'],
])('a size of %s bytes reads %s', (sizeBytes, text) => {
  expect(sizeText(sizeBytes)).toBe(text);
});

test.each([
  [0, '0 s'],
  [-5_000, '0 s'],
  [119_999, '119 s'],
  [120_000, '2 min'],
  [7_200_000, '2 h'],
  [172_800_000, '2 d'],
  [86_400_000 * 412, '412 d'],
])('a moment %s ms ago reads %s', (agoMs, text) => {
  const nowMs = Date.UTC(2026, 0, 2);
  expect(ageOfText(new Date(nowMs - agoMs).toISOString(), nowMs)).toBe(text);
});

test('a moment that is not known has no age', () => {
  expect(ageOfText(undefined, 0)).toBeUndefined();
  expect(ageOfText('yesterday', 0)).toBeUndefined();
});
