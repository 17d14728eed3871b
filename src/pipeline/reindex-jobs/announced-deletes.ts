/** Which deletions a job need not ask a person for: those that were announced. Asked when it begins to compare, and when it is resumed. */
import { isOfDeletes, type GapRecord } from '../../domain/gaps/gap.ts';
import { holdsAnyOf } from '../../domain/gaps/held-deletes.ts';
import type { JobRecord } from '../../domain/reindex/job.ts';
import { gapsOf, isAnyHeld } from '../gaps/stored-gaps.ts';
import type { StateStore } from '../ports/state.ts';

/**
 * Whether what the job finds to delete was announced: it closes gaps of deletes and no others, one of them announces deletes of all
 * of its keys, and no change of its keys was lost. A gap of a single key announces one delete. Throws the store's fault.
 */
export async function closesDeletesOf(state: StateStore, { bucket, prefix, gapIds = [] }: JobRecord): Promise<boolean> {
  if (gapIds.length === 0) return false;
  const all = await gapsOf(state, bucket);
  const own = all.filter(({ id }) => gapIds.includes(id));
  const isAnnounced = own.some((gap) => !isOfKey(gap) && prefix.startsWith(gap.prefix ?? ''));
  const isAnyLost = all.some((gap) => gap.kind === 'loss' && gap.state !== 'closed' && !isOfKey(gap) && holdsAnyOf(gap, prefix));
  return isAnnounced && !isAnyLost && own.every(({ kind }) => isOfDeletes(kind));
}

/**
 * Whether a job that is resumed deletes only what a person allows now: deletions of its keys wait for one, or it began without a limit
 * and its deletions are announced no more. Throws the store's fault.
 */
export async function needsConsent(state: StateStore, job: JobRecord): Promise<boolean> {
  if (await isAnyHeld(state, job)) return true;
  const isUnlimited = job.deletions !== undefined && job.deletions.limit === undefined;
  return isUnlimited && !(await closesDeletesOf(state, job));
}

function isOfKey({ folded, prefix }: GapRecord): boolean {
  return folded === true && prefix !== undefined;
}
