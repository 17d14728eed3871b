/**
 * Credentials that failed. They are limited by address, and audited: one record for each address, reason and minute, with
 * their number. Callers get one answer for all of them; only the audit says what it was.
 */
import { addressGroupOf } from '../../domain/identity/address-group.ts';
import type { Actor } from '../../domain/identity/actor.ts';
import type { KeyRecord } from '../../domain/identity/api-key.ts';
import { createAuditWindows, type AuditWindowDependencies, type StoresWindows } from './audit-windows.ts';
import type { AbuseLimits } from './limits.ts';

const WINDOW_MS = 60_000;

/** The key that a refused secret belongs to, or belonged to. */
export type FailedKey = Pick<KeyRecord, 'id' | 'name' | 'fingerprint' | 'userId' | 'userEmail'>;

interface FailedAttempt {
  /** Where the request came from; undefined if that is not known. */
  readonly address: string | undefined;
  /** What was wrong. It must not contain the credential. */
  readonly reason: string;
  readonly key?: FailedKey | undefined;
  /** It was valid once, so it is no guess: it is audited, and not limited. */
  readonly isFormer?: boolean;
}

export interface FailedAttempts extends StoresWindows {
  /** Notes a credential that failed. Throws `request.too-many-failures` if too many from its address did. */
  failed(attempt: FailedAttempt): void;
}

interface FailedAttemptsDependencies extends AuditWindowDependencies {
  readonly limits: Pick<AbuseLimits, 'failed'>;
  /** The name of this machine. */
  readonly host: string;
}

/** Creates the recorder. */
export function createFailedAttempts({ limits, host, ...dependencies }: FailedAttemptsDependencies): FailedAttempts {
  const { count, ...windows } = createAuditWindows(dependencies, WINDOW_MS);
  return {
    ...windows,
    failed({ address, reason, key, isFormer = false }) {
      const name = JSON.stringify([addressGroupOf(address ?? ''), reason, key?.id]);
      const actor = {
        ...(key === undefined ? { kind: 'local' as const, host } : holderOf(key)),
        ...(address !== undefined && { address }),
      };
      count(name, { event: 'AuthenticationFailed', outcome: 'failed', reason, actor, parameters: {} });
      if (!isFormer) limits.failed(address);
    },
  };
}

/** The actor that stands in the audit for a caller who had the secret of a key. It has no rights. */
export function holderOf({ id, name, fingerprint, userId, userEmail }: FailedKey): Actor {
  return { kind: 'api_key', userId, email: userEmail, role: 'user', keyId: id, keyName: name, keyFingerprint: fingerprint, scopes: [] };
}
