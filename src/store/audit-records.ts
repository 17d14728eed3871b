/** Records of the audit about what has happened: they are made with a new id, logged and stored. */
import { randomBytes } from 'node:crypto';
import { auditRecordOf, type AuditFacts, type AuditRecord } from '../base/audit.ts';
import type { WithPorts } from './ports.ts';

/** Creates a record with a new id. */
export function newAuditRecord(facts: AuditFacts): AuditRecord {
  return auditRecordOf(facts, randomBytes(6).toString('hex'));
}

/**
 * Logs and stores a record about what has happened already. Never rejects: a failure is logged, and changes nothing. It takes
 * no signal, because what has happened is recorded even if its caller has left.
 */
export async function storeAuditRecord({ audit, telemetry }: WithPorts<'audit' | 'telemetry'>, record: AuditRecord): Promise<void> {
  telemetry.audited(record);
  try {
    await audit.append(record);
  } catch (error) {
    telemetry.requestFailed('store an audit record', error);
  }
}
