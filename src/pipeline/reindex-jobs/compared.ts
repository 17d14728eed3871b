/**
 * What is kept of a job that has compared everything: when the whole bucket was compared, and repaired, what the index refused, and
 * the differences that a report found, for which the bucket is marked until a re-index covers them.
 */
import { defined, omit } from '../../domain/defined.ts';
import { markId, withoutDifferences, type Differences } from '../../domain/gaps/dirty.ts';
import type { ReconcileCounts } from '../../domain/reindex/counts.ts';
import type { JobRecord } from '../../domain/reindex/job.ts';
import { markDirty } from '../gaps/stored-gaps.ts';
import type { StateStore } from '../ports/state.ts';
import { readRecord, refs, updateRecord } from '../records/stored.ts';

interface Compared {
  readonly atMs: number;
  readonly counts: ReconcileCounts;
}

/** Stores what is kept. Called before the job ends, and may be repeated. Throws the store's fault. */
export async function noteCompared(state: StateStore, job: JobRecord, compared: Compared): Promise<void> {
  const { atMs, counts } = compared;
  const isWhole = job.prefix === '';
  if (job.mode === 'report') {
    await noteReport(state, job, compared);
    if (isWhole) await updateRecord(state, refs.bucket(job.bucket), (bucket) => bucket && { ...bucket, lastComparedAtMs: atMs });
    return;
  }
  if (isWhole) await noteUnenriched(state, job, compared);
  if (isWhole && job.requestedBy === 'gap') await noteRepaired(state, job, compared);
  const certifies = isWhole && job.now !== true && counts.held === 0;
  await updateRecord(state, refs.bucket(job.bucket), (bucket) => {
    if (bucket === undefined) return undefined;
    const refused = counts.refused === 0 ? undefined : { jobId: job.id, count: counts.refused, atMs };
    if (certifies) return { ...omit(bucket, 'refused'), lastComparedAtMs: atMs, ...defined({ refused }) };
    // what the index refused of some keys is known of the bucket, until a compare of all of it
    return counts.refused > (bucket.refused?.count ?? 0) ? { ...bucket, ...defined({ refused }) } : undefined;
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

/** The next repair keeps a distance from this one; but not from a first index, nor from the compare after a change that a person made. */
async function noteRepaired(state: StateStore, { bucket }: JobRecord, { atMs, counts }: Compared): Promise<void> {
  if ((await readRecord(state, refs.gap(markId(bucket))))?.urgent !== undefined) return;
  await updateRecord(state, refs.bucket(bucket), (record) => record && { ...record, repaired: { atMs, comparingMs: processMs(counts) } });
}

/** What one process does in a millisecond (measured on two cores beside its OpenSearch). */
const COMPARED = 50;
const HEADS = 2;
const WRITTEN = 25;

/** How long one process takes for this work: clocks that differ and an outage in between say nothing about that. */
function processMs({ listed, scanned, headRequests, written }: ReconcileCounts): number {
  return Math.ceil(Math.max(listed, scanned) / COMPARED + headRequests / HEADS + written / WRITTEN);
}

/** A report that was paused says more once it has ended. */
function isSame(found: Differences, counts: ReconcileCounts): boolean {
  return found.missing === counts.missing && found.stale === counts.stale && found.phantom === counts.phantom;
}

/** In-flight differences are left out: live events handle them. */
async function noteReport(state: StateStore, { id: jobId, bucket, prefix }: JobRecord, { atMs, counts }: Compared): Promise<void> {
  const { missing, stale, phantom } = counts;
  if (missing + stale + phantom === 0) {
    await updateRecord(
      state,
      refs.gap(markId(bucket)),
      (mark) => mark && withoutDifferences(mark, (found) => found.prefix.startsWith(prefix)),
    );
    return;
  }
  const differences = { jobId, atMs, prefix, missing, stale, phantom };
  const report = { bucket, kind: 'drift', reason: `the report ${jobId} found differences`, seenAtMs: atMs, differences } as const;
  await markDirty(
    { state, clock: { nowMs: () => atMs } },
    report,
    (mark) => mark?.differences?.some((found) => found.jobId === jobId && isSame(found, counts)) === true,
  );
}
