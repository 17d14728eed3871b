import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fold, hasWords, queryWordsOf, wordsOf } from '../../src/base/words.ts';
import { isLong } from '../support/breadth.ts';
import { growthOf } from '../support/growth.ts';
import { anyCharacter } from '../support/random/characters.ts';

/** What words are, without regard to the time that it takes. */
function plainWordsOf(text: string): readonly string[] {
  const words = text
    .normalize('NFKC')
    .split(/[^\p{L}\p{M}\p{N}]+/u)
    .flatMap((run) => {
      const pieces = run.split(/(?<=\p{Ll})(?=\p{Lu})|(?<=\p{L}\p{M}*)(?=\p{N})|(?<=\p{N})(?=\p{L})/u).map(plainFold);
      const letters = pieces
        .map((piece) => (/^\p{N}/u.test(piece) ? ' ' : piece))
        .join('')
        .split(' ');
      return [...pieces.flatMap((piece) => [piece, piece.replace(/^0+(?=\p{N})/u, '')]), ...letters, pieces.join('')];
    });
  return [...new Set(words.map((word) => Array.from(word).slice(0, 64).join('')).filter((word) => word !== ''))].sort();
}

function plainFold(text: string): string {
  const folded = text.toLowerCase().normalize('NFD').replaceAll(/\p{M}/gu, '').normalize('NFC');
  return folded.replaceAll('ß', 'ss').replaceAll('ς', 'σ');
}

/** Letters of each kind, digits, separators, and marks that are sorted, composed or kept apart when they are normalised. */
const LETTERS = ['a', 'Z', 'ß', 'İ', 'Σ', 'ǆ', 'ﬃ', '日', 'ｶ', 'ﾞ', 'ﾟ', '가', 'ᄀ', '1', '①', '٣', '/', '.', ' ', '😀', '𐐨', '\ud800'];
const MARKS = ['\u0301', '\u0315', '\u0316', '\u0345', '\u0f73', '\u0f75', '\u3099', '\u0903', '\u20dd', '\u0e33', '\u200d', '\ufdfa'];
const troublesome = fc.constantFrom(...LETTERS, ...MARKS);

