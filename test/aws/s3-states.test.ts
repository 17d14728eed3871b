import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodedWords } from '../../src/aws/s3-storage.ts';

const base64 = (text: string): string => `=?UTF-8?B?${Buffer.from(text).toString('base64')}?=`;
const quoted = (text: string): string =>
  `=?utf-8?q?${[...Buffer.from(text)].map((byte) => (byte === 32 ? '_' : `=${byte.toString(16).padStart(2, '0').toUpperCase()}`)).join('')}?=`;

describe('a value of user metadata', () => {
  it('that is encoded words of UTF-8 is what they encode', () => {
    expect(decodedWords('=?UTF-8?B?w7w=?=')).toBe('ü');
    expect(decodedWords('=?UTF-8?Q?J=C3=BCrgen_M=c3=bcller?=')).toBe('Jürgen Müller');
    // a character may be cut in two by the end of a word
    expect(decodedWords('=?UTF-8?B?w7w=?= =?UTF-8?Q?=C3?=\t=?utf-8?b?vA==?=')).toBe('üü');
  });

  it('of any text comes back from either encoding', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        expect(decodedWords(base64(text))).toBe(text);
        expect(decodedWords(quoted(text))).toBe(text);
        expect(decodedWords(`${base64(text)} ${quoted(text)}`)).toBe(text + text);
      }),
    );
  });

  it.each([
    '',
    'plain',
    'a =?UTF-8?B?w7w=?=',
    '=?UTF-8?B?w7w=?= b',
    '=?UTF-8?B?w7w=?',
    '=?ISO-8859-1?Q?=FC?=',
    '=?UTF-8?X?w7w=?=',
    '=?UTF-8?Q?=C?=',
    '=?UTF-8?Q?=FC?=',
    '=?UTF-8?B?/A==?=',
  ])('that is anything else stays as it is: %j', (value) => {
    expect(decodedWords(value)).toBe(value);
  });
});
