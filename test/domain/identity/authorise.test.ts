import { describe, expect, it } from 'vitest';
import { refusalOf, scopeTexts, type Scope } from '../../../src/domain/identity/authorise.ts';
import { scopesOfRole } from '../../../src/domain/identity/key-scopes.ts';
import { keyActor, localActor, sessionActor } from '../../support/identity/actors.ts';

const callers = {
  anonymous: undefined,
  user: sessionActor(),
  admin: sessionActor({ role: 'admin' }),
  userKey: keyActor(),
  adminKey: keyActor({ role: 'admin', scopes: ['read', 'operate', 'admin'] }),
  readKey: keyActor({ role: 'admin', scopes: ['read'] }),
  operateKey: keyActor({ role: 'admin', scopes: ['read', 'operate'] }),
  formerAdminKey: keyActor({ role: 'user', scopes: ['read', 'operate', 'admin'] }),
  local: localActor,
};

/** Who is permitted. */
const table: Readonly<Record<Scope, readonly (keyof typeof callers)[]>> = {
  none: ['anonymous', 'user', 'admin', 'userKey', 'adminKey', 'readKey', 'operateKey', 'formerAdminKey', 'local'],
  read: ['user', 'admin', 'userKey', 'adminKey', 'readKey', 'operateKey', 'formerAdminKey', 'local'],
  self: ['user', 'admin', 'userKey', 'adminKey', 'readKey', 'operateKey', 'formerAdminKey', 'local'],
  session: ['user', 'admin', 'local'],
  operate: ['admin', 'adminKey', 'operateKey', 'local'],
  admin: ['admin', 'adminKey', 'local'],
  monitor: ['admin', 'adminKey', 'readKey', 'operateKey', 'local'],
  people: ['admin'],
};

describe('the authorisation table', () => {
  it.each(Object.entries(table))('scope %s permits %j and no other caller', (scope, permitted) => {
    const found = Object.entries(callers).filter(([, actor]) => refusalOf(scope as Scope, actor) === undefined);
    expect(found.map(([name]) => name)).toEqual(permitted);
    expect(scopeTexts[scope as Scope]).not.toBe('');
  });

  it.each([
    ['read', callers.anonymous, 'authentication.failed', 'Authentication failed. Check your credentials or API key.'],
    ['admin', callers.user, 'authorization.denied', 'role admin'],
    ['admin', callers.userKey, 'authorization.denied', 'role admin'],
    ['admin', callers.operateKey, 'authorization.denied', 'lacks the scope admin'],
    ['session', callers.adminKey, 'session.required', 'API keys may not'],
    ['people', callers.adminKey, 'session.required', 'API keys may not'],
    ['people', callers.local, 'session.required', 'without --registry'],
  ] as const)('scope %s names what is missing: %#', (scope, actor, code, text) => {
    expect(refusalOf(scope, actor)).toEqual({ code, detail: expect.stringContaining(text) });
  });
});

it('a role may do what its keys may', () => {
  expect([scopesOfRole('user'), scopesOfRole('admin')]).toEqual([['read'], ['read', 'operate', 'admin']]);
});
