/** Lists records of the audit in pages, the newest first. */
import { defined } from '../../domain/defined.ts';
import type { AuditRequest } from '../../api/audit.ts';
import { decodeCursor } from '../../domain/cursor.ts';
import type { AuditRecord } from '../../domain/identity/audit.ts';
import type { AuditStore } from '../ports/audit.ts';
import { readPage, type Page } from '../records/pages.ts';

const DAY_MS = 86_400_000;

/** Lists a page. A record that is stored meanwhile is on no further page, because it is newer. Throws `request.invalid` for a cursor that no page returned, and the store's faults. */
export async function listAudit(
  audit: Pick<AuditStore, 'list'>,
  { from, to, date, email, event, key, limit, cursor }: AuditRequest,
  signal?: AbortSignal,
): Promise<Page<AuditRecord>> {
  const dayMs = date === undefined ? [] : [Date.parse(`${date.replaceAll('/', '-')}T00:00:00Z`)];
  const froms = [...dayMs, ...(from === undefined ? [] : [Date.parse(from)])];
  const tos = [...dayMs.map((ms) => ms + DAY_MS), ...(to === undefined ? [] : [Date.parse(to)])];
  const query = {
    ...(froms.length > 0 && { fromMs: Math.max(...froms) }),
    ...(tos.length > 0 && { toMs: Math.min(...tos) }),
    ...defined({ email, event, key }),
  };
  return readPage({
    limit,
    after: decodeCursor(cursor, 1),
    fetch: (count, position) => {
      const before = position?.[0];
      return audit.list({ ...query, ...(before !== undefined && { before }), limit: count }, signal);
    },
    positionOf: ({ id }) => [id],
  });
}
