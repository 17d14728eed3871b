/**
 * Logins, step by step, and the sessions that they start; identity/login.rules.ts draws the states. Each step may run in a different
 * process: what it needs is in the browser's cookie, in the record left by the issuer's answer, or in the client's code.
 *
 *   begin ──► the issuer ──► its answer ──► user (users.ts), rules ──► session ──► cookie, or code for a client
 *
 * An API key needs no login: authenticate-key.ts creates its caller. What callers may do follows from each operation's scope
 * (identity/authorise.rules.ts), and what they may read from the grants (identity/grants/grants.ts).
 */
import { identityOf, type Identity, matchedRules, notAllowedReason, refusedText, type KnownUser, type LoginRules } from './claims.rules.ts';
import { FaultError } from '../base/fault.ts';
import {
  beginLogin,
  begunLoginOf,
  codeOf,
  consentTokenOf,
  isLoginOver,
  issuerSecretsOf,
  loginIdOf,
  loginNameIn,
  type BegunLogin,
  type LoginRecord,
  type LoginRequest,
  judgeCode,
  loginIdOfCode,
  type Redemption,
} from './login.rules.ts';
import { isSameText, tokenHashOf, isToken, nameFor, type TokenKind } from './tokens.rules.ts';
import { userIdOf, type UserRecord } from './user.rules.ts';
import { RequestError } from '../base/request-error.ts';
import type { Issuer, IssuerRequest, Statement } from './issuer.ts';
import { readRecord, updateRecord, newAuditRecord, storeAuditRecord, removeRecord } from '../store/stored.ts';
import { randomName, randomSecret } from './random-texts.ts';
import type { FailedAttempts } from './audit.ts';
import { readUser, signIn, type SignInParts } from './users.ts';
import type { WithPorts } from '../store/store.ts';
import { refs } from './refs.ts';
import type { SessionActor } from '../base/actor.ts';
import type { AuditParameters } from '../base/audit.ts';
import { isOfSameTime, isSessionOver, isTokenOf, newSession, roleOfSession, type SessionRecord } from './session.rules.ts';

/** Where a request came from, and its id in the audit. */
export interface Origin {
  readonly address?: string | undefined;
  readonly requestId: string;
}

/** Where a login continues after the issuer's answer. */
type Answered =
  /** The consent page is shown. */
  | { readonly kind: 'asking' }
  /** The browser is logged in. */
  | { readonly kind: 'browser'; readonly cookie: string; readonly returnTo: string }
  /** The login has ended. `redirect`: the address of the waiting client. */
  | { readonly kind: 'failed'; readonly error: unknown; readonly redirect: string | undefined };

/** What the consent page shows, and the token that it sends back. */
export interface Consent {
  readonly email: string;
  /** Whether the issuer vouches for the address. */
  readonly emailVerified: boolean;
  readonly userId: string;
  readonly flow: LoginRecord['flow'];
  readonly machine: string | undefined;
  readonly token: string;
}

/** Where the code goes: to the client's address, or to the person. Neither, if the person refused and no client waits. */
interface Decision {
  readonly redirect?: string;
  readonly code?: string;
}

export interface Logins {
  /** Begins a login without storing anything. `cookie` and `location` are for the browser. Throws `request.invalid` and `issuer.unreachable`. */
  begin(request: LoginRequest, signal: AbortSignal): Promise<{ readonly cookie: string; readonly location: string }>;
  /** Handles the browser's return from the issuer. Throws `login.expired` if this browser has not begun such a login. */
  answered(cookie: string, query: string, origin: Origin, signal: AbortSignal): Promise<Answered>;
  /** What the consent page shows. Throws `login.expired`. */
  consent(cookie: string, signal: AbortSignal): Promise<Consent>;
  /** Handles the person's decision. Throws `login.expired`. */
  decide(cookie: string, decision: { readonly token: string; readonly allow: boolean }, origin: Origin): Promise<Decision>;
  /** Resolves with the session for a code. Throws `login.invalid-grant`. */
  redeem(redemption: Redemption, origin: Origin): Promise<StartedSession>;
  /** Ends the caller's session. */
  logOut(actor: SessionActor, origin: Origin): Promise<void>;
  /** The secret that all processes of the registry share; the first to ask for it stores it. Throws the store's fault. */
  sharedKey(): Promise<string>;
}

