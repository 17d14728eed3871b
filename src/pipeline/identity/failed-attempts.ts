/**
 * Credentials that failed. They are audited: one record for each address, reason and minute, with their number. Callers get one answer for all of them; only the audit says what it was.
 */
import { addressGroupOf } from '../../domain/identity/address-group.ts';
import type { Actor } from '../../domain/identity/actor.ts';
import type { KeyRecord } from '../../domain/identity/api-key.ts';
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

export interface FailedAttempts extends StoresWindows {
  /** Notes a login that failed before the issuer named a person. `reason` must be one of few. */
  loginFailed(failure: Pick<FailedAttempt, 'address' | 'reason'>): void;
  /** Notes a credential that failed. */
  failed(attempt: FailedAttempt): void;
}

const unknownPerson = { kind: 'session', userId: '', email: 'unknown', role: 'user', sessionId: '' } as const;

interface FailedAttemptsDependencies extends AuditWindowDependencies {
  /** The name of this machine. */
  readonly host: string;
}

/** Creates the recorder. */
export function createFailedAttempts({ host, ...dependencies }: FailedAttemptsDependencies): FailedAttempts {
  const { count, ...windows } = createAuditWindows(dependencies, WINDOW_MS);
  return {
    ...windows,
    loginFailed({ address, reason }) {
      const actor = { ...unknownPerson, ...(address !== undefined && { address }) };
      const name = JSON.stringify(['login', addressGroupOf(address ?? ''), reason]);
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
