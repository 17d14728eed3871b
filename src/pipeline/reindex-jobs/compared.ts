/**
 * What is kept of a job that has compared everything: when the whole bucket was compared, what the index refused, and the
 * differences that a report found, which an open gap stands for until a re-index covers them.
 */
import { gapId, withReport, withoutDifferences } from '../../domain/gaps/gap.ts';
import type { ReconcileCounts } from '../../domain/reindex/counts.ts';
import type { JobRecord } from '../../domain/reindex/job.ts';
import { gapsOf } from '../gaps/stored-gaps.ts';
import { factsOf } from '../gaps/reports.ts';
import type { StateStore } from '../ports/state.ts';
import { refs, updateRecord } from '../records/stored.ts';

interface Compared {
  readonly atMs: number;
  readonly counts: ReconcileCounts;
}

/** Stores what is kept. Called before the job ends, and may be repeated. Throws the store's fault. */
export async function noteCompared(state: StateStore, job: JobRecord, compared: Compared): Promise<void> {
  if (job.mode === 'report') await noteReport(state, job, compared);
  const { atMs, counts } = compared;
  const certifies = job.mode === 'report' || (job.now !== true && counts.held === 0);
  if (job.prefix === '' && job.mode === 'apply') await noteUnenriched(state, job, compared);
  if (job.prefix !== '' || !certifies) {
    // what the index refused of some keys is known of the bucket, until a compare of all of it
    if (job.mode === 'apply' && counts.refused > 0)
      await updateRecord(state, refs.bucket(job.bucket), (bucket) => {
        const before = bucket?.refused;
        const isMore = bucket !== undefined && (before === undefined || before.count < counts.refused);
        return isMore ? { ...bucket, refused: { jobId: job.id, count: counts.refused, atMs } } : undefined;
      });
    return;
  }
  await updateRecord(state, refs.bucket(job.bucket), (bucket) => {
    if (bucket === undefined || job.mode === 'report') return bucket && { ...bucket, lastComparedAtMs: atMs };
    const { refused: _, ...rest } = bucket;
    const refused = counts.refused > 0 ? { refused: { jobId: job.id, count: counts.refused, atMs } } : {};
    return { ...rest, lastComparedAtMs: atMs, ...refused };
  });
}

/** What S3 refused to enrich. A job that was not to fill it in says only whether anything is left. */
async function noteUnenriched(state: StateStore, { id: jobId, bucket, fill, tags }: JobRecord, { atMs, counts }: Compared): Promise<void> {
  const count = counts.unenriched;
  await updateRecord(state, refs.bucket(bucket), (record) => {
    if (count > 0 && (fill === true || tags === true)) return record && { ...record, unenriched: { jobId, count, atMs } };
    if (record?.unenriched === undefined || count > 0) return undefined;
    const { unenriched: _, ...rest } = record;
    return rest;
  });
}

/** What a report has found that ends early: less than all, so nothing is forgotten. Throws the store's fault. */
export async function noteEarlyReport(state: StateStore, job: JobRecord, compared: Compared): Promise<void> {
  const { missing, stale, phantom } = compared.counts;
  if (job.mode === 'report' && missing + stale + phantom > 0) await noteReport(state, job, compared);
}

/** In-flight differences are left out: live events handle them. */
async function noteReport(state: StateStore, { id, bucket, prefix }: JobRecord, { atMs, counts }: Compared): Promise<void> {
  const { missing, stale, phantom } = counts;
  const facts = await factsOf(state, bucket);
  if (facts === undefined) return;
  if (missing + stale + phantom === 0) return forgetDifferences(state, bucket, prefix);
  const reason = `the report ${id} found differences`;
  const gapReport = { bucket, kind: 'loss', reason, seenAtMs: atMs, ...(prefix !== '' && { prefix }) } as const;
  await updateRecord(state, refs.gap(gapId(gapReport)), (current) =>
    current !== undefined && current.state !== 'closed' && current.differences?.jobId === id
      ? current
      : // a report compares no tags
        {
          ...withReport(current, gapReport, { ...facts, count: 1, toldAtMs: atMs, enrich: 'none' }),
          differences: { jobId: id, atMs, missing, stale, phantom },
        },
  );
}

/** What earlier reports of these keys found is gone. Their gaps stay open: only a re-index that waits for late events closes one. */
async function forgetDifferences(state: StateStore, bucket: string, prefix: string): Promise<void> {
  const gaps = (await gapsOf(state, bucket)).filter((gap) => gap.differences !== undefined && (gap.prefix ?? '').startsWith(prefix));
  for (const { id } of gaps) await updateRecord(state, refs.gap(id), (current) => current && withoutDifferences(current));
}
