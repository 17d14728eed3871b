/** What administrators do about users: list, disable, enable, and appoint other administrators. */
import type { GrantAnswer, GrantRequest, User, UsersRequest } from '../../api/users.ts';
import { grantView, userView } from '../../api/users.ts';
import { decodeCursor } from '../../domain/cursor.ts';
import { grantNameOf, newGrant } from '../../domain/identity/grant.ts';
import { userRecordSchema, type UserRecord } from '../../domain/identity/user.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { readPage, type Page } from '../records/pages.ts';
import { listAllRecords, parseEntry, refs, updateRecord } from '../records/stored.ts';

export interface People {
  list(request: UsersRequest, signal: AbortSignal): Promise<Page<User>>;
  /** Throws `user.not-found`, and `user.last-administrator` for the last administrator by a grant if no setting makes others. */
  disable(userId: string): Promise<User>;
  /** Throws `user.not-found`. */
  enable(userId: string): Promise<User>;
  /** Makes an administrator of the person at the next login or refresh. */
  grant(grantee: GrantRequest, by: string): Promise<GrantAnswer>;
}

interface PeopleDependencies {
  readonly state: StateStore;
  readonly clock: Pick<Clock, 'nowMs'>;
  /** Whether the settings make administrators, so that one can log in whatever happens to the granted ones. */
  readonly hasAdminRule: boolean;
}

/** Creates the functions. */
export function createPeople({ state, clock, hasAdminRule }: PeopleDependencies): People {
  async function change(userId: string, next: (user: UserRecord) => UserRecord): Promise<User> {
    const stored = await updateRecord(state, refs.user(userId), (user) => (user === undefined ? undefined : next(user)));
    if (stored === undefined)
      throw new RequestError('user.not-found', `no user has the id ${userId}; tally admin users list shows all users`);
    return userView(stored);
  }

  /** Two administrators who disable each other at the same moment are not stopped: a command on the store enables one again. */
  async function requireOtherAdmin(userId: string): Promise<void> {
    if (hasAdminRule) return;
    const admins = (await listAllRecords(state, 'user', userRecordSchema)).filter(
      ({ roleSource, disabledAtMs }) => roleSource === 'grant' && disabledAtMs === undefined,
    );
    if (admins.length !== 1 || admins[0]?.userId !== userId) return;
    throw new RequestError(
      'user.last-administrator',
      `${admins[0].email} is the last administrator: appoint another one first (tally admin grant), or set TALLY_OIDC_ADMIN_EMAILS or TALLY_OIDC_ADMIN_CLAIM`,
    );
  }

  return {
    async list({ limit, cursor }, signal) {
      const { items, ...rest } = await readPage({
        limit,
        after: cursor === undefined ? undefined : decodeCursor(cursor, 1),
        fetch: (count, position) => {
          const after = position?.[0];
          return state.list('user', { limit: count, ...(after !== undefined && { after }) }, signal);
        },
        positionOf: ({ id }) => [id],
      });
      return { ...rest, items: items.map((entry) => userView(parseEntry(entry, userRecordSchema))) };
    },
    async disable(userId) {
      await requireOtherAdmin(userId);
      return change(userId, (user) => (user.disabledAtMs === undefined ? { ...user, disabledAtMs: clock.nowMs() } : user));
    },
    enable: (userId) =>
      change(userId, (user) => {
        const { disabledAtMs: _, ...enabled } = user;
        return enabled;
      }),
    async grant(grantee, by) {
      const record = newGrant(grantee, by, clock.nowMs());
      await updateRecord(state, refs.grant(grantNameOf(grantee)), () => record);
      return grantView(record);
    },
  };
}
