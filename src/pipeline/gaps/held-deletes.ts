/** The stored gaps of deletions that wait for a person: kept before a job stops or ends, and asked before anything deletes without an event. */
import type { GapRecord } from '../../domain/gaps/gap.ts';
import { awaitsConsent, heldGapId, withHeld, type HeldBack, type Keys } from '../../domain/gaps/held-deletes.ts';
import type { JobRecord } from '../../domain/reindex/job.ts';
import { gapsOf } from '../buckets/statuses.ts';
import type { StateStore } from '../ports/state.ts';
import { refs, updateRecord } from '../records/stored.ts';
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
