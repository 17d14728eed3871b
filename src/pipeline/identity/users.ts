/** Users as stored, and what a login or a grant changes about them. */
import type { Claims, Identity } from '../../domain/identity/claims.ts';
import { granteesOf, grantNameOf, isGrantOver, type GrantRecord } from '../../domain/identity/grant.ts';
import { isOfIssuer, knownUserOf, matchedRules, roleOf, type KnownUser, type LoginRules } from '../../domain/identity/login-rules.ts';
import { userIdOf, type UserRecord } from '../../domain/identity/user.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { readRecord, refs, removeRecord, updateRecord } from '../records/stored.ts';

export interface Users {
  /** Reads a user in realtime, as the settings see it now; undefined if no such user has logged in, or at another issuer only. */
  get(userId: string, signal?: AbortSignal): Promise<KnownUser | undefined>;
}

interface UserDependencies {
  readonly state: StateStore;
  readonly rules: LoginRules;
}

/** Creates the reader. */
export function createUsers({ state, rules }: UserDependencies): Users {
  return {
    async get(userId, signal) {
      const user = await readRecord(state, refs.user(userId), signal);
      return user !== undefined && isOfIssuer(rules, user) ? knownUserOf(rules, user) : undefined;
    },
  };
}

export interface SignIns extends Users {
  /** Stores that a person has logged in, with the role that follows from the claims or from a grant. The user may be disabled. */
  signedIn(identity: Identity, claims: Claims): Promise<UserRecord>;
  /** Gives a user the grants that wait for it, as a login does; undefined for one who is not let in now. */
  takeGrants(userId: string): Promise<UserRecord | undefined>;
}

interface SignInDependencies {
  readonly state: StateStore;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly rules: LoginRules;
}

/** Creates the functions. */
export function createSignIns({ state, clock, rules }: SignInDependencies): SignIns {
  const users = createUsers({ state, rules });

  /** The stored names of the grants that are meant for the user, and for no one who was there before. */
  async function grantsFor(user: Identity): Promise<readonly string[]> {
    const names = granteesOf(user).map(grantNameOf);
    const found = await Promise.all(names.map((name) => readRecord(state, refs.grant(name))));
    return names.filter((_, index) => isFor(user, found[index]));
  }

  function isFor({ issuer, subject }: Identity, grant: GrantRecord | undefined): boolean {
    if (grant === undefined || isGrantOver(grant, clock.nowMs())) return false;
    return (grant.boundTo ?? userIdOf(issuer, subject)) === userIdOf(issuer, subject);
  }

  /** Makes a grant that of this user; false if another user of the same address was faster. */
  async function bind(user: Identity, name: string): Promise<boolean> {
    const bound = await updateRecord(
      state,
      refs.grant(name),
      (grant) => (grant !== undefined && isFor(user, grant) ? { ...grant, boundTo: userIdOf(user.issuer, user.subject) } : undefined),
      'soon',
    );
    return bound !== undefined;
  }

  /** Stores what `change` makes of the user, with the role that follows, and uses up the grants. */
  async function store(
    identity: Identity,
    change: (current: UserRecord | undefined) => Omit<UserRecord, 'role' | 'roleSource'>,
  ): Promise<UserRecord> {
    const grants: string[] = [];
    for (const name of await grantsFor(identity)) if (await bind(identity, name)) grants.push(name);
    // it waits until lists show it: who is the last administrator, and whom a grant means, is decided by a list
    const stored = await updateRecord(state, refs.user(userIdOf(identity.issuer, identity.subject)), (current) => {
      const next = change(current);
      return { ...next, ...roleOf(rules, next, grants.length > 0 || current?.roleSource === 'grant') };
    });
    // after the role was stored, so that no grant is lost with a process that ends in between
    await Promise.all(grants.map((name) => removeRecord(state, refs.grant(name).id)));
    return stored;
  }

  return {
    get: (userId, signal) => users.get(userId, signal),
    signedIn: (identity, claims) =>
      store(identity, (current) => {
        const nowMs = clock.nowMs();
        return {
          createdAtMs: nowMs,
          ...current,
          userId: userIdOf(identity.issuer, identity.subject),
          ...identity,
          issuerSetting: rules.issuer,
          matched: matchedRules(rules, claims),
          rolesSeenAtMs: nowMs,
          lastLoginAtMs: nowMs,
        };
      }),
    async takeGrants(userId) {
      // as it is now: a login may just have shown that the address is that of someone else
      const user = await users.get(userId);
      return user?.isAllowed === true ? store(user, (current) => current ?? user) : undefined;
    },
  };
}
