/** The audit in memory: the port's promises in the plainest form. */
import { auditIdAt, type AuditRecord } from '../../../src/base/audit.ts';
import type { AuditStore } from '../../../src/store/store.ts';

/** The rows of one purge. */
const PURGE_ROWS = 2;

export interface MemoryAudit extends AuditStore {
  /** In the order in which they were stored. */
  readonly records: readonly AuditRecord[];
}

export function createMemoryAudit(): MemoryAudit {
  const byId = new Map<string, AuditRecord>();
  const sorted = (): readonly AuditRecord[] => [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  return {
    get records() {
      return [...byId.values()];
    },
    append: async (record, signal) => {
      signal?.throwIfAborted();
      if (!byId.has(record.id)) byId.set(record.id, JSON.parse(JSON.stringify(record)) as AuditRecord);
    },
    list: async ({ fromMs, toMs, email, event, key, before, limit }, signal) => {
      signal?.throwIfAborted();
      return sorted()
        .filter(({ id }) => fromMs === undefined || id >= auditIdAt(fromMs))
        .filter(({ id }) => toMs === undefined || id < auditIdAt(toMs))
        .filter(({ id }) => before === undefined || id < before)
        .filter(({ useridentity }) => email === undefined || useridentity.email === email)
        .filter(({ eventname }) => event === undefined || eventname === event)
        .filter(({ useridentity: { sessionContext } }) => {
          const { keyName, keyFingerprint } = sessionContext.auth;
          return key === undefined || keyName === key || keyFingerprint === key;
        })
        .toReversed()
        .slice(0, limit);
    },
    purge: async (beforeMs, signal) => {
      signal?.throwIfAborted();
      const old = sorted().filter(({ id }) => id < auditIdAt(beforeMs));
      for (const { id } of old.slice(0, PURGE_ROWS)) byId.delete(id);
      return old.length === 0 ? 'none' : 'more';
    },
  };
}
