/** What administrators do about users: list, disable, enable, and appoint other administrators. */
import {
  type AppointmentAnswer,
  type AppointmentRequest,
  type AppointmentsRequest,
  type User,
  type UsersRequest,
  appointmentView,
  userView,
} from '../../api/users.ts';
import {
  appointeesOf,
  appointmentNameOf,
  appointmentSchema,
  isAppointmentOver,
  newAppointment,
} from '../../domain/identity/appointment.ts';
import { isOfIssuer, knownUserOf, type KnownUser, type LoginRules } from '../../domain/identity/login-rules.ts';
import { userRecordSchema, type UserRecord } from '../../domain/identity/user.ts';
import { RequestError } from '../../domain/request-error.ts';
import { type Page, readEntries } from '../records/pages.ts';
import { listAllRecords, parseEntry, readRecord, refs, removeRecord, updateRecord } from '../records/stored.ts';
import type { LiveKeys } from './live-keys.ts';
import { createSignIns } from './users.ts';
import type { WithPorts } from '../ports/ports.ts';
import { omit } from '../../domain/defined.ts';

export interface People {
  list(request: UsersRequest, signal: AbortSignal): Promise<Page<User>>;
  /** Throws `user.not-found`, and `user.last-administrator` for the last enabled administrator, whatever made that one. */
  disable(userId: string): Promise<User>;
  /** Throws `user.not-found`. */
  enable(userId: string): Promise<User>;
  /** Makes an administrator of the person: at once if it is known to the issuer's logins, otherwise at the next login. */
  appoint(appointee: AppointmentRequest, by: string): Promise<AppointmentAnswer>;
  /** Lists the appointments that wait. A page may have fewer items than its limit, because appointments that have ended are left out. */
  listAppointments(request: AppointmentsRequest, signal: AbortSignal): Promise<Page<AppointmentAnswer>>;
  /** Removes an appointment that waits, and resolves with what it was. Throws `appointment.not-found`. */
  withdraw(appointee: AppointmentRequest): Promise<AppointmentAnswer>;
}

interface PeopleDependencies extends WithPorts<'state' | 'clock'> {
  readonly rules: LoginRules;
  readonly liveKeys?: Pick<LiveKeys, 'forgetAll'>;
}

export function createPeople({ state, clock, rules, liveKeys }: PeopleDependencies): People {
  const signIns = createSignIns({ state, clock, rules, liveKeys });

  async function change(userId: string, next: (user: UserRecord) => UserRecord): Promise<User> {
    const stored = await updateRecord(state, refs.user(userId), (user) => (user === undefined ? undefined : next(user)));
    liveKeys?.forgetAll();
    if (stored === undefined)
      throw new RequestError('user.not-found', `no user has the id ${userId}; \`tally admin users list\` shows all users`);
    return userView(knownUserOf(rules, stored));
  }

  /** The users of the issuer whose sessions and keys are accepted. */
  async function allowedUsers(): Promise<readonly KnownUser[]> {
    const users = (await listAllRecords(state, 'user', userRecordSchema)).filter((user) => isOfIssuer(rules, user));
    return users.map((user) => knownUserOf(rules, user)).filter(({ isAllowed }) => isAllowed);
  }

  /** Of people who have logged in: those whom a setting names and who have not cannot enable anyone yet. */
  async function enabledAdmins(): Promise<readonly UserRecord[]> {
    return (await allowedUsers()).filter(({ role }) => role === 'admin');
  }

  /** The user whom an appointment means; of several with one verified address the one who logged in last, because the others may have had it before. */
  async function userOf(appointee: AppointmentRequest): Promise<UserRecord | undefined> {
    // the users of a former issuer are not meant, and only the settings tell them apart
    if (rules.issuer === undefined) return undefined;
    const name = appointmentNameOf(appointee);
    const meant = (await allowedUsers()).filter((user) => appointeesOf(user).some((each) => appointmentNameOf(each) === name));
    return meant.toSorted((a, b) => b.lastLoginAtMs - a.lastLoginAtMs)[0];
  }

  function lastAdministrator({ email }: Pick<User, 'email'>): RequestError {
    return new RequestError(
      'user.last-administrator',
      `${email} is the last administrator who has logged in: let another one log in first, whom \`tally admin appoint EMAIL\`, TALLY_OIDC_ADMIN_EMAILS or TALLY_OIDC_ADMIN_CLAIM appoints`,
    );
  }

  const enable = (userId: string): Promise<User> => change(userId, (user) => omit(user, 'disabledAtMs'));

  return {
    async list(request, signal) {
      const { items, ...rest } = await readEntries(state, 'user', request, signal);
      return { ...rest, items: items.map((entry) => userView(knownUserOf(rules, parseEntry(entry, userRecordSchema)))) };
    },
    async disable(userId) {
      const admins = await enabledAdmins();
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
    async appoint(appointee, by) {
      const record = newAppointment(appointee, by, clock.nowMs());
      // it waits before the users are read, so that a person who logs in at this moment receives it too
      await updateRecord(state, refs.appointment(appointmentNameOf(appointee)), () => record);
      const user = await userOf(appointee);
      const appointed = user && (await signIns.takeAppointments(user.userId));
      return { ...appointmentView(record), user_id: appointed?.roleSource === 'appointment' ? appointed.userId : undefined };
    },
    async listAppointments(request, signal) {
      const { items, ...rest } = await readEntries(state, 'appointment', request, signal);
      const records = items.map((entry) => parseEntry(entry, appointmentSchema));
      return { ...rest, items: records.filter((record) => !isAppointmentOver(record, clock.nowMs())).map(appointmentView) };
    },
    async withdraw(appointee) {
      const ref = refs.appointment(appointmentNameOf(appointee));
      const record = await readRecord(state, ref);
      if (record === undefined || isAppointmentOver(record, clock.nowMs())) {
        const who = 'email' in appointee ? appointee.email : appointee.sub;
        throw new RequestError(
          'appointment.not-found',
          `no appointment waits for ${who}; \`tally admin appointments\` shows those that wait`,
        );
      }
      await removeRecord(state, ref.id);
      return appointmentView(record);
    },
  };
}
