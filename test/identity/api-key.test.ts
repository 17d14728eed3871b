import { crc32 } from 'node:zlib';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { keyScopes, roles } from '../../src/base/actor.ts';
import {
  createSecret,
  effectiveScopes,
  formOf,
  isKeyId,
  isKeyName,
  isPurged,
  isSecretOf,
  keyIdOf,
  keyRecordOf,
  scopesAsStored,
  scopesOfRole,
  secretHashOf,
} from '../../src/identity/api-key.rules.ts';
import { roleSources } from '../../src/identity/user.rules.ts';
import { newKeySecret } from '../../src/identity/random-texts.ts';

const DAY_MS = 86_400_000;
const NOW_MS = Date.UTC(2026, 10, 22);
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

const randoms = fc.uint8Array({ minLength: 32, maxLength: 32 });
const secrets = randoms.map((random) => createSecret(random));

describe('the secret of an API key', () => {
  it('ends in the CRC-32 of what is before it, as scanners compute it', () => {
    fc.assert(
      fc.property(secrets, (secret) => {
        let number = crc32(secret.slice(0, 46));
        let digits = '';
        for (let digit = 0; digit < 6; digit += 1) {
          digits = `${BASE62[number % 62]}${digits}`;
          number = Math.floor(number / 62);
        }
        expect(secret.slice(46)).toBe(digits);
      }),
    );
    // the checksum of any implementation, and of all keys that exist
    expect(createSecret(new Uint8Array(32))).toBe(`qk_${'0'.repeat(43)}0LP7sK`);
  });

  it('contains all of its random bytes', () => {
    fc.assert(
      fc.property(randoms, (random) => {
        let number = 0n;
        for (const digit of createSecret(random).slice(3, 46)) number = number * 62n + BigInt(BASE62.indexOf(digit));
        expect(number.toString(16).padStart(64, '0')).toBe(Buffer.from(random).toString('hex'));
      }),
    );
  });

  it('is recognised as mistyped when one character is wrong or two neighbours are exchanged', () => {
    fc.assert(
      fc.property(secrets, fc.integer({ min: 3, max: 51 }), fc.constantFrom(...BASE62.split('')), (secret, at, digit) => {
        fc.pre(secret[at] !== digit);
        expect(formOf(`${secret.slice(0, at)}${digit}${secret.slice(at + 1)}`)).toBe('mistyped');
      }),
    );
    fc.assert(
      fc.property(secrets, fc.integer({ min: 3, max: 50 }), (secret, at) => {
        const [first = '', second = ''] = secret.slice(at, at + 2);
        fc.pre(first !== second);
        expect(formOf(`${secret.slice(0, at)}${second}${first}${secret.slice(at + 2)}`)).toBe('mistyped');
      }),
    );
  });

  it.each([
    ['nothing', ''],
    ['another prefix', `sk_${'0'.repeat(49)}`],
    ['a prefix in capitals', `QK_${'0'.repeat(49)}`],
    ['too short', `qk_${'0'.repeat(48)}`],
    ['too long', `qk_${'0'.repeat(50)}`],
    ['a sign', `qk_${'0'.repeat(48)}-`],
    ['a line break at its end', `qk_${'0'.repeat(49)}\n`],
    ['a letter that looks alike', `qk_${'0'.repeat(48)}а`],
  ])('is malformed with %s', (_, text) => {
    expect(formOf(text)).toBe('malformed');
  });
});

describe('what is stored of a secret', () => {
  it('is an id, a hash and a fingerprint, none of which contains it', () => {
    fc.assert(
      fc.property(secrets, secrets, (secret, other) => {
        const record = keyRecordOf({
          secret,
          name: 'ci',
          userId: 'u',
          userEmail: 'bob@example.com',
          scopes: ['read'],
          expiresInDays: 90,
          nowMs: NOW_MS,
        });
        expect(record.id).toMatch(/^k[0-9A-Za-z]{22}$/);
        expect(isKeyId(record.id)).toBe(true);
        expect(keyIdOf(secret)).toBe(record.id);
        expect(isSecretOf(record, secret)).toBe(true);
        expect(record.expiresAtMs - record.createdAtMs).toBe(90 * DAY_MS);
        const stored = JSON.stringify(record);
        // of the secret, only the four characters at each end
        for (let at = 3; at + 5 <= secret.length; at += 1) expect(stored).not.toContain(secret.slice(at, at + 5));
        fc.pre(other !== secret);
        expect(isSecretOf(record, other)).toBe(false);
        expect(keyIdOf(other)).not.toBe(record.id);
      }),
    );
  });

  it('fits no secret if the stored hash is broken', () => {
    const secret = newKeySecret();
    for (const secretHash of ['', 'zz', secretHashOf(secret).slice(2), `${secretHashOf(secret)}00`]) {
      expect(isSecretOf({ secretHash }, secret)).toBe(false);
    }
  });

  it.each(['', 'k', `k${'0'.repeat(21)}`, `k${'0'.repeat(23)}`, `j${'0'.repeat(22)}`, `k${'0'.repeat(21)}/`, `k${'0'.repeat(22)}\n`])(
    'has no id like %j',
    (text) => {
      expect(isKeyId(text)).toBe(false);
    },
  );
});

