/** Identity of two processes on one OpenSearch. The clock is virtual; only the store is real. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createPeople } from '../../../src/pipeline/identity/people.ts';
import { userIdOf } from '../../../src/domain/identity/user.ts';
import { ISSUER } from '../../support/identity/fake-issuer.ts';
import { keysContract } from '../../support/identity/keys-contract.ts';
import { CLIENT, createIdentityWorld, logIn, ORIGIN, queryOf, REDIRECT, VERIFIER } from '../../support/identity/world.ts';
import { opensearchUrl } from '../../support/servers/found.ts';
import { openTestStore, type TestStore } from '../../support/servers/opensearch.ts';

const signal = new AbortController().signal;

describe.skipIf(opensearchUrl() === undefined)('identity on OpenSearch', () => {
  keysContract('one OpenSearch', async () => {
    const opened = openTestStore();
    await opened.store.setup.prepare();
    return { a: opened.store, b: opened.another(), dispose: () => opened.dispose() };
  });

  describe('sessions of two processes', () => {
    let opened: TestStore;
    beforeAll(async () => {
      opened = openTestStore();
      await opened.store.setup.prepare();
    });
    afterAll(() => opened?.dispose());

    const worlds = () => [createIdentityWorld({ store: opened.store }), createIdentityWorld({ store: opened.another() })] as const;

    it('one token counts in both, and one that was ended by one is refused by the other at once', async () => {
      const [a, b] = worlds();
      const { id, token } = await logIn(a);
      expect(await b.sessions.check('client', token, signal)).toMatchObject({ email: 'alice@example.com' });
      await b.sessions.end(id);
      expect(await a.sessions.check('client', token, signal)).toBe('not valid');
    });

    it('one code that two processes redeem at the same moment leaves no session', async () => {
      const [a, b] = worlds();
      const { cookie: name, location } = await a.logins.begin(CLIENT, signal);
      await a.logins.answered(name, queryOf(a.issuer.answerTo(location)), ORIGIN, signal);
      const { token } = await b.logins.consent(name, signal);
      const { redirect = '' } = await b.logins.decide(name, { token, allow: true }, ORIGIN);
      const code = new URL(redirect).searchParams.get('code') ?? '';
      const redemption = { code, verifier: VERIFIER, redirectUri: REDIRECT };
      const redeemed = await Promise.allSettled([a, b].map(({ logins }) => logins.redeem(redemption, ORIGIN)));
      const tokens = redeemed.flatMap((each) => (each.status === 'fulfilled' ? [each.value.token] : []));
      expect(tokens.length).toBeLessThan(2);
      for (const each of tokens) expect(await a.sessions.check('client', each, signal)).toBe('not valid');
    });

    it('a user who was disabled by one is refused by the other at once, and listed so', async () => {
      const [a, b] = worlds();
      const { token } = await logIn(a);
      const userId = userIdOf(ISSUER, 's-alice');
      expect(await b.sessions.check('client', token, signal)).toMatchObject({ userId });
      const people = createPeople({
        state: a.store.state,
        clock: a.clock,
        rules: { allowed: [{ kind: 'any' }], adminEmails: ['root@example.com'] },
      });
      await people.change(userId, { disabled: true }, 'root');
      expect(await b.sessions.check('client', token, signal)).toBe('of a user who may not log in');
      const listed = await createPeople({
        state: b.store.state,
        clock: b.clock,
        rules: { allowed: [{ kind: 'any' }], adminEmails: ['root@example.com'] },
      }).list({ limit: 100 }, signal);
      expect(listed.items.find(({ id }) => id === userId)).toHaveProperty('disabled_at', expect.any(String));
      await people.change(userId, { disabled: false }, 'root');
      expect(await b.sessions.check('client', token, signal)).toBe('of a user who may not log in');
    });
  });
});
