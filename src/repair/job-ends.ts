/**
 * How a job ends: done, once all of its keys are compared and searches find what it wrote; failed, after a fault; or cancelled, if its
 * bucket is disconnected. Its lasting results are stored before the swap that ends it, so nothing is forgotten if the process dies in
 * between. Ended jobs are removed after a while.
 */
import { bucketRecordSchema, type BucketRecord } from '../records/bucket.ts';
import { defined } from '../base/defined.ts';
import { faults } from '../base/fault.ts';
import { markId, withoutDifferences, type Differences, type DirtyMark } from '../records/dirty.ts';
import { noCounts, type ReconcileCounts } from '../records/comparison.ts';
import { afterTransition, mayTransition, type JobTransition, isStuck } from './job.rules.ts';
import type { DeniedKey } from './settle-slice.ts';
import { hasEnded, jobSchema, type JobFault, type JobRecord, type Part } from '../records/job.ts';
import { gapsOf, keepHeld, markDirty } from '../observing/gaps.ts';
import type { ObjectScan, WithPorts, StateStore } from '../store/store.ts';
import type { Telemetry } from '../process/telemetry.ts';
import { listAllRecords, readRecord, refs, removeRecord, updateRecord } from '../store/stored.ts';
import type { HeldJob } from './job-lease.ts';
import type { LookForOverdue } from './lifecycle.ts';

type EndsDependencies = WithPorts<'state' | 'clock' | 'telemetry'>;
type FinishDependencies = EndsDependencies & {
  readonly scan: Pick<ObjectScan, 'refresh'>;
  /** Called at the end of a comparison of a whole bucket. */
  readonly lookForOverdue?: LookForOverdue;
};

/** Adds to the job what this process has compared and not stored yet. */
type Prepare = (job: JobRecord) => JobRecord;
const asStored: Prepare = (job) => job;

/**
 * Makes one transition of a job that this process does not hold. Resolves with the record afterwards, `refused` if the job's phase does
 * not allow it, or undefined if there is no such job. Throws the store's fault.
 */
export async function transitionJob(state: StateStore, id: string, transition: JobTransition): Promise<JobRecord | 'refused' | undefined> {
  const found = await readRecord(state, refs.job(id));
  if (found === undefined) return undefined;
  if (!mayTransition(found, transition.kind)) return 'refused';
  await noteStop(state, found, transition);
  let isRefused = false;
  const job = await updateRecord(state, refs.job(id), (current) => {
    const next = current === undefined ? undefined : afterTransition(current, transition);
    isRefused = next === 'refused';
    return next === 'refused' ? undefined : next;
  });
  if (!isRefused) return job;
  // in between it may have compared everything, and then knows exactly what it holds back
  const ended = await readRecord(state, refs.job(id));
  if (ended?.state === 'done') await keepHeld(state, ended, { held: ended.counts?.held ?? 0, isWhole: true, nowMs: transition.atMs });
  return 'refused';
}

/**
 * Before a transition that stops a job, stores what it holds back and has found so far. A person who stops a job wants none of its keys
 * deleted. A failed job is followed by another, which gets no further limit if this one has used some of its own.
 */
export async function noteStop(state: StateStore, job: JobRecord, { kind, atMs }: Pick<JobTransition, 'kind' | 'atMs'>): Promise<void> {
  if (kind !== 'pause' && kind !== 'cancel' && kind !== 'fail') return;
  const { counts = noCounts } = job;
  await noteEarlyReport(state, job, { atMs, counts });
  if (kind !== 'fail' || counts.held > 0 || hasDeleted(job)) await keepHeld(state, job, { held: counts.held, isWhole: false, nowMs: atMs });
}

/** Whether it has used some of its limit. Jobs of a key's gap do not count: they are tried again and again, and must not take the limit away from other jobs. */
function hasDeleted({ deletions, requestedBy, prefix }: JobRecord): boolean {
  return deletions?.limit !== undefined && deletions.reserved > 0 && !(requestedBy === 'gap' && prefix !== '');
}

