import { setImmediate } from 'node:timers/promises';
import { z } from 'zod';
import { auditIdAt, auditRecordSchema, type AuditRecord } from '../../base/audit.ts';
import type { AuditQuery, AuditStore } from '../store.ts';
import type { SqliteConnection, SqliteSession } from './connection.ts';

/**
 * How many rows one synchronous call reads, in a few ms. A year of the audit may have a million records, of which one matches, so the
 * event loop must run between calls.
 */
const ROWS_MAX = 1_000;
/** How many rows one purge deletes, in a transaction of about 10 ms, which blocks all other work. */
const PURGE_ROWS = 500;

const APPEND = `INSERT INTO audit (id, eventname, email, key_name, key_fingerprint, record) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (id) DO NOTHING`;
const RANGE = 'FROM audit WHERE id >= ? AND id < ?';
const END_OF_ROWS = `SELECT id ${RANGE} ORDER BY id DESC LIMIT 1 OFFSET ${ROWS_MAX - 1}`;
// an absent filter is null
const MATCHING = `SELECT record ${RANGE} AND (?3 IS NULL OR eventname = ?3) AND (?4 IS NULL OR email = ?4)
  AND (?5 IS NULL OR key_name = ?5 OR key_fingerprint = ?5) ORDER BY id DESC LIMIT ?6`;
const PURGE = `DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE id < ? ORDER BY id LIMIT ${PURGE_ROWS})`;

/** Sorts after every id. */
const AFTER_ALL_IDS = 'audit-~';

const idSchema = z.object({ id: z.string() });
const rowSchema = z.object({ record: z.string() });

/** Creates the audit in SQLite: one table in the order of the ids, which is chronological. */
export function createSqliteAudit(connection: SqliteConnection): AuditStore {
  return {
    async append(record, signal) {
      const { keyName = null, keyFingerprint = null } = record.useridentity.sessionContext.auth;
      const { id, eventname, useridentity } = record;
      connection.use(
        ({ statement }) => statement(APPEND).run(id, eventname, useridentity.email, keyName, keyFingerprint, JSON.stringify(record)),
        signal,
      );
    },

    // whatever prevents a record from being stored in this file prevents every other write too

    async list({ fromMs = 0, toMs, before, ...query }, signal) {
      const records: AuditRecord[] = [];
      const bounds = [...(toMs === undefined ? [] : [auditIdAt(toMs)]), ...(before === undefined ? [] : [before]), AFTER_ALL_IDS];
      const from = auditIdAt(fromMs);
      for (let below: string | undefined = bounds.toSorted()[0]; below !== undefined && records.length < query.limit;) {
        await setImmediate();
        const range: Rows = { from, below, limit: query.limit - records.length };
        const found = connection.use((session) => matchingRows(session, query, range), signal);
        records.push(...found.records);
        below = found.next;
      }
      return records;
    },

    async purge(beforeMs, signal) {
      const { changes } = connection.use(({ statement }) => statement(PURGE).run(auditIdAt(beforeMs)), signal);
      return Number(changes) === 0 ? 'none' : 'more';
    },
  };
}

interface Rows {
  readonly from: string;
  readonly below: string;
  readonly limit: number;
}

/** The matches among the range's newest ROWS_MAX rows. `next`: the id below which the reading continues; undefined if nothing is left. */
function matchingRows(
  { statement }: SqliteSession,
  { event, email, key }: Pick<AuditQuery, 'event' | 'email' | 'key'>,
  { from, below, limit }: Rows,
): { readonly records: readonly AuditRecord[]; readonly next: string | undefined } {
  const end = statement(END_OF_ROWS).get(from, below);
  const next = end === undefined ? undefined : idSchema.parse(end).id;
  const rows = statement(MATCHING).all(next ?? from, below, event ?? null, email ?? null, key ?? null, limit);
  return { records: rows.map((row) => auditRecordSchema.parse(JSON.parse(rowSchema.parse(row).record))), next };
}
