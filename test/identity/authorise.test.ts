/** What each scope means to each caller over HTTP: registry/authorisation.test.ts. */
import { describe, expect, it } from 'vitest';
import { refusalOf, scopeTexts, type Scope } from '../../src/identity/authorise.rules.ts';
import type { Actor } from '../../src/base/actor.ts';
import { keyActor, localActor, sessionActor } from '../support/identity/actors.ts';

const callers = {
  user: sessionActor(),
  userKey: keyActor(),
  adminKey: keyActor({ role: 'admin', scopes: ['read', 'operate', 'admin'] }),
  operateKey: keyActor({ role: 'admin', scopes: ['read', 'operate'] }),
  formerAdminKey: keyActor({ role: 'user', scopes: ['read', 'operate', 'admin'] }),
  local: localActor,
};

describe('the authorisation table', () => {
  it('gives a key of a former administrator what a user may do, and a program on this machine all but what needs a person', () => {
    const scopes = Object.keys(scopeTexts) as Scope[];
    const permitted = (actor: Actor) => scopes.filter((scope) => refusalOf(scope, actor) === undefined);
    expect(permitted(callers.formerAdminKey)).toEqual(['none', 'read', 'self']);
    expect(permitted(callers.local)).toEqual(scopes.filter((scope) => scope !== 'people'));
  });

  it.each([
    ['admin', callers.user, 'authorization.denied', 'role admin'],
    ['admin', callers.userKey, 'authorization.denied', 'role admin'],
    ['admin', callers.operateKey, 'authorization.denied', 'lacks the scope admin'],
    ['session', callers.adminKey, 'session.required', 'API keys may not'],
    ['people', callers.adminKey, 'session.required', 'API keys may not'],
  ] as const)('scope %s names what is missing: %#', (scope, actor, code, text) => {
    expect(refusalOf(scope, actor)).toEqual({ code, detail: expect.stringContaining(text) });
  });
});
