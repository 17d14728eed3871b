/** Sessions: created by logins, renewed by refresh tokens, ended by logout and by the reuse of a token. */
import { z } from 'zod';
import type { Actor } from '../../domain/identity/actor.ts';
import type { AuditEvent, AuditParameters } from '../../domain/identity/audit.ts';
import { notAllowedReason, type AllowingRules } from '../../domain/identity/login-rules.ts';
import {
  acceptsAccess,
  acceptsCookie,
  isOfEnabledUser,
  newBrowserSession,
  newClientSession,
  refreshed,
  sessionIdOf,
  type Refreshed,
  type SessionRecord,
  type TokenPair,
} from '../../domain/identity/session.ts';
import type { UserRecord } from '../../domain/identity/user.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { readRecord, refs, removeRecord, updateRecord } from '../records/stored.ts';
import type { SignIns } from './users.ts';

export type SessionActor = Extract<Actor, { kind: 'session' }>;

/** Where a request came from, and its id in the audit. */
export interface Origin {
  readonly address?: string | undefined;
  readonly requestId: string;
}

/** A user as stored, or as the actor of a session. */
type AuditedUser = Pick<SessionActor, 'userId' | 'email' | 'role' | 'isUnverified'> & Partial<Pick<UserRecord, 'emailVerified'>>;

/** Records in the audit what has happened to a user. Never rejects. */
export type AuditUser = (
  event: AuditEvent,
  who: AuditedUser | undefined,
  fact: { readonly origin: Origin; readonly reason?: string; readonly parameters?: AuditParameters },
) => Promise<void>;

export interface Sessions {
  /** Stores a session of a program and resolves with its id and its first tokens. */
  startClient(user: UserRecord, machine: string | undefined): Promise<TokenPair & { readonly id: string }>;
  /** Stores a session of a browser and resolves with its cookie. */
  startBrowser(user: UserRecord): Promise<string>;
  /** Who sends an access token; undefined if it is not valid now, or its user is disabled or was since the login. */
  byAccess(token: string, signal: AbortSignal): Promise<SessionActor | undefined>;
  /** Who sends a cookie; undefined if it is not valid now, its user is disabled or was since the login, or the user's role has changed since the login. */
  byCookie(cookie: string, signal: AbortSignal): Promise<SessionActor | undefined>;
  /** Resolves with new tokens for a refresh token. Throws `login.invalid-grant`. */
  refresh(token: string, origin: Origin): Promise<TokenPair>;
  /** Whether an access or a refresh token names a session that has not ended. Such a token was valid once: it is no guess. */
  isOfSession(token: string, signal?: AbortSignal): Promise<boolean>;
  /** Ends a session, whether or not it exists. */
  end(sessionId: string): Promise<void>;
  /** Ends the session of a cookie. Any other text ends nothing. */
  endByCookie(cookie: string): Promise<void>;
}

interface SessionDependencies {
  readonly state: StateStore;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly users: Pick<SignIns, 'get' | 'ruledAgain'>;
  readonly rules: AllowingRules;
  readonly audit: AuditUser;
}

/** The one answer to every refresh token and code that is not valid, so that it shows nothing about why. */
export function invalidGrant(): RequestError {
  return new RequestError('login.invalid-grant', 'the code or the refresh token is not valid (any more): log in again', {
    error: 'invalid_grant',
  });
}

/** Creates the sessions. */
export function createSessions({ state, clock, users, rules, audit }: SessionDependencies): Sessions {
  async function store(record: SessionRecord): Promise<void> {
    // no list decides anything about sessions, so none has to show it at once
    await updateRecord(state, refs.session(record.id), () => record, 'soon');
  }

  const end = (sessionId: string): Promise<void> => removeRecord(state, refs.session(sessionId).id);

  async function actorOf(record: SessionRecord | undefined, signal: AbortSignal): Promise<SessionActor | undefined> {
    const user = record === undefined ? undefined : await users.get(record.userId, signal);
    if (record === undefined || user === undefined || !isOfEnabledUser(record, user)) return undefined;
    const { userId, email, emailVerified, role } = user;
    return { kind: 'session', userId, email, ...(!emailVerified && { isUnverified: true }), role, sessionId: record.id };
  }

  async function read(kind: 'access' | 'refresh' | 'cookie', token: string, signal?: AbortSignal): Promise<SessionRecord | undefined> {
    const id = sessionIdOf(kind, token);
    return id === undefined ? undefined : readRecord(state, refs.session(id), signal);
  }

  function refusalOf(record: SessionRecord, user: UserRecord): string | undefined {
    if (!isOfEnabledUser(record, user)) return 'the user is disabled, or was since the login';
    return notAllowedReason(rules, user);
  }

  /** The user of a session that is to be renewed. A user who may log in no longer loses the session. */
  async function userAtRefresh(record: SessionRecord, origin: Origin): Promise<UserRecord> {
    const user = await users.ruledAgain(record.userId);
    const reason = user === undefined ? 'no user of TALLY_OIDC_ISSUER has this session' : refusalOf(record, user);
    if (user !== undefined && reason === undefined) return user;
    await end(record.id);
    await audit('LoginFailed', user, { origin, reason: `${reason}, so the session was ended` });
    throw invalidGrant();
  }

  return {
    end,
    async endByCookie(cookie) {
      const record = await read('cookie', cookie);
      if (record !== undefined && acceptsCookie(record, cookie, clock.nowMs())) await end(record.id);
    },
    async startClient(user, machine) {
      const { record, access, refresh } = newClientSession({ ...user, nowMs: clock.nowMs(), machine });
      await store(record);
      return { id: record.id, access, refresh };
    },
    async startBrowser(user) {
      const { record, cookie } = newBrowserSession({ ...user, nowMs: clock.nowMs() });
      await store(record);
      return cookie;
    },
    async byAccess(token, signal) {
      const record = await read('access', token, signal);
      return record !== undefined && acceptsAccess(record, token, clock.nowMs()) ? actorOf(record, signal) : undefined;
    },
    async isOfSession(token, signal) {
      return (await read('access', token, signal)) !== undefined || (await read('refresh', token, signal)) !== undefined;
    },
    async byCookie(cookie, signal) {
      const record = await read('cookie', cookie, signal);
      if (record === undefined || !acceptsCookie(record, cookie, clock.nowMs())) return undefined;
      const actor = await actorOf(record, signal);
      // a cookie that was seen by others before does not gain the rights that its user receives now
      return actor?.role === record.role ? actor : undefined;
    },
    async refresh(token, origin) {
      const current = await read('refresh', token);
      if (current === undefined) throw invalidGrant();
      const user = await userAtRefresh(current, origin);
      const outcome: { result?: Refreshed | undefined } = {};
      await updateRecord(
        state,
        refs.session(current.id),
        (record) => {
          outcome.result = record === undefined ? undefined : refreshed(record, token, clock.nowMs());
          return outcome.result?.kind === 'refreshed' ? outcome.result.record : undefined;
        },
        'soon',
      );
      const { result } = outcome;
      switch (result?.kind) {
        case 'refreshed':
          return result;
        case 'reused':
          await end(current.id);
          await audit('SessionRefreshReused', user, {
            origin,
            reason: 'a refresh token was used again after its successor, so it was copied, and the session was ended',
            parameters: machineOf(current),
          });
          throw invalidGrant();
        case 'idle':
        case 'crowded':
        case undefined:
          throw invalidGrant();
      }
    },
  };
}

const machineSchema = z.object({ machine: z.string().exactOptional() });

function machineOf(record: SessionRecord): AuditParameters {
  return machineSchema.parse(record);
}
