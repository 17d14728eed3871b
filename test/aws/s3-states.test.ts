import { describe, expect, it } from 'vitest';
import { decodedWords } from '../../src/aws/s3-storage.ts';

describe('a value of user metadata', () => {
  it('that is encoded words of UTF-8 is what they encode', () => {
    expect(decodedWords('=?UTF-8?B?w7w=?=')).toBe('ü');
    expect(decodedWords('=?UTF-8?Q?J=C3=BCrgen_M=c3=bcller?=')).toBe('Jürgen Müller');
    // a character may be cut in two by the end of a word
    expect(decodedWords('=?UTF-8?B?w7w=?= =?UTF-8?Q?=C3?=\t=?utf-8?b?vA==?=')).toBe('üü');
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