/**
 * After a person has stopped the job, stores what its process has counted since it last stored its progress. If a later job has settled
 * that in the meantime, Tally asks a person once more than needed. Throws the store's fault.
 */
export async function noteLast(state: StateStore, job: JobRecord, atMs: number): Promise<void> {
  const { counts = noCounts } = job;
  if (counts.held > 0) await keepHeld(state, job, { held: counts.held, isWhole: false, nowMs: atMs });
}

/**
 * Opens a gap of the bucket whose job has waited for long, unless there is one: the status must not be `ok` while keys are not compared.
 * Throws the store's fault.
 */
export async function noteStuck(state: StateStore, { bucket, mode }: JobRecord, part: Part, nowMs: number): Promise<void> {
  const { fault } = part;
  if (mode !== 'apply' || fault === undefined || !isStuck(part, nowMs)) return;
  const report = { bucket, kind: 'drift', reason: `a re-index waits: ${fault.code}: ${fault.reason}`, seenAtMs: nowMs } as const;
  await markDirty({ state, clock: { nowMs: () => nowMs } }, report, (mark) => mark !== undefined);
}

// ── keys whose HEADs S3 refuses. Each gets its own gap, whose jobs come less and less often, and the bucket's job goes on without it ─────

/** With more denials than this in one slice, S3 refuses a prefix or the bucket. The rest waits too, because it would be refused likewise. */
const DENIED_MAX = 2;
/** How many keys of a bucket get gaps. */
const REFUSED_KEYS_MAX = 8;

/**
 * Leaves the keys to gaps of their own. Resolves with those for which the job must fail in the end: keys without a gap, and the key of the
 * job's own gap; undefined if the job must wait. Throws the store's fault.
 */
export async function leaveKeys(
  { state, clock }: WithPorts<'state' | 'clock'>,
  { bucket, mode, prefix, beginOrder = 0 }: JobRecord,
  denied: readonly DeniedKey[],
): Promise<readonly DeniedKey[] | undefined> {
  if (denied.length > DENIED_MAX) return undefined;
  if (mode === 'report') return denied;
  const known = new Set((await refusedKeys(state, bucket)).map((mark) => mark.prefix));
  const left = denied.filter(({ key }) => known.has(key) || known.add(key).size <= REFUSED_KEYS_MAX);
  for (const { key, fault } of left) {
    const reason = `a re-index could not compare ${key}: ${fault.code}: ${fault.reason}`;
    const report = { bucket, key, kind: 'drift', reason, seenAtMs: clock.nowMs() } as const;
    // this job would close a mark from before it began
    await markDirty({ state, clock }, report, (mark) => mark !== undefined && mark.order >= beginOrder);
  }
  return denied.filter((each) => each.key === prefix || !left.includes(each));
}

/** The gaps of keys that S3 refuses. */
async function refusedKeys(state: StateStore, bucket: string): Promise<readonly DirtyMark[]> {
  return (await gapsOf(state, bucket)).filter(({ prefix, reasons }) => prefix !== undefined && reasons[0]?.kind === 'drift');
}

/** Whether the job has left a key uncompared, whose gap was reported since it began. */
async function hasLeftKeys(state: StateStore, { bucket, prefix, beginOrder = 0 }: JobRecord): Promise<boolean> {
  return (await refusedKeys(state, bucket)).some((mark) => mark.prefix?.startsWith(prefix) === true && mark.order >= beginOrder);
}

/** Ends a held job as failed, unless it is paused or has ended, and gives it back. Throws the store's fault. */
export async function failJob(dependencies: EndsDependencies, held: HeldJob, error: JobFault, prepare = asStored): Promise<void> {
  return endEarly(dependencies, held, { kind: 'fail', atMs: dependencies.clock.nowMs(), error }, prepare);
}

/** Ends a held job as cancelled, because its bucket is no longer connected. Throws the store's fault. */
export async function cancelJob(dependencies: EndsDependencies, held: HeldJob, prepare = asStored): Promise<void> {
  return endEarly(dependencies, held, { kind: 'cancel', atMs: dependencies.clock.nowMs() }, prepare);
}

