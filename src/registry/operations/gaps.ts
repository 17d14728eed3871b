/** Lists the gaps: those that are open, and those that were closed lately. */
import type { GapsRequest } from '../contract/gaps.ts';
import { decodeCursor } from '../../base/cursor.ts';
import { keptOf, markHistorySchema, markSchema, type ListedGap } from '../../records/dirty.ts';
import type { WithPorts } from '../../store/store.ts';
import { readPage, type Page, gapHistoryIdsOf, gapIdsOf, pagesOf, parseEntry, refs } from '../../store/stored.ts';

type ListGaps = (request: GapsRequest, signal?: AbortSignal) => Promise<Page<ListedGap>>;

/** Creates the list of gaps: those that are open by bucket and prefix; those that were closed by bucket and time. */
export function createListGaps({ state, clock }: WithPorts<'state' | 'clock'>): ListGaps {
  return async function listGaps({ limit, cursor, bucket, state: wanted, closed_after: closedAfter }, signal) {
    const fromMs = closedAfter === undefined ? 0 : Date.parse(closedAfter);
    const prefix = gapIdsOf(bucket);
    async function open(count: number, [position = '']: readonly string[] = []): Promise<readonly ListedGap[]> {
      const found: ListedGap[] = [];
      for await (const page of pagesOf(state, 'gap', { prefix, after: position > prefix ? position : prefix, signal })) {
        found.push(...page.map((entry) => parseEntry(entry, markSchema)));
        if (found.length >= count) break;
      }
      return found.slice(0, count);
    }
    async function closed(count: number, [position = '', after = '0']: readonly string[] = []): Promise<readonly ListedGap[]> {
      const found: ListedGap[] = [];
      for await (const page of pagesOf(state, 'gap-history', { prefix: gapHistoryIdsOf(bucket), limit: 10, signal })) {
        const left = page.filter(({ id }) => position === '' || id >= refs.gapHistory(position).id);
        for (const history of left.map((entry) => parseEntry(entry, markHistorySchema))) {
          const afterMs = Math.max(fromMs, history.bucket === position ? Number(after) : 0);
          const kept = keptOf(history, clock.nowMs()).filter(({ closedAtMs }) => closedAtMs > afterMs);
          found.push(...kept.map((each) => ({ ...each, bucket: history.bucket })));
        }
        if (found.length >= count) break;
      }
      return found.slice(0, count);
    }
    const positionOf = (gap: ListedGap): readonly string[] => ('closedAtMs' in gap ? [gap.bucket, String(gap.closedAtMs)] : [gap.id]);
    return wanted === 'closed'
      ? readPage({ limit, after: decodeCursor(cursor, 2), fetch: closed, positionOf })
      : readPage({ limit, after: decodeCursor(cursor, 1), fetch: open, positionOf });
  };
}
