/** Users as stored: what a login or an appointment changes about them, and administrators' operations on them. */
import {
  groupsOf,
  type Claims,
  type Identity,
  isOfIssuer,
  knownUserOf,
  matchedRules,
  roleOf,
  type KnownUser,
  type LoginRules,
} from './claims.rules.ts';
import {
  userIdOf,
  type UserRecord,
  appointeesOf,
  appointmentNameOf,
  isAppointmentOver,
  type Appointment,
  userRecordSchema,
  appointmentSchema,
  newAppointment,
  type Appointee,
} from './user.rules.ts';
import type { StateStore, WithPorts } from '../store/store.ts';
import { readRecord, removeRecord, updateRecord, readEntries, listAllRecords, parseEntry } from '../store/stored.ts';
import type { LiveKeys } from './authenticate-key.ts';
import { refs } from './refs.ts';
import { userView, type Person, type User, type UserChange, type UsersAnswer, type UsersRequest } from '../registry/contract/users.ts';
import { RequestError } from '../base/request-error.ts';
import { omit } from '../base/defined.ts';

/** Reads a user in realtime, as the settings see it now; undefined if no such user has logged in at this issuer. */
export async function readUser(
  { state, rules }: { readonly state: StateStore; readonly rules: LoginRules },
  userId: string,
  signal?: AbortSignal,
): Promise<KnownUser | undefined> {
  const user = await readRecord(state, refs.user(userId), signal);
  return user !== undefined && isOfIssuer(rules, user) ? knownUserOf(rules, user) : undefined;
}

export interface SignInParts extends WithPorts<'state' | 'clock'> {
  readonly rules: LoginRules;
  /** This process's cache of keys in use: a login changes what the person's keys may do. */
  readonly liveKeys?: Pick<LiveKeys, 'forgetAll'> | undefined;
}

/** Stores a person's login, with the role that follows from the claims or from an appointment. The user may be disabled. */
export function signIn(parts: SignInParts, identity: Identity, claims: Claims): Promise<UserRecord> {
  const { clock, rules } = parts;
  return storeUser(parts, identity, (current) => {
    const nowMs = clock.nowMs();
    return {
      createdAtMs: nowMs,
      ...current,
      userId: userIdOf(identity.issuer, identity.subject),
      ...identity,
      issuerSetting: rules.issuer,
      matched: matchedRules(rules, claims),
      groupsLeftOut: undefined,
      ...groupsOf(claims, rules.groupsClaim ?? 'groups'),
      lastLoginAtMs: nowMs,
    };
  });
}

/** Gives a user the waiting appointments, as a login does; undefined if the user is not let in now. */
async function takeAppointments(parts: SignInParts, userId: string): Promise<UserRecord | undefined> {
  // read again: a login may just have shown that the address is someone else's
  const user = await readUser(parts, userId);
  return user?.isAllowed === true ? storeUser(parts, user, (current) => current ?? user) : undefined;
}

/** Stores what `change` makes of the user, with the resulting role, and uses up the appointments. */
async function storeUser(
  parts: SignInParts,
  identity: Identity,
  change: (current: UserRecord | undefined) => Omit<UserRecord, 'role' | 'roleSource'>,
): Promise<UserRecord> {
  const { state, rules, liveKeys } = parts;
  const appointments: string[] = [];
  let appointedBy: string | undefined;
  for (const name of await appointmentsFor(parts, identity)) {
    const bound = await bind(parts, identity, name);
    if (bound === undefined) continue;
    appointments.push(name);
    appointedBy = bound.appointed_by;
  }
  // waits until lists show it, because lists decide who is the last administrator and whom an appointment means
  const stored = await updateRecord(state, refs.user(userIdOf(identity.issuer, identity.subject)), (current) => {
    const next = change(current);
    const isAppointed = appointments.length > 0 || current?.roleSource === 'appointment';
    return { ...next, ...(appointedBy !== undefined && { appointedBy }), ...roleOf(rules, next, isAppointed) };
  });
  liveKeys?.forgetAll();
  // after the role is stored, so that no appointment is lost if the process ends in between
  await Promise.all(appointments.map((name) => removeRecord(state, refs.appointment(name).id)));
  return stored;
}