async function endEarly({ state, telemetry }: EndsDependencies, held: HeldJob, transition: JobTransition, prepare: Prepare): Promise<void> {
  if (mayTransition(held.job, transition.kind)) await noteStop(state, prepare(held.job), transition);
  if (await held.transition(transition, prepare)) reportJobEnd(telemetry, held.job);
  await held.release(transition.atMs, prepare);
}

/** Ends a held job that has compared everything, and gives it back. Throws the store's fault. */
export async function finishJob(dependencies: FinishDependencies, held: HeldJob, prepare: Prepare): Promise<void> {
  const atMs = dependencies.clock.nowMs();
  // a suspended process may have lost the job to another one, which has finished it
  if (mayTransition(held.job, 'finish') && (await held.change(prepare))) {
    const found = await overdueOf(dependencies, held.job);
    const prepared: Prepare = (job) => ({ ...prepare(job), ...found });
    await noteEnd(dependencies, prepared(held.job), atMs);
    if (await held.transition({ kind: 'finish', atMs }, prepared)) reportJobEnd(dependencies.telemetry, held.job);
  }
  await held.release(atMs, prepare);
}

async function overdueOf(
  { state, lookForOverdue }: FinishDependencies,
  { bucket, prefix }: JobRecord,
): Promise<Pick<JobRecord, 'overdue'>> {
  const record = prefix === '' && lookForOverdue !== undefined ? await readRecord(state, refs.bucket(bucket)) : undefined;
  return record === undefined || lookForOverdue === undefined ? {} : { overdue: await lookForOverdue(record) };
}

/** Stores what must be stored before anything shows that the job has compared everything. */
async function noteEnd({ state, scan, telemetry }: FinishDependencies, job: JobRecord, atMs: number): Promise<void> {
  const { counts = noCounts } = job;
  const { held } = counts;
  // unless a key was left: what waits may be its deletion
  if (held > 0 || !(await hasLeftKeys(state, job))) await keepHeld(state, job, { held, isWhole: true, nowMs: atMs });
  if (held > 0) telemetry.warn('deletions wait for a person', { bucket: job.bucket, jobId: job.id, deletions: held });
  // callers that have waited for the job will search next
  if (job.mode === 'apply') await scan.refresh(job.bucket);
  // before the job ends, so that by then the bucket has its date and its gap
  await noteCompared(state, job, { atMs, counts });
}

/** Logs the end of a job. */
export function reportJobEnd(telemetry: Telemetry, { id, bucket, mode, requestedBy, state, counts, error }: JobRecord): void {
  const fields = { id, bucket, mode, requestedBy, state, counts };
  if (error === undefined) telemetry.info('job ended', fields);
  else telemetry.error('job ended', { ...fields, ...error, advice: faults[error.code].advice });
}

/** How long a job is kept after it has ended. */
const KEPT_MS = 30 * 86_400_000;
/** How many ended jobs are kept at most, because every process lists all jobs every few seconds. */
const KEPT_MAX = 1_000;

/** Removes ended jobs that are too old or too many, the oldest first, but none whose deletions wait for a person. Throws the store's fault; the next run continues. */
export async function tidyJobs({ state, clock }: WithPorts<'state' | 'clock'>): Promise<void> {
  const jobs = await listAllRecords(state, 'job', jobSchema);
  const buckets = await listAllRecords(state, 'bucket', bucketRecordSchema);
  // a person still needs their ids to allow or decline what they held back
  const asking = new Set(
    buckets.flatMap(({ waiting = [] }) => waiting.flatMap(({ count, jobId }) => (count === undefined ? [] : [jobId]))),
  );
  const ended = jobs.filter((job) => hasEnded(job) && !asking.has(job.id)).toSorted((a, b) => endedAtMs(a) - endedAtMs(b));
  const tooMany = ended.length - KEPT_MAX;
  const gone = ended.filter((job, index) => index < tooMany || clock.nowMs() - endedAtMs(job) > KEPT_MS);
  for (const { id } of gone) await removeRecord(state, refs.job(id).id);
}

