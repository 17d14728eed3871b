import { describe, expect, it } from 'vitest';
import {
  beginLogin,
  begunLoginOf,
  codeOf,
  consentTokenOf,
  isLoginOver,
  isMachineName,
  isRedirectUri,
  isReturnTo,
  issuerSecretsOf,
  judgeCode,
  loginIdOf,
  loginIdOfCode,
  type LoginRecord,
} from '../../src/identity/login.rules.ts';
import { challengeOf, tokenHashOf } from '../../src/identity/tokens.rules.ts';
import { randomName, randomSecret } from '../../src/identity/random-texts.ts';

const VERIFIER = 'v'.repeat(43);
const REDIRECT = 'http://127.0.0.1:4000/callback';
const request = { flow: 'client', challenge: challengeOf(VERIFIER), redirectUri: REDIRECT, clientState: 's' } as const;

const KEY = randomSecret();

function begun() {
  const cookie = beginLogin(request, randomSecret(), KEY, 0) ?? '';
  const login = begunLoginOf(cookie, KEY, 0);
  if (login === undefined) throw new Error('the login has not begun');
  return { ...login, cookie, record: { ...login.begun, stage: 'asking' as const } };
}

function allowed(more: Partial<LoginRecord> = {}) {
  const { record } = begun();
  const code = codeOf(record, randomName());
  const after: LoginRecord = { ...record, stage: 'allowed', codeHash: tokenHashOf(code), codeAtMs: 1_000, ...more };
  return { record: after, code };
}

it.each([
  ['http://127.0.0.1:1/callback', true],
  ['http://127.0.0.1:65535/callback', true],
  ['http://[::1]:4000/callback', true],
  ['http://127.0.0.1:65536/callback', false],
  ['http://127.0.0.1:0/callback', false],
  ['http://127.0.0.1:04000/callback', false],
  ['http://127.0.0.1/callback', false],
  ['http://localhost:4000/callback', false],
  ['https://127.0.0.1:4000/callback', false],
  ['http://127.0.0.1:4000/callback/', false],
  ['http://127.0.0.1:4000/callback?x=1', false],
  ['http://127.0.0.1:4000/callback#x', false],
  ['http://127.0.0.1:4000@evil.example/callback', false],
  ['http://127.0.0.1.evil.example:4000/callback', false],
  ['http://127.0.0.2:4000/callback', false],
  ['http://127.0.0.1:4000/callback\n', false],
  ['javascript:alert(1)', false],
])('where a client receives its code: %s: %s', (text, expected) => expect(isRedirectUri(text)).toBe(expected));

it.each([
  ['/', true],
  ['/jobs?x=1#y', true],
  ['//evil.example', false],
  ['/\\evil.example', false],
  ['/a\\b', false],
  ['https://evil.example', false],
  ['', false],
  ['/a b', false],
  ['/\tevil', false],
  [`/${'a'.repeat(2_000)}`, false],
])('where a browser goes after its login: %j: %s', (text, expected) => expect(isReturnTo(text)).toBe(expected));

it.each([
  ['laptop of Bob', true],
  ['büro-1', true],
  ['', false],
  ['a\u202eb', false],
  ['a\nb', false],
  ['x'.repeat(101), false],
  [`qk_${'0'.repeat(49)}`, false],
])('%j is the name of a machine: %s', (text, expected) => expect(isMachineName(text)).toBe(expected));

describe('a login under way', () => {
  it('is found by its secret name, of which the record has a hash only', () => {
    const { record, name, cookie } = begun();
    expect(loginIdOf(name)).toBe(record.id);
    const { state, nonce, verifier } = issuerSecretsOf(name, KEY);
    // the browser has the name, and not what follows from the key as well
    for (const secret of [state, nonce, verifier]) expect(cookie).not.toContain(secret);
    expect(issuerSecretsOf(name, randomSecret()).verifier).not.toBe(verifier);
    const secrets = [name, state, nonce, verifier, consentTokenOf(name)];
    expect(new Set(secrets).size).toBe(5);
    for (const secret of secrets) {
      expect(secret).toMatch(/^[0-9A-Za-z]{43}$/);
      expect(JSON.stringify(record)).not.toContain(secret);
    }
    expect([loginIdOf(''), loginIdOf(`${name}a`), loginIdOf('../'.repeat(14) + 'a')]).toEqual([undefined, undefined, undefined]);
  });

  it('lasts ten minutes, and is that of its cookie, of which no part can be changed', () => {
    const { record, cookie } = begun();
    expect([isLoginOver(record, 599_999), isLoginOver(record, 600_000)]).toEqual([false, true]);
    expect(begunLoginOf(cookie, KEY, 599_999)?.begun).toEqual({ ...request, createdAtMs: 0, id: record.id });
    expect(begunLoginOf(cookie, KEY, 600_000)).toBeUndefined();
    const other = begun().cookie.split('.');
    const parts = cookie.split('.');
    const forged = parts.map((_, at) => parts.with(at, other[at] ?? '').join('.')).filter((text) => text !== cookie);
    const written = Buffer.from(JSON.stringify({ ...request, createdAtMs: 1e15 })).toString('base64url');
    for (const text of [
      ...forged,
      parts.with(1, written).join('.'),
      `${cookie}.`,
      `${cookie}x`,
      parts[0] ?? '',
      '',
      '..',
      'x'.repeat(4_000),
    ])
      expect(begunLoginOf(text, KEY, 0)).toBeUndefined();
    expect(begunLoginOf(cookie, randomSecret(), 0)).toBeUndefined();
  });

  it('has a cookie that browsers keep, or does not begin', () => {
    const longest = { flow: 'browser', returnTo: `/${'a'.repeat(1_999)}` } as const;
    expect(beginLogin(longest, randomSecret(), KEY, 0)?.length).toBeLessThan(3_900);
    expect(beginLogin({ ...request, clientState: 'x'.repeat(512) }, randomSecret(), KEY, 0)).toBeDefined();
    expect(beginLogin({ ...request, clientState: '\0'.repeat(512) }, randomSecret(), KEY, 0)).toBeUndefined();
  });
});

describe('a code', () => {
  it('is redeemed with its verifier and its redirect', () => {
    const { record, code } = allowed();
    expect(code).toMatch(/^[0-9A-Za-z]{44}$/);
    expect(loginIdOfCode(code)).toBe(record.id);
    expect(JSON.stringify(record)).not.toContain(code.slice(22));
    expect(judgeCode(record, { code, verifier: VERIFIER, redirectUri: REDIRECT }, 1_000)).toBe('ok');
  });

  it('that was redeemed is known as such, also later and with anything else', () => {
    const { record, code } = allowed({ stage: 'redeemed', sessionId: 's' });
    expect(judgeCode(record, { code, verifier: 'x', redirectUri: undefined }, 10_000_000)).toBe('replayed');
    expect(judgeCode(record, { code: `${code.slice(0, 22)}${'0'.repeat(22)}`, verifier: VERIFIER }, 0)).toBe('unknown');
  });

  it('exists only after Allow', () => {
    const { record, code } = allowed({ stage: 'asking' });
    expect(judgeCode(record, { code, verifier: VERIFIER, redirectUri: REDIRECT }, 1_000)).toBe('unknown');
    expect(judgeCode(begun().record, { code, verifier: VERIFIER }, 0)).toBe('unknown');
  });

  it.each(['', 'a', 'x'.repeat(43), `${'x'.repeat(43)}-`, 'x'.repeat(45)])('%j is none', (text) =>
    expect(loginIdOfCode(text)).toBeUndefined(),
  );
});