interface LoginDependencies extends SignInParts, WithPorts<'audit' | 'telemetry'> {
  readonly issuer: Issuer;
  readonly sessions: Pick<Sessions, 'start' | 'end'>;
  /** Counts failures, which anyone can cause. */
  readonly attempts: Pick<FailedAttempts, 'loginFailed'>;
  /** The registry's address for browsers. */
  readonly publicUrl: () => string;
}

/** The path to which the issuer returns the browser. */
const CALLBACK_PATH = '/login/callback';

const expired = (): RequestError =>
  new RequestError('login.expired', 'this login has ended (it lasts 10 minutes) or began in another browser: log in again');

/** Creates the logins. */
export function createLogins(dependencies: LoginDependencies): Logins {
  const { state, clock, issuer, sessions, rules, attempts, publicUrl } = dependencies;

  const requestOf = (name: string, key: string): IssuerRequest => ({
    ...issuerSecretsOf(name, key),
    redirectUri: `${publicUrl()}${CALLBACK_PATH}`,
  });

  async function sharedKey(): Promise<string> {
    const { key } = await updateRecord(state, refs.loginKey, (current) => current ?? { key: randomSecret() }, 'soon');
    return key;
  }

  /** The cookie's login, if the issuer has not answered it yet. */
  async function findBegun(cookie: string, key: string, signal: AbortSignal): Promise<BegunLogin> {
    const login = begunLoginOf(cookie, key, clock.nowMs());
    if (login === undefined || (await readRecord(state, refs.login(login.begun.id), signal)) !== undefined) throw expired();
    return login;
  }

  /** Stores a login after the issuer's answer. Throws `login.expired` if another request was faster. */
  async function storeAnswered(record: LoginRecord): Promise<void> {
    const stored = await updateRecord(state, refs.login(record.id), (current) => (current === undefined ? record : undefined), 'soon');
    if (stored === undefined) throw expired();
  }

  /** The cookie's stored login, if it is at this stage. */
  async function find(cookie: string, stage: LoginRecord['stage'], signal?: AbortSignal): Promise<LoginRecord> {
    const id = loginIdOf(loginNameIn(cookie));
    const record = id === undefined ? undefined : await readRecord(state, refs.login(id), signal);
    if (record?.stage !== stage || isLoginOver(record, clock.nowMs())) throw expired();
    return record;
  }

  /** Moves a login to its next stage. Throws `login.expired` if another request was faster. */
  async function move(record: LoginRecord, next: Partial<LoginRecord>): Promise<void> {
    const moved = await updateRecord(
      state,
      refs.login(record.id),
      (current) => (current?.stage === record.stage ? { ...current, ...next } : undefined),
      'soon',
    );
    if (moved === undefined) throw expired();
  }

  /** The answer to the client that began the login, with this registry's address, so that a client of several never mixes them up (RFC 9207). */
  function redirectOf({ redirectUri, clientState }: BegunLogin['begun'], answer: Readonly<Record<string, string>>): string | undefined {
    if (redirectUri === undefined) return undefined;
    const url = new URL(redirectUri);
    for (const [field, value] of Object.entries({ ...answer, state: clientState ?? '', iss: publicUrl() }))
      url.searchParams.set(field, value);
    return url.href;
  }

  /** The user according to the issuer. Throws `login.refused` for a person who may not log in. */
  async function signedIn({ issuer: tokenIssuer, claims }: Statement, seen: (identity: Identity) => void): Promise<UserRecord> {
    const identity = identityOf(claims, { issuer: tokenIssuer, trustEmail: rules.trustsEmail === true });
    seen(identity);
    const refusal = notAllowedReason(rules, { ...identity, matched: matchedRules(rules, claims) });
    if (refusal !== undefined) throw new RequestError('login.refused', refusedText(identity, refusal));
    const user = await signIn(dependencies, identity, claims);
    if (user.disabledAtMs === undefined) return user;
    throw new RequestError('login.refused', `${user.email} is disabled. Ask an administrator of this registry`);
  }

  /** A failed login leaves nothing: the issuer's code is used up, and the browser drops its cookie. */
  function fail(begun: BegunLogin['begun'], error: unknown, origin: Origin, who: Identity | undefined): Answered {
    const reason = reasonOf(error);
    attempts.loginFailed({
      address: origin.address,
      reason: reason.split(' (the issuer says')[0] ?? '',
      who: who && { ...who, userId: userIdOf(who.issuer, who.subject) },
    });
    return { kind: 'failed', error, redirect: redirectOf(begun, { error: 'access_denied', error_description: reason }) };
  }

  return {
    sharedKey,
    async begin(request, signal) {
      const key = await sharedKey();
      const name = randomSecret();
      const cookie = beginLogin(request, name, key, clock.nowMs());
      if (cookie === undefined) throw new RequestError('request.invalid', 'state: is too long for the cookie of a login');
      return { cookie, location: await issuer.authorizationUrl(requestOf(name, key), signal) };
    },
    async answered(cookie, query, origin, signal) {
      const key = await sharedKey();
      const { name, begun } = await findBegun(cookie, key, signal);
      const request = requestOf(name, key);
      const callback = new URL(`${request.redirectUri}${query}`);
      // another browser's answer must not log this one in (RFC 6819, 4.4.1.8)
      if (!isSameText(callback.searchParams.get('state') ?? '', request.state)) throw expired();
      let identity: Identity | undefined;
      try {
        const statement = await issuer.redeem(request, callback, signal);
        const user = await signedIn(statement, (seen) => (identity = seen));
        // the record stays until the login is over, so that no answer counts twice
        await storeAnswered({ ...begun, stage: begun.flow === 'browser' ? 'redeemed' : 'asking', userId: user.userId });
        if (begun.flow !== 'browser') return { kind: 'asking' };
        const { token } = await sessions.start('browser', user);
        await auditUser(dependencies, 'Login', user, { origin, parameters: loginFacts(user) });
        return { kind: 'browser', cookie: token, returnTo: begun.returnTo ?? '/' };
      } catch (error) {
        if (!isFinal(error)) throw error;
        return fail(begun, error, origin, identity);
      }
    },
    async consent(cookie, signal) {
      const { flow, machine, userId = '' } = await find(cookie, 'asking', signal);
      const user = await readUser(dependencies, userId, signal);
      if (user === undefined) throw expired();
      return { email: user.email, emailVerified: user.emailVerified, userId, flow, machine, token: consentTokenOf(loginNameIn(cookie)) };
    },
    async decide(cookie, { token, allow }, origin) {
      const record = await find(cookie, 'asking');
      if (!isSameText(token, consentTokenOf(loginNameIn(cookie)))) throw expired();
      if (!allow) {
        const user = await readUser(dependencies, record.userId ?? '');
        await move(record, { stage: 'redeemed' });
        attempts.loginFailed({ address: origin.address, reason: 'the person declined on the consent page', who: user });
        const redirect = redirectOf(record, { error: 'access_denied', error_description: 'the person declined in the browser' });
        return redirect === undefined ? {} : { redirect };
      }
      const code = codeOf(record, randomName());
      await move(record, { stage: 'allowed', codeHash: tokenHashOf(code), codeAtMs: clock.nowMs() });
      const redirect = redirectOf(record, { code });
      return redirect === undefined ? { code } : { redirect };
    },
    redeem: (redemption, origin) => redeemCode(dependencies, redemption, origin),
    async logOut(actor, origin) {
      await sessions.end(actor.sessionId);
      await auditUser(dependencies, 'Logout', actor, { origin });
    },
  };
}

