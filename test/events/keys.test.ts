import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeFormKey, isValidKey, keysOf } from '../../src/events/fields.ts';
import { formEncoded } from '../support/event-fixtures.ts';
import { anyCharacter } from '../support/random/characters.ts';

describe('a form-encoded key', () => {
  test.each([
    ['a bare percent sign', '100%'],
    ['half an escape', 'a+b%2'],
    ['bytes that are no UTF-8', 'a+%FF'],
    ['an overlong form', '%C0%AF'],
    ['an encoded surrogate', '%ED%A0%80'],
  ])('with %s is taken as it stands, and not certain', (_, text) => {
    expect(decodeFormKey(text)).toBeUndefined();
    for (const spelling of ['form', 'either'] as const) expect(keysOf(text, spelling)).toEqual({ keys: [text], isCertain: false });
  });

  test('round-trips any key', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), (key) => {
        expect(decodeFormKey(formEncoded(key))).toBe(key);
      }),
    );
  });
});

test('a key that is spelled in an unknown way is that key in one of its two spellings', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter, minLength: 1, maxLength: 100 }), (key) => {
      expect(keysOf(key, 'either').keys).toContain(key);
      expect(keysOf(formEncoded(key), 'either').keys).toContain(key);
      expect(keysOf(key, 'raw')).toEqual({ keys: [key], isCertain: true });
      expect(keysOf(formEncoded(key), 'form')).toEqual({ keys: [key], isCertain: true });
    }),
  );
});

test('what can be a key is decided by bytes, of which there is at least one', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter, maxLength: 1_100, size: 'max' }), (text) => {
      expect(isValidKey(text)).toBe(text !== '' && Buffer.byteLength(text) <= 1_024);
    }),
    { examples: [['']] },
  );
});
