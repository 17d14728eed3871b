/** Records of the audit about logins and logouts that have happened. */
import type { AuditStore } from '../ports/audit.ts';
import type { Clock } from '../ports/clock.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import { newAuditRecord, storeAuditRecord } from './audited.ts';
import type { AuditUser } from './sessions.ts';

interface AuditUserDependencies {
  readonly audit: Pick<AuditStore, 'append'>;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly telemetry: Pick<Telemetry, 'audited' | 'requestFailed'>;
}

/** Creates the function. */
export function createAuditUser({ audit, clock, telemetry }: AuditUserDependencies): AuditUser {
  return async function auditUser(event, who, { origin: { address, requestId }, parameters }) {
    const { userId, email, role } = who;
    const isUnverified = who.isUnverified === true || who.emailVerified === false;
    const named = { userId, email, ...(isUnverified && { isUnverified }), role } as const;
    const actor = { kind: 'session', ...named, sessionId: '', ...(address !== undefined && { address }) } as const;
    const facts = {
      event,
      actor,
      requestId,
      outcome: 'done',
      atMs: clock.nowMs(),
      ...(parameters !== undefined && { parameters }),
    } as const;
    await storeAuditRecord({ audit, telemetry }, newAuditRecord(facts));
  };
}
