/**
 * The stored marks of buckets: the only way to one, what is stored beside them of the deletions that wait for a person, and what both
 * mean for a job. A record that this version cannot read counts as well.
 */
import { z } from 'zod';
import { enrichModes } from '../records/bucket.ts';
import { omit } from '../base/defined.ts';
import { announcesAllOf, markId, markSchema, withReport, type DirtyMark, type GapReport, type ReportFacts } from '../records/dirty.ts';
import { keysOverlap, withHeld, type HeldBack } from '../records/waiting-deletes.ts';
import { lastBeginOf } from '../records/covers.ts';
import type { JobRecord } from '../records/job.ts';
import type { Clock } from '../process/clock.ts';
import type { WithPorts, StateEntry, StateStore } from '../store/store.ts';
import { gapIdsOf, listAllEntries, pagesOf, readRecord, refs, updateRecord } from '../store/stored.ts';

/**
 * Resolves with the mark once the report is stored durably. A bucket that is not connected has no index that could be repaired, so a report of it is dropped. `unless`: the
 * report says nothing new about this mark. Throws the store's fault.
 */
export async function markDirty(
  { state, clock }: WithPorts<'state'> & { readonly clock: Pick<Clock, 'nowMs'> },
  report: GapReport,
  unless: (current: DirtyMark | undefined) => boolean = () => false,
): Promise<DirtyMark | undefined> {
  const known = await factsOf(state, report.bucket);
  if (known === undefined) return undefined;
  return updateRecord(state, refs.gap(markId(report.bucket, report.key)), (current) =>
    unless(current) ? current : withReport(current, report, { ...known, nowMs: clock.nowMs() }),
  );
}

const factsSchema = z.object({
  enrich: z.enum(enrichModes).catch('tags'),
  lastBeginOrder: z.number().optional().catch(undefined),
  createdAtMs: z.number().catch(0),
  repaired: z.object({ atMs: z.number(), comparingMs: z.number() }).optional().catch(undefined),
});

/**
 * What a mark needs of its bucket's record, which must be read after the loss was noticed; undefined: the bucket is not connected. A
 * record that this version cannot read must not keep a loss from being stored, and counts as one that asks for tags.
 */
async function factsOf(state: StateStore, bucket: string): Promise<Omit<ReportFacts, 'nowMs'> | undefined> {
  const entry = await state.get(refs.bucket(bucket).id);
  if (entry === undefined) return undefined;
  const { enrich, repaired, ...counted } = factsSchema.catch({ enrich: 'tags', createdAtMs: 0 }).parse(entry.record);
  return { enrich, repaired, order: lastBeginOf(counted) };
}

/** Whether the bucket has a record, which is all that a mark needs. Throws the store's fault. */
export async function isConnected(state: StateStore, bucket: string): Promise<boolean> {
  return (await state.get(refs.bucket(bucket).id)) !== undefined;
}

/**
 * Stores on the bucket's record what the job holds back, or that it holds nothing back of what it has compared. Called before the job
 * stops or ends, so that no later job can begin without knowing of it. Throws the store's fault.
 */
export async function keepHeld(state: StateStore, job: JobRecord, held: Omit<HeldBack, 'lastOrder'>): Promise<void> {
  if (job.mode !== 'apply') return;
  await updateRecord(state, refs.bucket(job.bucket), (record) => {
    if (record === undefined) return undefined;
    const { waiting: before = [] } = record;
    const waiting = withHeld(before, job, { ...held, lastOrder: lastBeginOf(record) });
    if (waiting === before) return record;
    return waiting.length === 0 ? omit(record, 'waiting') : { ...record, waiting: [...waiting] };
  });
}

/**
 * Whether deletions of these keys wait for a person, other than those of the job with this id: a person who resumes a job consents to what is left
 * of its limit. Throws the store's fault.
 */
export async function isAnyHeld(
  state: StateStore,
  { bucket, prefix = '', id }: { readonly bucket: string; readonly prefix?: string; readonly id?: string },
): Promise<boolean> {
  const { waiting = [] } = (await readRecord(state, refs.bucket(bucket))) ?? {};
  return waiting.some(({ jobId, prefix: waits }) => keysOverlap(waits, prefix) && (id === undefined || jobId !== id));
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