function endedAtMs(job: JobRecord): number {
  return job.finishedAtMs ?? job.createdAtMs;
}

// ── what is kept of a job: when the whole bucket was compared and repaired, what the index refused, and the differences that a report
// found, for which the bucket has a gap until a re-index covers them ──────────────────────────────────────────────────

interface Compared {
  readonly atMs: number;
  readonly counts: ReconcileCounts;
}

/** Stores what is kept of a job. Called before the job ends, and may be repeated. Throws the store's fault. */
export async function noteCompared(state: StateStore, job: JobRecord, compared: Compared): Promise<void> {
  const isWhole = job.prefix === '';
  if (job.mode === 'report') await noteReport(state, job, compared);
  if (job.mode === 'report' && !isWhole) return;
  // the next repair keeps a distance from this one, unless this is a first index or the comparison after a change that a person made
  const isRepair = isWhole && job.requestedBy === 'gap' && (await readRecord(state, refs.gap(markId(job.bucket))))?.urgent === undefined;
  const repaired = isRepair ? { repaired: { atMs: compared.atMs, comparingMs: processMs(compared.counts) } } : {};
  await updateRecord(state, refs.bucket(job.bucket), (bucket) => {
    const found = defined({ overdue: job.overdue });
    if (bucket === undefined || job.mode === 'report') return bucket && { ...bucket, lastComparedAtMs: compared.atMs, ...found };
    return { ...bucket, ...keptOfBucket(bucket, job, compared), ...repaired, ...found };
  });
}

/** What an apply job shows about its bucket. */
function keptOfBucket({ refused }: BucketRecord, job: JobRecord, { atMs, counts }: Compared): Partial<BucketRecord> {
  const certifies = job.prefix === '' && job.now !== true && counts.held === 0;
  const noted = (count: number): BucketRecord['refused'] => (count === 0 ? undefined : { jobId: job.id, count, atMs });
  // what the index refused for some keys stays known until a comparison of the whole bucket
  const isRefusedKnown = certifies || counts.refused > (refused?.count ?? 0);
  return {
    ...(certifies && { lastComparedAtMs: atMs }),
    ...(isRefusedKnown && { refused: noted(counts.refused) }),
    ...(knowsUnenriched(job, counts) && { unenriched: noted(counts.unenriched) }),
  };
}

/** Whether the job shows how much S3 refused to enrich. A job that was not to fill it in shows only that nothing is left. */
function knowsUnenriched({ prefix, fill, tags }: JobRecord, { unenriched }: ReconcileCounts): boolean {
  return prefix === '' && (unenriched === 0 || fill === true || tags === true);
}

/** Stores what a report that ends early has found. Because that is not everything, earlier findings stay. Throws the store's fault. */
async function noteEarlyReport(state: StateStore, job: JobRecord, compared: Compared): Promise<void> {
  const { missing, stale, phantom } = compared.counts;
  if (job.mode === 'report' && missing + stale + phantom > 0) await noteReport(state, job, compared);
}

/** What one process does in a millisecond (measured on two cores beside its OpenSearch). */
const COMPARED = 50;
const HEADS = 2;
const WRITTEN = 25;

/** How long one process takes for this work, whatever clocks and outages made of it. */
function processMs({ listed, scanned, head_requests, written }: ReconcileCounts): number {
  return Math.ceil(Math.max(listed, scanned) / COMPARED + head_requests / HEADS + written / WRITTEN);
}

/** Whether the counts add nothing. A report that was paused finds more until its end. */
function isSame(found: Differences, counts: ReconcileCounts): boolean {
  return found.missing === counts.missing && found.stale === counts.stale && found.phantom === counts.phantom;
}

/** Stores a report's differences, except those in flight, which live events handle. */
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
  const report = { bucket, kind: 'drift', reason: 'a report found differences', seenAtMs: atMs, differences } as const;
  await markDirty(
    { state, clock: { nowMs: () => atMs } },
    report,
    (mark) => mark?.differences?.some((found) => found.jobId === jobId && isSame(found, counts)) === true,
  );
}