/** The stored names of appointments meant for the user and not already taken by someone else. They wait while the user is disabled. */
async function appointmentsFor({ state, clock }: SignInParts, user: Identity): Promise<readonly string[]> {
  const known = await readRecord(state, refs.user(userIdOf(user.issuer, user.subject)));
  if (known?.disabledAtMs !== undefined) return [];
  const names = appointeesOf(user).map(appointmentNameOf);
  const found = await Promise.all(names.map((name) => readRecord(state, refs.appointment(name))));
  return names.filter((_, index) => isFor(user, found[index], clock.nowMs()));
}

/** Takes an appointment for this user; undefined if another user with the same address was faster. */
async function bind({ state, clock }: SignInParts, user: Identity, name: string): Promise<Appointment | undefined> {
  const boundTo = userIdOf(user.issuer, user.subject);
  return updateRecord(
    state,
    refs.appointment(name),
    (appointment) => (isFor(user, appointment, clock.nowMs()) ? { ...appointment, bound_to: boundTo } : undefined),
    'soon',
  );
}

function isFor({ issuer, subject }: Identity, appointment: Appointment | undefined, nowMs: number): appointment is Appointment {
  if (appointment === undefined || isAppointmentOver(appointment, nowMs)) return false;
  return (appointment.bound_to ?? userIdOf(issuer, subject)) === userIdOf(issuer, subject);
}

// ── list, disable, enable, and appoint and dismiss other administrators ────────────────────────────────────────────

