/** What an API key may do: never more than its owner. Every key may read. */
import { keyScopes, type KeyScope, type Role } from '../base/actor.ts';
import type { UserRecord } from './user.rules.ts';

const DAY_MS = 86_400_000;
/** A role from a claim is only known as of the owner's last login. After a week, it is too old for connecting or removing buckets. */
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

/** The scopes of a key that requested none: what its owner may do, without `admin`. */
export function scopesByDefault(role: Role): readonly KeyScope[] {
  return scopesOfRole(role).filter((scope) => scope !== 'admin');
}

/** The requested scopes as stored: each once, in a fixed order, with `read`. */
export function scopesAsStored(requested: readonly KeyScope[]): readonly KeyScope[] {
  return keyScopes.filter((scope) => scope === 'read' || requested.includes(scope));
}

/** What a key may do now: its scopes at creation, as far as its owner may do it. */
export function effectiveScopes(
  stored: readonly KeyScope[],
  { role, roleSource, lastLoginAtMs }: Pick<UserRecord, 'role' | 'roleSource' | 'lastLoginAtMs'>,
  nowMs: number,
): readonly KeyScope[] {
  const isOld = roleSource === 'rule' && nowMs - lastLoginAtMs > CLAIMED_ROLE_MAX_MS;
  return stored.filter((scope) => scopesOfRole(role).includes(scope) && !(scope === 'admin' && isOld));
}
