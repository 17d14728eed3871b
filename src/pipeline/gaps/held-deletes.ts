/** The stored gaps of deletions that wait for a person: kept before a job stops or ends, and asked before anything deletes without an event. */
import { gapSchema, type GapRecord } from '../../domain/gaps/gap.ts';
import { heldGapId, heldIdsOf, holdsAnyOf, withHeld, type HeldBack } from '../../domain/gaps/held-deletes.ts';
import type { JobRecord } from '../../domain/reindex/job.ts';
import type { StateEntry, StateStore } from '../ports/state.ts';
import { parseEntry, refs, updateRecord } from '../records/stored.ts';
import { factsOf } from './reports.ts';

const PAGE_MAX = 1_000;

/**
 * Stores what the job holds back, if that is anything and its bucket is connected; resolves with the gap. It is called before
 * the job stops or ends, so that no later job can begin without knowing of it. Throws the store's fault.
 */
export async function keepHeld(state: StateStore, job: JobRecord, held: Omit<HeldBack, 'afterBeginOrder'>): Promise<GapRecord | undefined> {
  const facts = job.mode !== 'apply' || held.held === 0 ? undefined : await factsOf(state, job.bucket);
  if (facts === undefined) return undefined;
  return updateRecord(state, refs.gap(heldGapId(job)), (current) => withHeld(current, job, { ...held, ...facts }));
}

/** Whether deletions of keys of the bucket with this prefix wait for a person. Throws the store's fault. */
export async function isAnyHeld(state: StateStore, { bucket, prefix = '' }: { readonly bucket: string; readonly prefix?: string }) {
  const entries = await heldEntries(state, bucket);
  return entries.some((entry) => {
    const gap = parseEntry(entry, gapSchema);
    return gap.state !== 'closed' && holdsAnyOf(gap, prefix);
  });
}

async function heldEntries(state: StateStore, bucket: string): Promise<readonly StateEntry[]> {
  const start = heldIdsOf(bucket);
  const found: StateEntry[] = [];
  // lists begin after an id: the last one before those of this kind
  let after = start.slice(0, -1);
  for (;;) {
    const entries = await state.list('gap', { after, limit: PAGE_MAX });
    const ofKind = entries.filter(({ id }) => id.startsWith(start));
    found.push(...ofKind);
    const last = entries.at(-1);
    if (last === undefined || ofKind.length < PAGE_MAX) return found;
    after = last.id;
  }
}
