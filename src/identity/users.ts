/** Users as stored, and what a login or an appointment changes about them. */
import { groupsOf, type Claims, type Identity } from './claims.rules.ts';
import { isOfIssuer, knownUserOf, matchedRules, roleOf, type KnownUser, type LoginRules } from './login-rules.rules.ts';
import { userIdOf, type UserRecord, appointeesOf, appointmentNameOf, isAppointmentOver, type Appointment } from './user.rules.ts';
import type { StateStore, WithPorts } from '../store/store.ts';
import { readRecord, removeRecord, updateRecord } from '../store/stored.ts';
import type { LiveKeys } from './authenticate-key.ts';
import { refs } from './refs.ts';

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
  return store(parts, identity, (current) => {
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
export async function takeAppointments(parts: SignInParts, userId: string): Promise<UserRecord | undefined> {
  // read again: a login may just have shown that the address is someone else's
  const user = await readUser(parts, userId);
  return user?.isAllowed === true ? store(parts, user, (current) => current ?? user) : undefined;
}

/** Stores what `change` makes of the user, with the resulting role, and uses up the appointments. */
async function store(
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