export function createPeople(parts: SignInParts) {
  const { state, clock, rules, liveKeys } = parts;

  async function store(userId: string, next: (user: UserRecord) => UserRecord): Promise<UserRecord> {
    const stored = await updateRecord(state, refs.user(userId), (user) => (user === undefined ? undefined : next(user)));
    liveKeys?.forgetAll();
    return stored ?? refuse(userId);
  }

  const shown = (user: UserRecord): User => userView(knownUserOf(rules, user));

  /** The issuer's users whose sessions and keys are accepted. */
  async function allowedUsers(): Promise<readonly KnownUser[]> {
    const users = (await listAllRecords(state, 'user', userRecordSchema)).filter((user) => isOfIssuer(rules, user));
    return users.map((user) => knownUserOf(rules, user)).filter(({ isAllowed }) => isAllowed);
  }

  /** Only people who have logged in: someone whom a setting names but who never logged in cannot enable anyone yet. */
  async function enabledAdmins(): Promise<readonly UserRecord[]> {
    return (await allowedUsers()).filter(({ role }) => role === 'admin');
  }

  /** The user whom an appointment means. If several have the verified address, the latest to log in, because the others may have lost it. */
  async function userOf(appointee: Appointee): Promise<UserRecord | undefined> {
    // a former issuer's users are not meant, and only the settings tell them apart
    if (rules.issuer === undefined) return undefined;
    const name = appointmentNameOf(appointee);
    const meant = (await allowedUsers()).filter((user) => appointeesOf(user).some((each) => appointmentNameOf(each) === name));
    return meant.toSorted((a, b) => b.lastLoginAtMs - a.lastLoginAtMs)[0];
  }

  /** Removes what makes a user an administrator. */
  async function take(userId: string, change: (user: UserRecord) => UserRecord): Promise<User> {
    const admins = await enabledAdmins();
    const [last] = admins.length === 1 ? admins : [];
    if (last?.userId === userId) throw lastAdministrator(last);
    return shown(await store(userId, change));
  }

  const disabled = (user: UserRecord): UserRecord =>
    user.disabledAtMs === undefined ? { ...user, disabledAtMs: clock.nowMs(), disabledCount: (user.disabledCount ?? 0) + 1 } : user;

  /** The user without an appointment. Throws `user.role-by-rule` if the settings make the user an administrator too. */
  function dismissed(user: UserRecord): UserRecord {
    const byRules = roleOf(rules, knownUserOf(rules, user), false);
    if (byRules.role === 'admin') {
      throw new RequestError(
        'user.role-by-rule',
        `TALLY_OIDC_ADMIN_CLAIM or TALLY_OIDC_ADMIN_EMAILS makes ${user.email} an administrator: change the setting or the claim, or disable the user`,
      );
    }
    return { ...omit(user, 'appointedBy'), ...byRules };
  }

  async function appoint(appointee: Appointee, by: string): Promise<Person> {
    const record = newAppointment(appointee, by, clock.nowMs());
    // stored before the users are read, so that a person who logs in at this moment receives it too
    await updateRecord(state, refs.appointment(appointmentNameOf(appointee)), () => record);
    const user = await userOf(appointee);
    const appointed = user && (await takeAppointments(parts, user.userId));
    return appointed?.roleSource === 'appointment' ? { user: shown(appointed) } : { waiting: record };
  }

  /** Removes the person's waiting appointments; false if there are none. */
  async function withdraw(appointees: readonly Appointee[]): Promise<boolean> {
    const waiting = await Promise.all(
      appointees.map(async (appointee) => {
        const ref = refs.appointment(appointmentNameOf(appointee));
        const record = await readRecord(state, ref);
        if (record === undefined || isAppointmentOver(record, clock.nowMs())) return false;
        await removeRecord(state, ref.id);
        return true;
      }),
    );
    return waiting.includes(true);
  }

  async function dismiss(person: string): Promise<Person> {
    const appointee = appointeeOf(person);
    const user = appointee === undefined ? await readRecord(state, refs.user(person)) : await userOf(appointee);
    const isWithdrawn = await withdraw([
      ...(appointee === undefined ? [] : [appointee]),
      ...(user === undefined ? [] : appointeesOf(user)),
    ]);
    if (user !== undefined) return { user: await take(user.userId, dismissed) };
    return isWithdrawn ? {} : refuse(person);
  }

  return {
    /** Lists the users, with waiting appointments on the first page. */
    async list(request: UsersRequest, signal: AbortSignal): Promise<UsersAnswer> {
      const { items, ...rest } = await readEntries(state, 'user', request, signal);
      const appointments = request.cursor === undefined ? await listAllRecords(state, 'appointment', appointmentSchema) : [];
      return {
        ...rest,
        items: items.map((entry) => shown(parseEntry(entry, userRecordSchema))),
        waiting: appointments.filter((record) => !isAppointmentOver(record, clock.nowMs())).map((record) => omit(record, 'bound_to')),
      };
    },
    /**
     * Disables or enables a user, or gives a person a role: an appointment counts at once if the person is known to the issuer's
     * logins, otherwise from the next login on. Throws `user.not-found`; `user.last-administrator` for the last enabled
     * administrator, whatever made that one; and `user.role-by-rule` if only the settings can take the role away.
     */
    async change(person: string, wanted: UserChange, by: string): Promise<Person> {
      if ('role' in wanted) {
        if (wanted.role === 'user') return dismiss(person);
        const appointee = appointeeOf(person) ?? { sub: ((await readRecord(state, refs.user(person))) ?? refuse(person)).subject };
        return appoint(appointee, by);
      }
      return { user: wanted.disabled ? await take(person, disabled) : shown(await store(person, (user) => omit(user, 'disabledAtMs'))) };
    },
  };
}

/** The person whom an address or `sub:SUBJECT` means; undefined for a user's id. */
function appointeeOf(person: string): Appointee | undefined {
  if (person.startsWith('sub:')) return { sub: person.slice('sub:'.length) };
  return person.includes('@') ? { email: person } : undefined;
}

function refuse(person: string): never {
  throw new RequestError('user.not-found', `there is no user or appointment ${person}: \`tally admin users list\` shows both`);
}

function lastAdministrator({ email }: Pick<User, 'email'>): RequestError {
  return new RequestError(
    'user.last-administrator',
    `${email} is the last administrator who has logged in: first appoint another (\`tally admin appoint EMAIL\`, TALLY_OIDC_ADMIN_EMAILS or TALLY_OIDC_ADMIN_CLAIM) and have them log in`,
  );
}