/** Whether the login itself failed. Faults of Tally's store are answered as usual, and the browser may try again. */
function isFinal(error: unknown): boolean {
  if (error instanceof RequestError) return error.code === 'login.refused';
  return error instanceof FaultError && (error.code === 'issuer.unreachable' || error.code === 'issuer.refused');
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : 'the login failed';
}

type Verdict = ReturnType<typeof judgeCode>;

const codeReasons: Readonly<Record<Verdict, string>> = {
  ok: 'the user is disabled, or no rule of TALLY_OIDC_ALLOWED applies now',
  unknown: 'the code expired while it was being redeemed',
  spoilt: "the code came with a verifier or redirect URI other than its login's, so Tally invalidated it",
  replayed: 'the code was redeemed twice, so Tally ended its session',
};

/** The same answer to every invalid code, so that it reveals nothing about why. */
function invalidGrant(): RequestError {
  return new RequestError('login.invalid-grant', 'the code is wrong, used or expired: log in again', { error: 'invalid_grant' });
}

async function redeemCode(parts: LoginDependencies, redemption: Redemption, origin: Origin): Promise<StartedSession> {
  const id = loginIdOfCode(redemption.code);
  const record = id === undefined ? undefined : await readRecord(parts.state, refs.login(id));
  const user = record === undefined ? undefined : await readUser(parts, record.userId ?? '');
  if (record === undefined || user === undefined) throw invalidGrant();
  const { session, verdict } = await sessionOf(parts, record, user, redemption);
  if (session === undefined) {
    parts.attempts.loginFailed({ address: origin.address, reason: codeReasons[verdict], who: user });
    throw invalidGrant();
  }
  const { machine } = record;
  await auditUser(parts, 'Login', user, { origin, parameters: { ...loginFacts(user), ...(machine !== undefined && { machine }) } });
  return session;
}

