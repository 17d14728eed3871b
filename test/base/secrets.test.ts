import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fingerprintOf } from '../../src/identity/api-key.rules.ts';
import { valueWithoutSecrets, withoutSecrets, withoutPasswords } from '../../src/base/secrets.ts';
import { tokenPrefixes } from '../../src/identity/tokens.rules.ts';
import { newKeySecret, randomSecret } from '../../src/identity/random-texts.ts';
import { growthOf } from '../support/growth.ts';

describe('a text without secrets', () => {
  it('shows only the prefix of keys and tokens, wherever they stand and however they were mistyped', () => {
    const secret = newKeySecret();
    const tokens = Object.values(tokenPrefixes).map((prefix) => `${prefix}${randomSecret()}`);
    for (const each of [secret, secret.slice(0, 30), `${secret}x`, ...tokens]) {
      expect(withoutSecrets(`there is no key ${each}, or "${each}"`)).toBe(
        `there is no key ${each.slice(0, 3)}***, or "${each.slice(0, 3)}***"`,
      );
    }
  });

  it('is the text itself where there is none: fingerprints and ids are no secrets', () => {
    const text = `${fingerprintOf(newKeySecret())} k0123456789abcdefghijAB qk_`;
    expect(withoutSecrets(text)).toBe(text);
  });

  it('is found at any depth of a value, which otherwise stays as it is', () => {
    const secret = newKeySecret();
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(valueWithoutSecrets({ value, nested: [{ [secret]: [secret] }] })).toEqual({ value, nested: [{ 'qk_***': ['qk_***'] }] });
      }),
    );
  });
});

/** What is masked, as one pattern, without regard to the time that it takes. */
function plainlyMasked(text: string): string {
  return text
    .split(/(,(?=\s*https?:\/\/))/)
    .map((part) =>
      part.replaceAll(/:\/\/([^\s:@/]*)(:?)\S*@/g, (_, user: string, colon: string) => `://${colon === '' ? '' : `${user}:`}***@`),
    )
    .join('');
}

it.each([
  ['https://tally:secret@index:9200', 'https://tally:***@index:9200'],
  ['https://index:9200', 'https://index:9200'],
  ['https://token@index', 'https://***@index'],
  ['https://:secret@index', 'https://:***@index'],
  ['https://tally:p@ss/w:rd,x@index', 'https://tally:***@index'],
  ['https://a:one@h1,https://h2, http://b:two@h3', 'https://a:***@h1,https://h2, http://b:***@h3'],
  ['no connection to https://a:one@h1:9200 (ECONNREFUSED)', 'no connection to https://a:***@h1:9200 (ECONNREFUSED)'],
  ['sqlite:/data/me@home.sqlite', 'sqlite:/data/me@home.sqlite'],
  ['', ''],
])('%s is shown as %s', (text, masked) => {
  expect(withoutPasswords(text)).toBe(masked);
});

const pieces = fc.constantFrom('://', 'http', 'https://', ':', '/', '@', ',', ' ', '\n', 'a', 'é', 'pass');

it('masks what one pattern for all of it masks', () => {
  fc.assert(
    fc.property(fc.string({ unit: pieces, maxLength: 20 }), (text) => {
      expect(withoutPasswords(text)).toBe(plainlyMasked(text));
    }),
    { numRuns: 2_000 },
  );
});

it('Fix: takes a time that is linear in the length, whatever the text', () => {
  fc.assert(
    fc.property(fc.string({ unit: pieces, minLength: 1, maxLength: 6 }), (unit) => {
      expect(growthOf(withoutPasswords, unit)).toBeLessThanOrEqual(15);
    }),
    { numRuns: 20, examples: [['://'], ['://a'], [', '], [',http'], ['https://'], ['a']] },
  );
});
