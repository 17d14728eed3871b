import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { queryWordsOf, wordsOf } from '../../../src/domain/documents/words.ts';

describe('the words of a key', () => {
  it.each([
    ['photos/2024/summer-holiday.jpg', ['photos', '2024', 'summer', 'holiday', 'jpg']],
    ['reportFinal', ['report', 'final']],
    ['IMG4711b', ['img', '4711', 'b']],
    ['HTTPServer', ['httpserver']],
    ['a_b a+b a\tb\u0001c', ['a', 'b', 'c']],
    ['Ünïcode Éclair', ['unicode', 'eclair']],
    ['u\u0308ber', ['uber']],
    ['ﬁle ①', ['file', '1']],
    ['日本語2024', ['日本語', '2024']],
    ['ünï/😀/x', ['uni', 'x']],
    ['x/x/X', ['x']],
    ['../', []],
    ['', []],
  ])('of %j are %j', (text, words) => {
    expect(wordsOf(text)).toEqual(words);
  });

  it('are folded, without repeats, well-formed, and at most 64 characters long', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), (text) => {
        const words = wordsOf(text);
        expect(new Set(words).size).toBe(words.length);
        for (const word of words) {
          expect(word).not.toBe('');
          expect(word.isWellFormed()).toBe(true);
          expect(Array.from(word).length).toBeLessThanOrEqual(64);
          expect(word).not.toMatch(/[^\p{L}\p{M}\p{N}]/u);
        }
      }),
    );
  });

  it('of ASCII text are what they are beside a character that is none', () => {
    const letters = fc.string({ unit: fc.constantFrom('a', 'z', 'A', 'Z', '0', '9', '/', '.', ' ', '\0', '\x7f'), maxLength: 300 });
    fc.assert(
      fc.property(fc.oneof(letters, fc.string({ unit: 'binary-ascii', maxLength: 300 })), (text) => {
        expect(wordsOf(text)).toEqual(wordsOf(`${text}😀`));
        expect(queryWordsOf(text)).toEqual(queryWordsOf(`${text}😀`));
      }),
    );
  });

  it('are the same for the composed and the decomposed form of a name', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }), (text) => {
        expect(wordsOf(text.normalize('NFD'))).toEqual(wordsOf(text.normalize('NFC')));
      }),
    );
  });

  it('are cut at 64 characters, never inside of one', () => {
    const [word] = wordsOf('𐐨'.repeat(100));
    expect(Array.from(word!)).toHaveLength(64);
    expect(word!.isWellFormed()).toBe(true);
  });
});

describe('the words of a query', () => {
  it.each([
    ['summer hol', { whole: ['summer'], prefix: 'hol' }],
    ['x x', { whole: ['x'], prefix: 'x' }],
    ['x', { whole: [], prefix: 'x' }],
    ['jpg jpg summer', { whole: ['jpg'], prefix: 'summer' }],
  ])('%j is %j', (q, words) => {
    expect(queryWordsOf(q)).toEqual(words);
  });

  it.each(['', ' ', '../', '😀'])('%j holds none, so nothing can match', (q) => {
    expect(queryWordsOf(q)).toBeNull();
  });

  it('find the key that they were copied from, whole or cut off anywhere', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 60 }), fc.nat(60), (key, end) => {
        const query = queryWordsOf(key.slice(0, end));
        const words = wordsOf(key);
        if (query === null) return;
        expect(query.whole.every((word) => words.includes(word))).toBe(true);
        expect(words.some((word) => word.startsWith(query.prefix))).toBe(true);
      }),
    );
  });
});
