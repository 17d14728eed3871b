/** Sessions, which logins start, and which each request checks together with their users. */
import type { SessionActor } from '../base/actor.ts';
import type { KnownUser, LoginRules } from './claims.rules.ts';
import { isOfSameTime, isSessionOver, isTokenOf, newSession, roleOfSession, type SessionRecord } from './session.rules.ts';
import { isToken, nameFor, type TokenKind } from './tokens.rules.ts';
import type { UserRecord } from './user.rules.ts';
import { readRecord, removeRecord, updateRecord } from '../store/stored.ts';
import { randomSecret } from './random-texts.ts';
import { readUser } from './users.ts';
import type { WithPorts } from '../store/store.ts';
import { refs } from './refs.ts';

export interface StartedSession {
  readonly id: string;
  readonly token: string;
  /** How long it lasts. */
  readonly lifeMs: number;
}

/** Why a token is refused. The audit shows it; callers do not see it. */
type SessionRefusal = 'not valid' | 'ended' | 'of a user who may not log in' | 'of a user with another role';

export interface Sessions {
  /** Stores a new session. `machine`: the machine's name, as the client sent it. */
  start(kind: TokenKind, user: UserRecord, machine?: string): Promise<StartedSession>;
  /** Who sends the token, which must be of this kind of session, or why it is refused. Session and user are read in realtime. */
  check(kind: TokenKind, token: string, signal: AbortSignal): Promise<SessionActor | SessionRefusal>;
  /** Ends a session, whether or not it exists. */
  end(sessionId: string): Promise<void>;
  /** Ends a cookie's session. Any other text ends nothing. */
  endByCookie(cookie: string): Promise<void>;
}

interface SessionDependencies extends WithPorts<'state' | 'clock'> {
  readonly rules: LoginRules;
  /** How long programs' sessions last. */
  readonly days: number;
}

/** Creates the sessions. */
export function createSessions({ state, clock, rules, days }: SessionDependencies): Sessions {
  const end = (sessionId: string): Promise<void> => removeRecord(state, refs.session(sessionId).id);

  async function find(kind: TokenKind, token: string, signal?: AbortSignal): Promise<SessionRecord | undefined> {
    if (!isToken(kind, token)) return undefined;
    const record = await readRecord(state, refs.session(nameFor('tally-session-id', token)), signal);
    return record?.kind === kind && isTokenOf(record, token) ? record : undefined;
  }

  function actorOf(record: SessionRecord, user: KnownUser | undefined): SessionActor | SessionRefusal {
    if (user?.isAllowed !== true || !isOfSameTime(record, user)) return 'of a user who may not log in';
    const role = roleOfSession(record, user, clock.nowMs());
    // a cookie that others may have seen must not gain the rights that its user receives now
    if (record.kind === 'browser' && role !== record.role) return 'of a user with another role';
    const { userId, email, emailVerified, groups } = user;
    const marks = !emailVerified && { isUnverified: true as const };
    return { kind: 'session', userId, email, ...marks, role, ...(groups && { groups }), sessionId: record.id };
  }

  return {
    end,
    async endByCookie(cookie) {
      const record = await find('browser', cookie);
      if (record !== undefined) await end(record.id);
    },
    async start(kind, user, machine) {
      const { record, token } = newSession({ kind, secret: randomSecret(), user, machine, nowMs: clock.nowMs(), days });
      // nothing is decided by lists of sessions, so it needn't be in one at once
      await updateRecord(state, refs.session(record.id), () => record, 'soon');
      return { id: record.id, token, lifeMs: record.endsAtMs - record.createdAtMs };
    },
    async check(kind, token, signal) {
      const record = await find(kind, token, signal);
      if (record === undefined) return 'not valid';
      if (isSessionOver(record, days, clock.nowMs())) return 'ended';
      return actorOf(record, await readUser({ state, rules }, record.userId, signal));
    },
  };
}
