/** The store of the audit. The conventions of object-index.ts hold. */
import type { AuditEvent, AuditRecord } from '../base/audit.ts';

/** Which records to list. Times are those of the records' ids, in ms since 1970. */
export interface AuditQuery {
  /** Inclusive. */
  readonly fromMs?: number;
  /** Exclusive. */
  readonly toMs?: number;
  readonly email?: string;
  readonly event?: AuditEvent;
  /** The name or the fingerprint of an API key. */
  readonly key?: string;
  /** Only records whose ids are before this one. */
  readonly before?: string;
  /** 1 to 1,000. */
  readonly limit: number;
}

export interface AuditStore {
  /**
   * Stores the record. When it resolves, the record is durable; it is visible to list() within a second. The same id is stored
   * once, and a second time changes nothing. Whatever the record needs (an index of its month) is created, but only in a store
   * that was prepared; else it throws `index.state-missing`.
   */
  append(record: AuditRecord, signal?: AbortSignal): Promise<void>;
  /** Throws the fault that keeps a record of this moment from being stored now, unless probe() of the object index throws it too. Stores none. */
  probe(atMs: number, signal?: AbortSignal): Promise<void>;
  /** Returns matching records, the newest first: in descending order of their ids. */
  list(query: AuditQuery, signal?: AbortSignal): Promise<readonly AuditRecord[]>;
  /**
   * Deletes the oldest of the records from before this moment, in one bounded request; on OpenSearch whole months, and a month
   * only after all of it has passed. `more`: it deleted some, and there may be others.
   */
  purge(beforeMs: number, signal?: AbortSignal): Promise<'more' | 'none'>;
}
