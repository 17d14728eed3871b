import { describe, expect, it } from 'vitest';
import { createKeyWorld } from '../support/identity/keys.ts';
import { newKeySecret } from '../../src/identity/random-texts.ts';

const signal = new AbortController().signal;

describe('credentials that fail', () => {
  it('are audited once for each address, reason and minute, with their number and without the secret', async () => {
    const { a, bob, clock, store } = await createKeyWorld();
    const { key, secret } = await a.create(bob);
    await a.operations.revokeApiKey({ params: { id: key.id } }, a.contextOf(bob));
    const unknown = newKeySecret();
    for (let attempt = 0; attempt < 3; attempt += 1) expect(await a.authenticate(unknown, '10.0.0.9')).toBe(undefined);
    await a.authenticate('nonsense', '10.0.0.9');
    await a.authenticate(secret, '10.0.0.9');
    await a.authenticate(secret, '10.0.0.10');
    await clock.advance(60_000);
    await a.authenticate(unknown, '10.0.0.9');
    await a.attempts.storeEnded();
    await a.attempts.flush(signal);
    const records = await store.audit.list({ event: 'AuthenticationFailed', limit: 100 });
    const shown = records.map((record) =>
      [record.sourceipaddress, record.useridentity.email, record.reason, record.parameters?.['count']].join(' | '),
    );
    expect(shown.toSorted()).toEqual([
      '10.0.0.10 | bob@example.com | API key revoked | 1',
      '10.0.0.9 | anonymous@registry | API key malformed | 1',
      '10.0.0.9 | anonymous@registry | API key unknown | 1',
      '10.0.0.9 | anonymous@registry | API key unknown | 3',
      '10.0.0.9 | bob@example.com | API key revoked | 1',
    ]);
    expect(records.every(({ outcome }) => outcome === 'failed')).toBe(true);
    const auth = { type: 'api_key', keyName: 'ci', keyFingerprint: key.fingerprint };
    expect(records).toContainEqual(
      expect.objectContaining({ useridentity: { email: 'bob@example.com', userId: 'u-bob', sessionContext: { auth } } }),
    );
    for (const text of [secret, unknown])
      expect(JSON.stringify([records, a.telemetry.recorded('audited')])).not.toContain(text.slice(3, 20));
  });

  it('Fix: at the login leave one record for each address, reason and minute, while no person was named', async () => {
    const { a, store } = await createKeyWorld();
    for (let attempt = 0; attempt < 300; attempt += 1)
      a.attempts.loginFailed({ address: '10.0.0.9', reason: 'the issuer refused the login' });
    a.attempts.loginFailed({ address: '10.0.0.10', reason: 'the issuer refused the login' });
    await a.attempts.flush(signal);
    const records = await store.audit.list({ event: 'LoginFailed', limit: 100 });
    expect(records.map(({ sourceipaddress, parameters }) => `${sourceipaddress}: ${String(parameters?.['count'])}`).toSorted()).toEqual([
      '10.0.0.10: 1',
      '10.0.0.9: 300',
    ]);
    expect(records).toMatchObject([{ outcome: 'failed', useridentity: { email: 'unknown' } }, {}]);
  });
});
