/** What an API key may do: never more than its owner. Every key may read. */
import { keyScopes, type KeyScope, type Role, type Withheld, type WithheldScopes } from '../base/actor.ts';
import type { UserRecord } from './user.rules.ts';

const DAY_MS = 86_400_000;
/** A role that comes from a claim is known as of the owner's last login only. After a week it is too old to connect or remove buckets with. */
const CLAIMED_ROLE_MAX_MS = 7 * DAY_MS;

/** The scopes that a role permits. */
export function scopesOfRole(role: Role): readonly KeyScope[] {
  switch (role) {
    case 'user':
      return ['read'];
    case 'admin':
      return keyScopes;
  }
}

/** The scopes of a key for which none were requested: what its owner may do, without `admin`. */
export function scopesByDefault(role: Role): readonly KeyScope[] {
  return scopesOfRole(role).filter((scope) => scope !== 'admin');
}

/** The requested scopes in the form in which they are stored: each once, in a fixed order, with `read`. */
export function scopesAsStored(requested: readonly KeyScope[]): readonly KeyScope[] {
  return keyScopes.filter((scope) => scope === 'read' || requested.includes(scope));
}

interface EffectiveScopes {
  readonly scopes: readonly KeyScope[];
  /** Of the scopes that the key was created with, those that it does not have now. */
  readonly withheld: WithheldScopes;
}

/** What a key may do now: what it was created with, as far as its owner may do it. */
export function effectiveScopes(
  stored: readonly KeyScope[],
  owner: Pick<UserRecord, 'role' | 'roleSource' | 'rolesSeenAtMs'>,
  nowMs: number,
): EffectiveScopes {
  const permitted = scopesOfRole(owner.role);
  const isOld = owner.roleSource === 'rule' && nowMs - owner.rolesSeenAtMs > CLAIMED_ROLE_MAX_MS;
  const reasonOf = (scope: KeyScope): Withheld | undefined => {
    if (!permitted.includes(scope)) return 'role';
    return scope === 'admin' && isOld ? 'claimed-role-old' : undefined;
  };
  const reasons = stored.map((scope) => [scope, reasonOf(scope)] as const);
  return {
    scopes: reasons.flatMap(([scope, reason]) => (reason === undefined ? [scope] : [])),
    withheld: Object.fromEntries(reasons.filter(([, reason]) => reason !== undefined)),
  };
}

/** Why a key may not do what needs this scope, and what to do about it: the detail of the refusal. */
export function missingScopeText(
  { role, withheld = {} }: { readonly role: Role; readonly withheld?: WithheldScopes | undefined },
  needed: KeyScope,
): string {
  if (withheld[needed] === 'claimed-role-old') {
    return `the API key has no scope ${needed} now: its owner's role admin comes from the identity provider, and was last seen there more than 7 days ago. The owner must log in again`;
  }
  if (!scopesOfRole(role).includes(needed)) {
    return `this needs the role admin, which the owner of the API key does not have: an API key never has more rights than its owner`;
  }
  return `the API key lacks the scope ${needed}: create a key with scopes=["${needed}"]`;
}