describe('the name of a key', () => {
  it.each(['a', 'nightly export, production, 2026-11', 'Größe 😀', 'x'.repeat(100), '😀'.repeat(100), ' a ', 'qk_abcd…wxyz'])(
    'may be %j',
    (name) => {
      expect(isKeyName(name)).toBe(true);
    },
  );

  it.each([
    '',
    'x'.repeat(101),
    '😀'.repeat(101),
    'a\nb',
    'a\u0000',
    '\u001b[2J',
    'a\u202eb',
    'a\u2066b',
    'a\u200bb',
    '\ud800',
    'a\u0085b',
    ' ',
    '\u00a0\u3000',
    newKeySecret(),
    `ci ${newKeySecret()} 2026`,
    `qs_${'0'.repeat(65)}`,
  ])('is not %j', (name) => {
    expect(isKeyName(name)).toBe(false);
  });
});

it('a key is kept for 90 days after its end or its revocation, whichever is earlier', () => {
  const purgedAfter = ({ revokedInDays }: { readonly revokedInDays?: number }) => {
    const key = { expiresAtMs: NOW_MS, ...(revokedInDays !== undefined && { revokedAtMs: NOW_MS + revokedInDays * DAY_MS }) };
    return [79, 80, 89, 90].map((days) => isPurged(key, NOW_MS + days * DAY_MS));
  };
  expect(purgedAfter({})).toEqual([false, false, false, true]);
  expect(purgedAfter({ revokedInDays: -10 })).toEqual([false, true, true, true]);
  expect(purgedAfter({ revokedInDays: 10 })).toEqual([false, false, false, true]);
});

describe('the scopes of a key', () => {
  it('are stored once each, in one order, with read', () => {
    expect(scopesAsStored(['admin', 'admin', 'operate'])).toEqual(['read', 'operate', 'admin']);
    expect(scopesAsStored(['operate'])).toEqual(['read', 'operate']);
  });

  it('are never more than the role of the owner, nor more than the key was created with', () => {
    const owners = fc.record({
      role: fc.constantFrom(...roles),
      roleSource: fc.constantFrom(...roleSources),
      lastLoginAtMs: fc.integer({ min: NOW_MS - 30 * DAY_MS, max: NOW_MS }),
    });
    fc.assert(
      fc.property(fc.subarray([...keyScopes]), owners, (stored, owner) => {
        const scopes = effectiveScopes(stored, owner, NOW_MS);
        for (const scope of scopes)
          expect([stored, scopesOfRole(owner.role)]).toEqual([expect.arrayContaining([scope]), expect.arrayContaining([scope])]);
        const isOld = owner.roleSource === 'rule' && NOW_MS - owner.lastLoginAtMs > 7 * DAY_MS;
        if (isOld) expect(scopes).not.toContain('admin');
        else expect(scopes).toEqual(stored.filter((scope) => scopesOfRole(owner.role).includes(scope)));
      }),
    );
  });

  it('lose admin when a role from a claim is older than seven days, and no granted one does', () => {
    const at = (roleSource: 'rule' | 'appointment', ageMs: number) =>
      effectiveScopes(['read', 'operate', 'admin'], { role: 'admin', roleSource, lastLoginAtMs: NOW_MS - ageMs }, NOW_MS);
    expect(at('rule', 7 * DAY_MS)).toEqual(['read', 'operate', 'admin']);
    expect(at('rule', 7 * DAY_MS + 1)).toEqual(['read', 'operate']);
    expect(at('appointment', 400 * DAY_MS)).toContain('admin');
  });
});
