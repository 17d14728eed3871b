/** The stored marks of buckets, also those that this version cannot read; and the deletions that wait for a person. */
import { omit } from '../../domain/defined.ts';
import { isStoppedFor, markSchema, type DirtyMark } from '../../domain/gaps/dirty.ts';
import { keysOverlap, withHeld, type HeldBack } from '../../domain/gaps/waiting-deletes.ts';
import { lastBeginOf } from '../../domain/reindex/covers.ts';
import type { JobRecord } from '../../domain/reindex/job.ts';
import type { StateEntry, StateStore } from '../ports/state.ts';
import { gapIdsOf, listAllEntries, pagesOf, readRecord, refs, updateRecord } from '../records/stored.ts';

/**
 * Stores on the bucket's record what the job holds back, or that it holds nothing back of what it has compared. It is called before the job
 * stops or ends, so that no later job can begin without knowing of it. Throws the store's fault.
 */
export async function keepHeld(state: StateStore, job: JobRecord, held: Omit<HeldBack, 'lastOrder'>): Promise<void> {
  if (job.mode !== 'apply') return;
  await updateRecord(state, refs.bucket(job.bucket), (record) => {
    const { waiting: before = [] } = record ?? {};
    const waiting = record === undefined ? before : withHeld(before, job, { ...held, lastOrder: lastBeginOf(record) });
    if (record === undefined || waiting === before) return record;
    return waiting.length === 0 ? omit(record, 'waiting') : { ...record, waiting: [...waiting] };
  });
}

/**
 * Whether deletions of these keys wait for a person: some were held back, or a person stopped a job that was to delete them, other than the one
 * with this id. Throws the store's fault.
 */
export async function isAnyHeld(
  state: StateStore,
  { bucket, prefix = '', id }: { readonly bucket: string; readonly prefix?: string; readonly id?: string },
): Promise<boolean> {
  const { waiting = [] } = (await readRecord(state, refs.bucket(bucket))) ?? {};
  if (waiting.some((each) => keysOverlap(each.prefix, prefix))) return true;
  return (await gapsOf(state, bucket)).some((mark) => isStoppedFor(mark, { prefix, ...(id !== undefined && { id }) }));
}

/** Lists the marks of one bucket. Throws the store's fault. */
export async function gapsOf(state: StateStore, bucket: string, signal?: AbortSignal): Promise<readonly DirtyMark[]> {
  return (await Array.fromAsync(pagesOf(state, 'gap', { prefix: gapIdsOf(bucket), signal }))).flat().map(shownMark);
}

/** Lists all marks. Throws the store's fault. */
export async function allGaps(state: StateStore): Promise<readonly DirtyMark[]> {
  return (await listAllEntries(state, 'gap')).map(shownMark);
}

/** One that this version cannot read counts as well: what it says of its bucket is not known. */
function shownMark({ id, record }: StateEntry): DirtyMark {
  const { data } = markSchema.safeParse(record);
  const [, bucket = ''] = id.split(':');
  const reasons: DirtyMark['reasons'] = [{ kind: 'loss', count: 1, lastMs: 0, example: 'a record that this version of Tally cannot read' }];
  const times = { sinceMs: 0, lastSeenMs: 0, firstReportedAtMs: 0, reportedAtMs: 0, order: 0 };
  return data ?? { id, bucket, ...times, reasons, deletes: 'limited', failures: 0 };
}