/** Redeems a code. The session is stored first, so that a second redemption finds the session that it must end. */
async function sessionOf(
  parts: LoginDependencies,
  record: LoginRecord,
  user: KnownUser,
  redemption: Redemption,
): Promise<{ readonly session: StartedSession | undefined; readonly verdict: Verdict }> {
  const { sessions, clock } = parts;
  const before = judgeCode(record, redemption, clock.nowMs());
  if (before === 'unknown') throw invalidGrant();
  const session = before === 'ok' && user.isAllowed ? await sessions.start('client', user, record.machine) : undefined;
  const { verdict, former } = await useUp(parts, record.id, redemption, session?.id);
  if (verdict === 'ok') return { session, verdict };
  if (session !== undefined) await sessions.end(session.id);
  if (former !== undefined) await sessions.end(former);
  return { session: undefined, verdict };
}

/** Uses up a code, whether or not it came with the right verifier. `former`: the session for which it was redeemed before. */
async function useUp(
  { state, clock }: LoginDependencies,
  loginId: string,
  redemption: Redemption,
  sessionId: string | undefined,
): Promise<{ readonly verdict: Verdict; readonly former: string | undefined }> {
  const judged: { verdict: Verdict; former: string | undefined } = { verdict: 'unknown', former: undefined };
  await updateRecord(
    state,
    refs.login(loginId),
    (current) => {
      judged.verdict = current === undefined ? 'unknown' : judgeCode(current, redemption, clock.nowMs());
      judged.former = current?.sessionId;
      if (current === undefined || !['ok', 'spoilt'].includes(judged.verdict)) return undefined;
      return { ...current, stage: 'redeemed' as const, ...(judged.verdict === 'ok' && sessionId !== undefined && { sessionId }) };
    },
    'soon',
  );
  return judged;
}

/** What a login's audit record names. */
function loginFacts({ role, groupsLeftOut }: Pick<KnownUser, 'role' | 'groupsLeftOut'>): AuditParameters {
  return { role, ...(groupsLeftOut === true && { groups_left_out: true }) };
}

/** A user as stored, or as a session's actor. */
type AuditedUser = Pick<SessionActor, 'userId' | 'email' | 'role' | 'isUnverified'> & Partial<Pick<UserRecord, 'emailVerified'>>;

/** Records a user's action in the audit. Never rejects. */
async function auditUser(
  parts: LoginDependencies,
  event: 'Login' | 'Logout',
  { userId, email, role, isUnverified, emailVerified }: AuditedUser,
  { origin: { address, requestId }, parameters = {} }: { readonly origin: Origin; readonly parameters?: AuditParameters },
): Promise<void> {
  const marks = (isUnverified === true || emailVerified === false) && ({ isUnverified: true } as const);
  const actor = { kind: 'session', userId, email, ...marks, role, sessionId: '', ...(address !== undefined && { address }) } as const;
  const record = newAuditRecord({ event, actor, requestId, outcome: 'done', atMs: parts.clock.nowMs(), parameters });
  await storeAuditRecord(parts, record);
}

// ── sessions, which logins start, and which each request checks together with their users ──────────────────────────

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
