/**
 * The stored gaps of a bucket, also those that this version cannot read. Those of deletions that wait for a person are kept
 * before a job stops or ends, and asked before anything deletes without an event.
 */
import { gapSchema, type GapRecord } from '../../domain/gaps/gap.ts';
import { awaitsConsent, heldGapId, withHeld, type HeldBack, type Keys } from '../../domain/gaps/held-deletes.ts';
import type { JobRecord } from '../../domain/reindex/job.ts';
import type { StateEntry, StateStore } from '../ports/state.ts';
import { gapIdsOf, listAllEntries, pagesOf, refs, updateRecord } from '../records/stored.ts';
import { factsOf } from './reports.ts';

/**
 * Stores what the job holds back, if that is anything and its bucket is connected; resolves with the gap. It is called before
 * the job stops or ends, so that no later job can begin without knowing of it. Throws the store's fault.
 */
export async function keepHeld(state: StateStore, job: JobRecord, held: Omit<HeldBack, 'afterBeginOrder'>): Promise<GapRecord | undefined> {
  const facts = job.mode !== 'apply' || held.held === 0 ? undefined : await factsOf(state, job.bucket);
  if (facts === undefined) return undefined;
  return updateRecord(state, refs.gap(heldGapId(job)), (current) => withHeld(current, job, { ...held, ...facts }));
}

/** Whether deletions of these keys wait for a person. Throws the store's fault. */
export async function isAnyHeld(state: StateStore, keys: Keys): Promise<boolean> {
  return (await gapsOf(state, keys.bucket)).some((gap) => awaitsConsent(gap, keys));
}

/** Lists the gaps of one bucket, in any state. Throws the store's fault. */
export async function gapsOf(state: StateStore, bucket: string, signal?: AbortSignal): Promise<readonly GapRecord[]> {
  return (await Array.fromAsync(pagesOf(state, 'gap', { prefix: gapIdsOf(bucket), signal }))).flat().map(shownGap);
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
