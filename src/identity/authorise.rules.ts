/** The authorisation table: who may call operations of which scope. It checks routes; docs and tests are derived from it. */
import type { RequestErrorCode } from '../base/request-error.ts';
import type { Actor, KeyActor, KeyScope, Role, SessionActor } from '../base/actor.ts';

/**
 * Who may call an operation, in words for the docs. `operate`, `admin` and `monitor` need the role admin; a key needs the
 * scope as well.
 */
export const scopeTexts = {
  none: 'any caller',
  read: 'every user; API keys with the scope read',
  self: 'every user and every API key, for itself',
  session: 'every user who has logged in; no API key',
  operate: 'administrators; their API keys with the scope operate',
  admin: 'administrators; their API keys with the scope admin',
  monitor: 'administrators; their API keys with the scope read',
  people: 'administrators who have logged in; no API key',
} as const;

export type Scope = keyof typeof scopeTexts;

interface Needs {
  readonly role: Role;
  /** What a key needs; absent: keys are refused. `any`: every key will do. */
  readonly keyScope?: KeyScope | 'any';
}

/** What each scope needs of an authenticated caller. */
const needs: Readonly<Record<Exclude<Scope, 'none'>, Needs>> = {
  read: { role: 'user', keyScope: 'read' },
  self: { role: 'user', keyScope: 'any' },
  session: { role: 'user' },
  operate: { role: 'admin', keyScope: 'operate' },
  admin: { role: 'admin', keyScope: 'admin' },
  monitor: { role: 'admin', keyScope: 'read' },
  people: { role: 'admin' },
};

/** Why a request is refused. */
export interface Refusal {
  readonly code: Extract<RequestErrorCode, 'authentication.failed' | 'authorization.denied' | 'session.required'>;
  readonly detail: string;
}

/** The same answer to every invalid credential, so that it reveals nothing about why. */
export const AUTHENTICATION_FAILED: Refusal = {
  code: 'authentication.failed',
  detail: 'Authentication failed. Check your credentials or API key.',
};

/** Why a request is refused; undefined: it is permitted. Without an actor, the caller sent no credentials. */
export function refusalOf(scope: Scope, actor: Actor | undefined): Refusal | undefined {
  if (scope === 'none') return undefined;
  if (actor === undefined) return AUTHENTICATION_FAILED;
  switch (actor.kind) {
    case 'local':
      return scope === 'people' && actor.isOperator !== true ? localRefusal : undefined;
    case 'session':
      return roleRefusal(scope, actor);
    case 'api_key':
      return keyRefusal(scope, actor);
  }
}

/** A program on this machine over HTTP is no person, so it appoints no administrators. The operator may. */
const localRefusal: Refusal = {
  code: 'session.required',
  detail:
    "this needs an administrator's session or the operator: run the command as the registry's user on its machine, without --registry",
};

function roleRefusal(scope: Exclude<Scope, 'none'>, { role }: SessionActor): Refusal | undefined {
  if (needs[scope].role === 'user' || role === 'admin') return undefined;
  return { code: 'authorization.denied', detail: `this needs the role admin, ${NO_ADMIN}` };
}

/** Why a session does not have the role admin, after these words. */
export const NO_ADMIN =
  'and you have the role user. If the identity provider makes you an administrator, log in again: it counts for 12 hours';

function keyRefusal(scope: Exclude<Scope, 'none'>, { role, scopes }: KeyActor): Refusal | undefined {
  const { keyScope } = needs[scope];
  if (keyScope === undefined)
    return { code: 'session.required', detail: 'this needs a login (`tally login https://HOST`): API keys may not do it' };
  if (needs[scope].role === 'admin' && role !== 'admin') {
    return { code: 'authorization.denied', detail: 'this needs the role admin, and the owner of this API key has the role user' };
  }
  if (keyScope === 'any' || scopes.includes(keyScope)) return undefined;
  return {
    code: 'authorization.denied',
    detail: `the API key lacks the scope ${keyScope}: create a key with scopes=["${keyScope}"]. One that was created with it has it for 7 days after its owner's login, if the identity provider makes the owner an administrator`,
  };
}
