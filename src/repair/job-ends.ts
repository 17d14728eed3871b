/**
 * How a job ends: it is done when all of its keys are compared and searches find what it wrote,
 * failed after a fault, or cancelled when its bucket is disconnected. What is kept of it is stored
 * before the swap that ends it, so nothing is forgotten if the process dies in between. Ended jobs are removed after a while.
 */
import { bucketRecordSchema, type BucketRecord } from '../records/bucket.ts';
import { defined } from '../base/defined.ts';
import { faults } from '../base/fault.ts';
import { markId, withoutDifferences, type Differences, type DirtyMark } from '../records/dirty.ts';
import { noCounts, type ReconcileCounts } from '../records/counts.ts';
import { afterTransition, mayTransition, type JobTransition, isStuck } from './job.rules.ts';
import { hasEnded, jobSchema, type JobFault, type JobRecord, type Part } from '../records/job.ts';
import { gapsOf, keepHeld, markDirty } from '../observing/gaps.ts';
import type { ObjectScan, WithPorts, StateStore } from '../store/store.ts';
import type { Telemetry } from '../process/telemetry.ts';
import { listAllRecords, readRecord, refs, removeRecord, updateRecord } from '../store/stored.ts';
import type { HeldJob } from './job-lease.ts';

type EndsDependencies = WithPorts<'state' | 'clock' | 'telemetry'>;
type FinishDependencies = EndsDependencies & { readonly scan: Pick<ObjectScan, 'refresh'> };

/** The job with everything that this process has compared and not stored yet. */
type Prepare = (job: JobRecord) => JobRecord;
const asStored: Prepare = (job) => job;

/**
 * Carries out one transition of a job that this process does not hold. Resolves with the record after it, `refused` if the job's phase
 * does not allow it, or undefined if there is no such job. Throws the store's fault.
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
  // it has compared everything in between, and says what it holds back
  const ended = await readRecord(state, refs.job(id));
  if (ended?.state === 'done') await keepHeld(state, ended, { held: ended.counts?.held ?? 0, isWhole: true, nowMs: transition.atMs });
  return 'refused';
}

/**
 * Stores what the job holds back and has found so far, before a transition that stops it. A person who stops a job wants nothing of its keys
 * deleted; one that fails is followed by another, which has no further limit if this one has used its own.
 */
export async function noteStop(state: StateStore, job: JobRecord, { kind, atMs }: Pick<JobTransition, 'kind' | 'atMs'>): Promise<void> {
  if (kind !== 'pause' && kind !== 'cancel' && kind !== 'fail') return;
  const { counts = noCounts } = job;
  await noteEarlyReport(state, job, { atMs, counts });
  if (kind !== 'fail' || counts.held > 0 || hasDeleted(job)) await keepHeld(state, job, { held: counts.held, isWhole: false, nowMs: atMs });
}

/** Whether it has used some of its limit. A gap of one key is tried again and again, and must not take theirs from the jobs of its bucket. */
function hasDeleted({ deletions, parts = [], prefix }: JobRecord): boolean {
  return deletions?.limit !== undefined && deletions.reserved > 0 && !(parts.length === 1 && parts[0]?.fault?.denied === prefix);
}

/**
 * What the process of a job that a person has stopped has counted since its progress was stored. If a later job has settled that
 * meanwhile, Tally asks a person once more than needed. Throws the store's fault.
 */
export async function noteLast(state: StateStore, job: JobRecord, atMs: number): Promise<void> {
  const { counts = noCounts } = job;
  if (counts.held > 0) await keepHeld(state, job, { held: counts.held, isWhole: false, nowMs: atMs });
}

/** Gaps of keys that S3 refuses. With more of them it is a prefix, or the bucket. */
const REFUSED_KEYS_MAX = 8;

/**
 * Marks the bucket of a job that has waited for long, or the key alone for which it waits, unless it is marked: the status must not be green over
 * keys that are not compared. `left`: the key has a separate gap, so the job goes on without it. Throws the store's fault.
 */
export async function noteStuck(
  state: StateStore,
  { bucket, mode, beginOrder = 0 }: JobRecord,
  part: Part,
  nowMs: number,
): Promise<'waits' | 'left' | 'given up'> {
  const { fault } = part;
  if (mode !== 'apply' || fault === undefined || !isStuck(part, nowMs)) return 'waits';
  const key = fault.denied;
  const reason = `a re-index ${key === undefined ? 'waits' : `could not compare ${key}`}: ${fault.code}: ${fault.reason}`;
  const report = { bucket, kind: 'drift', reason, seenAtMs: nowMs, ...defined({ key }) } as const;
  // a mark of a key from before the job began would be closed by it
  await markDirty(
    { state, clock: { nowMs: () => nowMs } },
    report,
    (mark) => mark !== undefined && (key === undefined || mark.order >= beginOrder),
  );
  if (key === undefined) return 'waits';
  return (await refusedKeys(state, bucket)).length > REFUSED_KEYS_MAX ? 'given up' : 'left';
}

