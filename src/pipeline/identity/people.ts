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
import type { LiveKeys } from './live-keys.ts';

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
  readonly liveKeys?: Pick<LiveKeys, 'forgetAll'>;
}

/** Creates the functions. */
export function createPeople({ state, clock, hasAdminRule, liveKeys }: PeopleDependencies): People {
  async function change(userId: string, next: (user: UserRecord) => UserRecord): Promise<User> {
    const stored = await updateRecord(state, refs.user(userId), (user) => (user === undefined ? undefined : next(user)));
    liveKeys?.forgetAll();
    if (stored === undefined)
      throw new RequestError('user.not-found', `no user has the id ${userId}; \`tally admin users list\` shows all users`);
    return userView(stored);
  }

  async function enabledAdmins(): Promise<readonly UserRecord[]> {
    return (await listAllRecords(state, 'user', userRecordSchema)).filter(
      ({ roleSource, disabledAtMs }) => roleSource === 'grant' && disabledAtMs === undefined,
    );
  }

  function lastAdministrator({ email }: Pick<User, 'email'>): RequestError {
    return new RequestError(
      'user.last-administrator',
      `${email} is the last administrator: appoint another one first with \`tally admin grant EMAIL\`, or set TALLY_OIDC_ADMIN_EMAILS or TALLY_OIDC_ADMIN_CLAIM`,
    );
  }

  const enable = (userId: string): Promise<User> =>
    change(userId, (user) => {
      const { disabledAtMs: _, ...enabled } = user;
      return enabled;
    });

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
      const admins = hasAdminRule ? [] : await enabledAdmins();
      const [last] = admins.length === 1 ? admins : [];
      if (last?.userId === userId) throw lastAdministrator(last);
      const disabled = await change(userId, (user) =>
        user.disabledAtMs === undefined ? { ...user, disabledAtMs: clock.nowMs(), disabledCount: (user.disabledCount ?? 0) + 1 } : user,
      );
      // administrators who disable each other at the same moment: each of them sees afterwards what the other has done
      if (admins.some((admin) => admin.userId === userId) && (await enabledAdmins()).length === 0) {
        await enable(userId);
        throw lastAdministrator(disabled);
      }
      return disabled;
    },
    enable,
    async grant(grantee, by) {
      const record = newGrant(grantee, by, clock.nowMs());
      await updateRecord(state, refs.grant(grantNameOf(grantee)), () => record);
      return grantView(record);
    },
  };
}
