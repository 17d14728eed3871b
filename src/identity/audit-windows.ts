/**
 * Audit records for frequent events: one record per window for everything that is the same, with a count.
 *
 *   counted ──► open window ──its time ends──► closed ──► stored, a few at the same time
 *                   └── more than 10,000 windows are open: the oldest is closed earlier
 *
 * A process that is killed loses at most the windows that are open.
 */
import PQueue from 'p-queue';
import { FaultError } from '../base/fault.ts';
import { randomUUID } from 'node:crypto';
import type { Actor, KeyActor } from '../base/actor.ts';
import type { AuditEvent, AuditParameters, AuditRecord } from '../base/audit.ts';
import { inTime } from '../base/in-time.ts';
import { newAuditRecord, storeAuditRecord } from '../store/stored.ts';
import { addressGroupOf } from './address-group.rules.ts';
import type { KeyRecord } from './api-key.rules.ts';
import type { KnownUser } from './login-rules.rules.ts';
import type { UserRecord } from './user.rules.ts';
import type { WithPorts } from '../store/store.ts';

/** Some megabytes. */
const WINDOWS_MAX = 10_000;
/** How many closed windows wait for a slow store. Beyond that, a record is only logged. */
const WAITING_MAX = 10_000;
/** A small part of what the store can take, so that there is room for everything else. */
const WRITES = 8;

interface Happened {
  readonly event: AuditEvent;
  readonly outcome: AuditRecord['outcome'];
  readonly actor: Actor;
  readonly reason?: string;
  readonly parameters: AuditParameters;
}

/** Work that the process must finish before it ends. */
interface StoresWindows {
  /** Stores the windows that have ended. Call it every second. */
  storeEnded(): Promise<void>;
  /** Stores everything, at the end of the process. Gives up when the signal is aborted; the records are then in the log. */
  flush(signal: AbortSignal): Promise<void>;
}

interface AuditWindows extends StoresWindows {
  /** Counts an event of this name. The first opens a window, whose record has that event's facts. */
  readonly count: (name: string, happened: Happened) => void;
}

interface Window {
  readonly happened: Happened;
  readonly beganAtMs: number;
  readonly endsAtMs: number;
  count: number;
}

/** Creates windows of one length. */
function createAuditWindows({ audit, clock, telemetry }: WithPorts<'audit' | 'clock' | 'telemetry'>, windowMs: number): AuditWindows {
  /** In the order in which they began. */
  const open = new Map<string, Window>();
  const waiting = new Set<AuditRecord>();
  const writes = new PQueue({ concurrency: WRITES });

  function close(name: string, { happened, beganAtMs, count }: Window): void {
    open.delete(name);
    const parameters = { ...happened.parameters, count };
    const record = newAuditRecord({ ...happened, requestId: randomUUID(), atMs: beganAtMs, parameters });
    if (waiting.size < WAITING_MAX) {
      waiting.add(record);
      void writes.add(() => {
        waiting.delete(record);
        return storeAuditRecord({ audit, telemetry }, record);
      });
      return;
    }
    telemetry.audited(record);
    telemetry.requestFailed(
      'store an audit record',
      new FaultError('index.overloaded', `${WAITING_MAX} records of ${happened.event} wait already`),
    );
  }

  return {
    count(name, happened) {
      const nowMs = clock.monotonicMs();
      const current = open.get(name);
      if (current !== undefined && nowMs < current.endsAtMs) {
        current.count += 1;
        return;
      }
      if (current !== undefined) close(name, current);
      const [oldest] = open.size >= WINDOWS_MAX ? open : [];
      if (oldest !== undefined) close(...oldest);
      open.set(name, { happened, beganAtMs: clock.nowMs(), endsAtMs: nowMs + windowMs, count: 1 });
    },
    async storeEnded() {
      const nowMs = clock.monotonicMs();
      for (const [name, window] of open) {
        // the others began later
        if (nowMs < window.endsAtMs) break;
        close(name, window);
      }
      await writes.onIdle();
    },
    async flush(signal) {
      for (const [name, window] of open) close(name, window);
      await inTime(writes.onIdle(), signal).catch(() => {
        writes.clear();
        for (const record of waiting) telemetry.audited(record);
      });
    },
  };
}

/**
 * Failed credentials and logins. Because anyone can cause them, the audit has one record for each address, person, reason and minute,
 * with their number. Callers get the same answer for all; only the audit says the reason.
 */

const WINDOW_MS = 60_000;

/** The key to which a refused secret belongs or belonged. */
export type FailedKey = Pick<KeyRecord, 'id' | 'name' | 'fingerprint' | 'userId' | 'userEmail'> & {
  /** Set if its owner has an address that is not verified. */
  readonly isUnverified?: true;
};

export interface FailedAttempt {
  /** Where the request came from; undefined if unknown. */
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
  /** Records a failed login. There must be only few values of `reason` for each person. */
  loginFailed(failure: FailedLogin): void;
  /** Records a failed credential. */
  failed(attempt: FailedAttempt): void;
}

const UNKNOWN = { userId: '', email: 'unknown', emailVerified: true } as const;

interface FailedAttemptsDependencies extends WithPorts<'audit' | 'clock' | 'telemetry'> {
  /** This machine's name. */
  readonly host: string;
}

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

export function failedKeyOf({ record, owner }: { readonly record: KeyRecord; readonly owner: KnownUser | undefined }): FailedKey {
  return { ...record, ...(owner?.emailVerified === false && { isUnverified: true }) };
}

/** The audit's actor for a caller who had a key's secret. It has no rights. */
export function holderOf({ id, name, fingerprint, userId, userEmail, isUnverified }: FailedKey): Actor {
  const user = { userId, email: userEmail, ...(isUnverified && { isUnverified }), role: 'user' } as const;
  return { kind: 'api_key', ...user, keyId: id, keyName: name, keyFingerprint: fingerprint, scopes: [] };
}

/** The audit of key uses: one record for each key, operation, address and five seconds, with the number of uses. */

const USES_MS = 5_000;

export interface KeyUses extends StoresWindows {
  /** Counts one use. */
  used(actor: KeyActor & { readonly address?: string }, operation: string): void;
}

export function createKeyUses(dependencies: WithPorts<'audit' | 'clock' | 'telemetry'>): KeyUses {
  const { count, ...windows } = createAuditWindows(dependencies, USES_MS);
  return {
    ...windows,
    used(actor, operation) {
      const name = JSON.stringify([actor.keyId, operation, actor.address]);
      count(name, { event: 'ApiKeyUse', outcome: 'done', actor, parameters: { operation } });
    },
  };
}
