/**
 * Credentials and logins that failed. They are audited: one record for each address, person, reason and minute, with their
 * number, because anyone can bring them about. Callers get one answer for all credentials; only the audit says what it was.
 */
import { addressGroupOf } from '../../domain/identity/address-group.ts';
import type { Actor } from '../../domain/identity/actor.ts';
import type { KeyRecord } from '../../domain/identity/api-key.ts';
import type { UserRecord } from '../../domain/identity/user.ts';
import { createAuditWindows, type AuditWindowDependencies, type StoresWindows } from './audit-windows.ts';

const WINDOW_MS = 60_000;

/** The key that a refused secret belongs to, or belonged to. */
export type FailedKey = Pick<KeyRecord, 'id' | 'name' | 'fingerprint' | 'userId' | 'userEmail'> & {
  /** Set if its owner has an address that is not verified. */
  readonly isUnverified?: true;
};

interface FailedAttempt {
  /** Where the request came from; undefined if that is not known. */
  readonly address: string | undefined;
  /** What was wrong. It must not contain the credential. */
  readonly reason: string;
  readonly key?: FailedKey | undefined;
}

interface FailedLogin extends Pick<FailedAttempt, 'address' | 'reason'> {
  /** Absent: the issuer named no person. */
  readonly who?: Pick<UserRecord, 'userId' | 'email' | 'emailVerified'> | undefined;
}

export interface FailedAttempts extends StoresWindows {
  /** Notes a login that failed. `reason` must be one of few for each person. */
  loginFailed(failure: FailedLogin): void;
  /** Notes a credential that failed. */
  failed(attempt: FailedAttempt): void;
}

const UNKNOWN = { userId: '', email: 'unknown', emailVerified: true } as const;

interface FailedAttemptsDependencies extends AuditWindowDependencies {
  /** The name of this machine. */
  readonly host: string;
}

/** Creates the recorder. */
export function createFailedAttempts({ host, ...dependencies }: FailedAttemptsDependencies): FailedAttempts {
  const { count, ...windows } = createAuditWindows(dependencies, WINDOW_MS);
  return {
    ...windows,
    loginFailed({ address, reason, who: { userId, email, emailVerified } = UNKNOWN }) {
      const actor = {
        ...({ kind: 'session', userId, email, role: 'user', sessionId: '' } as const),
        ...(!emailVerified && { isUnverified: true as const }),
        ...(address !== undefined && { address }),
      };
      const name = JSON.stringify(['login', addressGroupOf(address ?? ''), userId, reason]);
      count(name, { event: 'LoginFailed', outcome: 'failed', reason, actor, parameters: {} });
    },
    failed({ address, reason, key }) {
      const name = JSON.stringify([addressGroupOf(address ?? ''), reason, key?.id]);
      const actor = {
        ...(key === undefined ? { kind: 'local' as const, host } : holderOf(key)),
        ...(address !== undefined && { address }),
      };
      count(name, { event: 'AuthenticationFailed', outcome: 'failed', reason, actor, parameters: {} });
    },
  };
}

/** The actor that stands in the audit for a caller who had the secret of a key. It has no rights. */
export function holderOf({ id, name, fingerprint, userId, userEmail, isUnverified }: FailedKey): Actor {
  const user = { userId, email: userEmail, ...(isUnverified && { isUnverified }), role: 'user' } as const;
  return { kind: 'api_key', ...user, keyId: id, keyName: name, keyFingerprint: fingerprint, scopes: [] };
}
