import { describe, expect, it } from 'vitest';
import { BROWSER_MS, isSessionOver, isTokenOf, newSession, sessionRecordSchema } from '../../src/identity/session.rules.ts';
import { challengeOf, isToken, nameFor } from '../../src/identity/tokens.rules.ts';
import { randomSecret } from '../../src/identity/random-texts.ts';

const DAY_MS = 86_400_000;
const login = (kind: 'client' | 'browser', secret = randomSecret(), days = 7) =>
  newSession({ kind, secret, user: { userId: 'u', role: 'user' }, machine: 'laptop', nowMs: 0, days });

describe('the token of a session', () => {
  it.each([
    ['client', 'qs_'],
    ['browser', 'qb_'],
  ] as const)('of a %s has its prefix, names one record, and is not in it', (kind, prefix) => {
    const secret = randomSecret();
    const { record, token } = login(kind, secret);
    expect(token).toBe(`${prefix}${secret}`);
    expect(record.id).toBe(nameFor('tally-session-id', token));
    expect(sessionRecordSchema.parse(JSON.parse(JSON.stringify(record)))).toEqual(record);
    expect(JSON.stringify(record)).not.toContain(secret);
  });

  it('is that of its own session only: not of another one, and not of the other kind with the same secret', () => {
    const secret = randomSecret();
    const [program, browser] = [login('client', secret), login('browser', secret)];
    expect(program.record.id).not.toBe(browser.record.id);
    expect(isTokenOf(program.record, program.token)).toBe(true);
    for (const other of [browser.token, login('client').token, `${program.token} `, ''])
      expect(isTokenOf(program.record, other)).toBe(false);
  });

  it.each([
    '',
    'qs_',
    `qk_${'a'.repeat(43)}`,
    `qb_${'a'.repeat(43)}`,
    `qs_${'a'.repeat(42)}`,
    `qs_${'a'.repeat(44)}`,
    `qs_${'a'.repeat(43)}\n`,
  ])('%j is none of a program', (text) => expect(isToken('client', text)).toBe(false));
});

describe('a session', () => {
  it('of a program ends after the days of its login, or after those of today if these are fewer', () => {
    const { record } = login('client');
    const isOverAt = (days: number, atMs: number) => isSessionOver(record, days, atMs);
    expect([isOverAt(7, 7 * DAY_MS - 1), isOverAt(7, 7 * DAY_MS)]).toEqual([false, true]);
    expect([isOverAt(2, 2 * DAY_MS - 1), isOverAt(2, 2 * DAY_MS)]).toEqual([false, true]);
    expect([isOverAt(90, 7 * DAY_MS - 1), isOverAt(90, 7 * DAY_MS)]).toEqual([false, true]);
  });

  it.each([1, 7, 90])('of a browser ends after half a day, whatever the days are: %i', (days) => {
    const { record } = login('browser', randomSecret(), days);
    expect([isSessionOver(record, days, BROWSER_MS - 1), isSessionOver(record, days, BROWSER_MS)]).toEqual([false, true]);
  });
});

it('the challenge is that of RFC 7636, appendix B', () => {
  expect(challengeOf('dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk')).toBe('E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM');
});
