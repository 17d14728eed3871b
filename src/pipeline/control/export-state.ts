/** Lists the records that cannot be rebuilt, in pages: kind after kind, each in the order of its ids. */
import type { ExportRequest } from '../../api/state.ts';
import { decodeCursor } from '../../domain/cursor.ts';
import { exportedKinds, exportedRecordSchema, type ExportedRecord } from '../../domain/state-export.ts';
import { readPage, type Page } from '../records/pages.ts';
import type { WithPorts } from '../ports/ports.ts';

type ExportState = (request: ExportRequest, signal?: AbortSignal) => Promise<Page<ExportedRecord>>;

/** Creates the function. What is stored meanwhile may be on no page. Throws `request.invalid` for a cursor that no page returned, and the store's faults. */
export function createExportState({ state }: WithPorts<'state'>): ExportState {
  async function fetch(
    count: number,
    position: readonly string[] | undefined,
    signal: AbortSignal | undefined,
  ): Promise<readonly ExportedRecord[]> {
    const [lastKind, lastId] = position ?? [];
    const found: ExportedRecord[] = [];
    // a kind that there is not has the index -1, and then every kind is listed from its beginning
    const from = Math.max(
      0,
      exportedKinds.findIndex((kind) => kind === lastKind),
    );
    for (const kind of exportedKinds.slice(from)) {
      const limit = count - found.length;
      if (limit === 0) break;
      const entries = await state.list(kind, { limit, ...(kind === lastKind && lastId !== undefined && { after: lastId }) }, signal);
      found.push(...entries.map(({ id, record }) => exportedRecordSchema.parse({ id, kind, record })));
    }
    return found;
  }

  return async function exportState({ limit, cursor }, signal) {
    return readPage({
      limit,
      after: decodeCursor(cursor, 2),
      fetch: (count, position) => fetch(count, position, signal),
      positionOf: ({ kind, id }) => [kind, id],
    });
  };
}
