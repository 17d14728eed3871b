/** Lists gaps, also those that this version cannot read. */
import { gapSchema, type GapRecord } from '../../domain/gaps/gap.ts';
import type { StateEntry, StateStore } from '../ports/state.ts';
import { listAllEntries } from '../records/stored.ts';

/** How many gaps one request to the store reads. */
const PAGE_GAPS = 1_000;

/** Lists the gaps of one bucket, in any state. Throws the store's fault. */
export async function gapsOf(state: StateStore, bucket: string, signal?: AbortSignal): Promise<readonly GapRecord[]> {
  const prefix = `gap:${bucket}:`;
  const found: GapRecord[] = [];
  let after = prefix;
  for (;;) {
    const entries = (await state.list('gap', { after, limit: PAGE_GAPS }, signal)).filter(({ id }) => id.startsWith(prefix));
    found.push(...entries.map(shownGap));
    if (entries.length < PAGE_GAPS) return found;
    after = entries.at(-1)?.id ?? after;
  }
}

/** Lists all gaps, in any state. Throws the store's fault. */
export async function allGaps(state: StateStore): Promise<readonly GapRecord[]> {
  return (await listAllEntries(state, 'gap')).map(shownGap);
}

/** One that this version cannot read counts as open: what it says of its bucket is not known. */
function shownGap({ id, record }: StateEntry): GapRecord {
  const { data } = gapSchema.safeParse(record);
  const [, bucket = ''] = id.split(':');
  const unread = { id, bucket, kind: 'loss', reason: 'a record that this version of Tally cannot read', state: 'open' } as const;
  return data ?? { ...unread, firstSeenMs: 0, lastSeenMs: 0, openedAtMs: 0, toldAtMs: 0, count: 1 };
}
