/** Lists records of the audit in pages, the newest first. */
import { defined } from '../../domain/defined.ts';
import type { AuditRequest } from '../../api/audit.ts';
import { decodeCursor } from '../../domain/cursor.ts';
import type { AuditRecord } from '../../domain/identity/audit.ts';
import type { AuditStore } from '../ports/audit.ts';
import { readPage, type Page } from '../records/pages.ts';

type ListAudit = (request: AuditRequest, signal?: AbortSignal) => Promise<Page<AuditRecord>>;

/** Creates the function. A record that is stored meanwhile is on no further page, because it is newer. Throws `request.invalid` for a cursor that no page returned, and the store's faults. */
export function createListAudit({ audit }: { readonly audit: Pick<AuditStore, 'list'> }): ListAudit {
  return async function listAudit({ from, to, email, event, key, limit, cursor }, signal) {
    const query = {
      ...(from !== undefined && { fromMs: Date.parse(from) }),
      ...(to !== undefined && { toMs: Date.parse(to) }),
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
  };
}