describe('the words of a key', () => {
  it.each([
    ['photos/2024/summer-holiday.jpg', ['photos', '2024', 'summer', 'holiday', 'jpg']],
    ['reportFinal', ['report', 'final', 'reportfinal']],
    ['IMG4711b', ['img', '4711', 'b', 'img4711b']],
    ['iPhone', ['i', 'phone', 'iphone']],
    ['dataSet0', ['data', 'set', 'dataset', '0', 'dataset0']],
    ['iPhone15Pro', ['i', 'phone', 'iphone', '15', 'pro', 'iphone15pro']],
    ['scan_0042.000', ['scan', '0042', '42', '000', '0']],
    ['Straße/ΟΔΟΣ/οδός', ['strasse', 'οδοσ']],
    ['HTTPServer', ['httpserver']],
    ['a_b a+b a\tb\u0001c', ['a', 'b', 'c']],
    ['Ünïcode Éclair', ['unicode', 'eclair']],
    ['u\u0308ber', ['uber']],
    ['ﬁle ①', ['file', '1']],
    ['日本語2024', ['日本語', '2024', '日本語2024']],
    ['ünï/😀/x', ['uni', 'x']],
    ['x/x/X', ['x']],
    ['../', []],
    ['', []],
  ])('of %j are %j', (text, words) => {
    expect(wordsOf(text)).toEqual(words);
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

  it('are those of the plain rules, for short texts of all kinds of characters', () => {
    const text = fc.oneof(
      fc.string({ unit: troublesome, maxLength: 28 }),
      fc.string({ unit: 'grapheme', maxLength: 28 }),
      fc.string({ unit: anyCharacter, maxLength: 28 }),
    );
    fc.assert(
      fc.property(text, (each) => {
        expect(wordsOf(each).toSorted()).toEqual(plainWordsOf(each));
      }),
      { numRuns: isLong ? 2_000 : 500 },
    );
  });

  it('Fix: take a time that is linear in the length, whatever the characters', () => {
    const unit = fc.string({ unit: troublesome, minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(unit, (each) => {
        expect(growthOf(wordsOf, each)).toBeLessThanOrEqual(15);
      }),
      {
        // the examples are all that was ever slow
        numRuns: isLong ? 30 : 10,
        // one letter with nothing but marks, in one order, in a changing order, and as letters that become marks
        examples: [['\u0301'], ['\u0315\u0316'], ['\u0f73'], ['\u0315ﾞ'], ['a'], ['a1'], ['aA'], ['Σ']],
      },
    );
  });

  it('of a letter with more marks than a language has are those of the letter', () => {
    expect(wordsOf(`x${'\u0315\u0316'.repeat(255)}1`)).toEqual(['x', '1', 'x1']);
    expect(wordsOf(`e${'\u0301'.repeat(100)}t${'\u0301'.repeat(100)}é`)).toEqual(['ete']);
  });

  it('are cut at 64 characters, never inside of one', () => {
    const [word] = wordsOf('𐐨'.repeat(100));
    expect(Array.from(word!)).toHaveLength(64);
    expect(word!.isWellFormed()).toBe(true);
  });
});

describe('the words of a query', () => {
  it.each([
    ['summer hol', [[{ whole: ['summer'] }], [{ whole: [], prefix: 'hol' }]]],
    ['x x', [[{ whole: ['x'] }], [{ whole: [], prefix: 'x' }]]],
    ['x', [[{ whole: [], prefix: 'x' }]]],
    ['jpg jpg summer', [[{ whole: ['jpg'] }], [{ whole: [], prefix: 'summer' }]]],
    ['iPhone x', [[{ whole: ['i', 'phone'] }, { whole: ['iphone'] }], [{ whole: [], prefix: 'x' }]]],
    [
      'iPhone',
      [
        [
          { whole: ['i'], prefix: 'phone' },
          { whole: [], prefix: 'iphone' },
        ],
      ],
    ],
    ['a1b2c3d4e', [[{ whole: [], prefix: 'a1b2c3d4e' }]]],
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
        if (query !== null) expect(hasWords(wordsOf(key), query)).toBe(true);
      }),
    );
  });

  it.each([
    ['iphone-15.jpg', 'iPhone'],
    ['iPhone 15 Pro', 'iphone15'],
    ['iPhone15.jpg', 'iphone 15'],
    ['dataSet0', 'DATASET0'],
    ['IMG_0042', '42'],
    ['strasse', 'Straße'],
  ])('find %j by %j', (key, q) => {
    expect(hasWords(wordsOf(key), queryWordsOf(q)!)).toBe(true);
  });

  it('are at most 64', () => {
    const q = (count: number): string => Array.from({ length: count }, (_, at) => `w${at}`).join(' ');
    expect(queryWordsOf(q(64))).toHaveLength(64);
    expect(() => queryWordsOf(q(65))).toThrow(expect.objectContaining({ code: 'request.invalid' }));
    expect(queryWordsOf('w '.repeat(500))).toHaveLength(2);
  });
});

describe('the folded form', () => {
  it('of every character is folded already', () => {
    // the planes behind have no letters
    const others: string[] = [];
    for (let point = 0; point <= 0x3_ff_ff; point += 1) {
      const character = String.fromCodePoint(point);
      const folded = fold(character);
      // most are their own fold, which the next fold would only repeat
      if (folded !== character && fold(folded) !== folded) others.push(point.toString(16));
    }
    expect(others).toEqual([]);
  });

  it('is the same whatever the case, the accents and the width', () => {
    for (const [text, folded] of [
      ['STRASSE', 'strasse'],
      ['Stra\u00dfe', 'strasse'],
      ['\u1e9e', 'ss'],
      ['\u0130stanbul', 'istanbul'],
      ['\u0131', '\u0131'],
      ['\u03a3\u03a3 \u03a3\u03c2', '\u03c3\u03c3 \u03c3\u03c3'],
      ['\uff21\uff22\uff23\uff11', 'abc1'],
      ['u\u0308\u00fc', 'uu'],
      ['\u2160\ufb03', 'iffi'],
    ]) {
      expect(fold(text!)).toBe(folded);
    }
  });
});
