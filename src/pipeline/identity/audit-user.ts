/** Records of the audit about logins: what has happened to a user already. */
import { auditRecordOf } from '../../domain/identity/audit.ts';
import type { AuditStore } from '../ports/audit.ts';
import type { Clock } from '../ports/clock.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import { storeAuditRecord } from './audited.ts';
import type { AuditUser } from './sessions.ts';

interface AuditUserDependencies {
  readonly audit: Pick<AuditStore, 'append'>;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly telemetry: Pick<Telemetry, 'audited' | 'requestFailed'>;
}

/** The events that are failures. */
const failures: ReadonlySet<string> = new Set(['LoginFailed', 'SessionRefreshReused']);

/** Creates the function. A person whom the issuer did not name is `unknown`. */
export function createAuditUser({ audit, clock, telemetry }: AuditUserDependencies): AuditUser {
  return async function auditUser(event, who, { origin: { address, requestId }, reason, parameters }) {
    const { userId, email, role } = who ?? { userId: '', email: 'unknown', role: 'user' };
    const isUnverified = who?.isUnverified === true || who?.emailVerified === false;
    const named = { userId, email, ...(isUnverified && { isUnverified }), role } as const;
    const actor = { kind: 'session', ...named, sessionId: '', ...(address !== undefined && { address }) } as const;
    const record = auditRecordOf({
      event,
      actor,
      requestId,
      outcome: failures.has(event) ? 'failed' : 'done',
      atMs: clock.nowMs(),
      ...(reason !== undefined && { reason }),
      ...(parameters !== undefined && { parameters }),
    });
    await storeAuditRecord({ audit, telemetry }, record);
  };
}