/** The gaps of keys that S3 refuses. */
async function refusedKeys(state: StateStore, bucket: string): Promise<readonly DirtyMark[]> {
  return (await gapsOf(state, bucket)).filter(({ prefix, reasons }) => prefix !== undefined && reasons[0]?.kind === 'drift');
}

/** Whether the job may have left a key uncompared, whose gap was reported since it began. */
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
  // a process that stood still may have lost the job to another one, which has finished it
  if (mayTransition(held.job, 'finish') && (await held.change(prepare))) {
    await noteEnd(dependencies, prepare(held.job), atMs);
    if (await held.transition({ kind: 'finish', atMs }, prepare)) reportJobEnd(dependencies.telemetry, held.job);
  }
  await held.release(atMs, prepare);
}

/** What is stored before anything shows that the job has compared everything. */
async function noteEnd({ state, scan, telemetry }: FinishDependencies, job: JobRecord, atMs: number): Promise<void> {
  const { counts = noCounts } = job;
  const { held } = counts;
  // what waits may be the deletion of a key that S3 refused
  if (held > 0 || !(await hasLeftKeys(state, job))) await keepHeld(state, job, { held, isWhole: true, nowMs: atMs });
  if (held > 0) telemetry.warn('deletions wait for a person', { bucket: job.bucket, jobId: job.id, deletions: held });
  // callers that waited for the job search next
  if (job.mode === 'apply') await scan.refresh(job.bucket);
  // before the job ends, so that the bucket has its date and its gap once the job is done
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
/** How many ended jobs are kept at most, since every process lists all jobs every few seconds. */
const KEPT_MAX = 1_000;

/** Removes ended jobs that are too old or too many, the oldest first, but none whose deletions wait for a person. Throws the store's fault; the next run continues. */
export async function tidyJobs({ state, clock }: WithPorts<'state' | 'clock'>): Promise<void> {
  const jobs = await listAllRecords(state, 'job', jobSchema);
  const buckets = await listAllRecords(state, 'bucket', bucketRecordSchema);
  // a person answers what they held back by their names
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

// ── what is kept of a job: when the whole bucket was compared, and repaired, what the index refused, and the differences that a report
// found, for which the bucket is marked until a re-index covers them ─────────────────────────────────────────────────

interface Compared {
  readonly atMs: number;
  readonly counts: ReconcileCounts;
}

/** Stores what is kept. Called before the job ends, and may be repeated. Throws the store's fault. */
export async function noteCompared(state: StateStore, job: JobRecord, compared: Compared): Promise<void> {
  const isWhole = job.prefix === '';
  if (job.mode === 'report') await noteReport(state, job, compared);
  if (job.mode === 'report' && !isWhole) return;
  // the next repair keeps a distance from this one; but not from a first index, nor from the compare after a change that a person made
  const isRepair = isWhole && job.requestedBy === 'gap' && (await readRecord(state, refs.gap(markId(job.bucket))))?.urgent === undefined;
  const repaired = isRepair ? { repaired: { atMs: compared.atMs, comparingMs: processMs(compared.counts) } } : {};
  await updateRecord(state, refs.bucket(job.bucket), (bucket) => {
    if (bucket === undefined || job.mode === 'report') return bucket && { ...bucket, lastComparedAtMs: compared.atMs };
    return { ...bucket, ...keptOfBucket(bucket, job, compared), ...repaired };
  });
}

/** What a job that applies says of its bucket. */
function keptOfBucket({ refused }: BucketRecord, job: JobRecord, { atMs, counts }: Compared): Partial<BucketRecord> {
  const certifies = job.prefix === '' && job.now !== true && counts.held === 0;
  const noted = (count: number): BucketRecord['refused'] => (count === 0 ? undefined : { jobId: job.id, count, atMs });
  // what the index refused of some keys is known of the bucket, until a compare of all of it
  const isRefusedKnown = certifies || counts.refused > (refused?.count ?? 0);
  return {
    ...(certifies && { lastComparedAtMs: atMs }),
    ...(isRefusedKnown && { refused: noted(counts.refused) }),
    ...(knowsUnenriched(job, counts) && { unenriched: noted(counts.unenriched) }),
  };
}

/** Whether the job says how much S3 refused to enrich. One that was not to fill it in says only whether anything is left. */
function knowsUnenriched({ prefix, fill, tags }: JobRecord, { unenriched }: ReconcileCounts): boolean {
  return prefix === '' && (unenriched === 0 || fill === true || tags === true);
}

/** What a report has found that ends early: less than all, so nothing is forgotten. Throws the store's fault. */
async function noteEarlyReport(state: StateStore, job: JobRecord, compared: Compared): Promise<void> {
  const { missing, stale, phantom } = compared.counts;
  if (job.mode === 'report' && missing + stale + phantom > 0) await noteReport(state, job, compared);
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
  const report = { bucket, kind: 'drift', reason: 'a report found differences', seenAtMs: atMs, differences } as const;
  await markDirty(
    { state, clock: { nowMs: () => atMs } },
    report,
    (mark) => mark?.differences?.some((found) => found.jobId === jobId && isSame(found, counts)) === true,
  );
}
