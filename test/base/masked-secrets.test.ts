import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fingerprintOf } from '../../src/identity/api-key.rules.ts';
import { valueWithoutSecrets, withoutSecrets } from '../../src/base/secrets.ts';
import { tokenPrefixes } from '../../src/identity/tokens.rules.ts';
import { newKeySecret, randomSecret } from '../../src/identity/random-texts.ts';

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
