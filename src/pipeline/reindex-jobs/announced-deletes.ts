/** Which deletions a job need not ask a person for: those that were announced. Asked when it begins to compare, and when it is resumed. */
import { announcesAllOf } from '../../domain/gaps/dirty.ts';
import type { JobRecord } from '../../domain/reindex/job.ts';
import { gapsOf, isAnyHeld } from '../gaps/stored-gaps.ts';
import type { StateStore } from '../ports/state.ts';

/** Whether what the job finds to delete was announced. Throws the store's fault. */
export async function areDeletesAnnounced(state: StateStore, job: JobRecord): Promise<boolean> {
  return announcesAllOf(job, await gapsOf(state, job.bucket));
}

/**
 * Whether a job that is resumed deletes only what a person allows now: deletions of its keys wait for one, or it began without a limit
 * and its deletions are announced no more. Throws the store's fault.
 */
export async function needsConsent(state: StateStore, job: JobRecord): Promise<boolean> {
  if (await isAnyHeld(state, job)) return true;
  const isUnlimited = job.deletions !== undefined && job.deletions.limit === undefined;
  return isUnlimited && !(await areDeletesAnnounced(state, job));
}
