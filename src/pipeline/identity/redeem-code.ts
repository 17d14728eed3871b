/** Codes are exchanged for the token of a session, once. */
import { judgeCode, loginIdOfCode, type LoginRecord, type Redemption } from '../../domain/identity/login.ts';
import type { KnownUser } from '../../domain/identity/login-rules.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { readRecord, refs, updateRecord } from '../records/stored.ts';
import type { FailedAttempts } from './failed-attempts.ts';
import { loginFacts, type AuditUser, type Origin, type Sessions, type StartedSession } from './sessions.ts';
import type { Users } from './users.ts';

interface RedeemDependencies {
  readonly state: StateStore;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly users: Users;
  readonly sessions: Pick<Sessions, 'start' | 'end'>;
  readonly audit: AuditUser;
  readonly attempts: Pick<FailedAttempts, 'loginFailed'>;
}

/** Resolves with the session for a code. Throws `login.invalid-grant`. */
export type RedeemCode = (redemption: Redemption, origin: Origin) => Promise<StartedSession>;

type Verdict = ReturnType<typeof judgeCode>;

const codeReasons: Readonly<Record<Verdict, string>> = {
  ok: 'the user is disabled, or no rule of TALLY_OIDC_ALLOWED applies any more',
  unknown: 'the code ended while it was redeemed',
  spoilt: 'the code was redeemed with another verifier or redirect URI than those of the login, so it is not valid any more',
  replayed: 'the code was redeemed a second time, so the session of the first time was ended',
};

/** The one answer to every code that is not valid, so that it shows nothing about why. */
function invalidGrant(): RequestError {
  return new RequestError('login.invalid-grant', 'the code is not valid (any more): log in again', { error: 'invalid_grant' });
}

/** Creates the function. */
export function createRedeemCode({ state, clock, users, sessions, audit, attempts }: RedeemDependencies): RedeemCode {
  /** Redeems a code: the session is stored first, so that a second redemption finds what it must end. */
  async function redeemOf(record: LoginRecord, user: KnownUser, redemption: Redemption, origin: Origin): Promise<StartedSession> {
    const before = judgeCode(record, redemption, clock.nowMs());
    if (before === 'unknown') throw invalidGrant();
    const session = before === 'ok' && user.isAllowed ? await sessions.start('client', user, record.machine) : undefined;
    const { verdict, former } = await use(record.id, redemption, session?.id);
    if (verdict === 'ok' && session !== undefined) {
      const { machine } = record;
      await audit('Login', user, { origin, parameters: { ...loginFacts(user), ...(machine !== undefined && { machine }) } });
      return session;
    }
    if (session !== undefined) await sessions.end(session.id);
    if (former !== undefined) await sessions.end(former);
    attempts.loginFailed({ address: origin.address, reason: codeReasons[verdict], who: user });
    throw invalidGrant();
  }

  /** Uses a code up, whether or not it came with the right verifier. `former`: the session that it was redeemed for before. */
  async function use(
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

  return async function redeemCode(redemption, origin) {
    const id = loginIdOfCode(redemption.code);
    const record = id === undefined ? undefined : await readRecord(state, refs.login(id));
    const user = record === undefined ? undefined : await users.get(record.userId ?? '');
    if (record === undefined || user === undefined) throw invalidGrant();
    return redeemOf(record, user, redemption, origin);
  };
}
