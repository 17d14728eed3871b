/** Requests, shows, pauses, resumes and cancels re-index jobs, and stores what a person decides about deletions that a job held back. */
import { randomBytes } from 'node:crypto';
import type { Job } from '../registry/contract/job.ts';
import { jobView } from '../registry/contract/job-view.ts';
import type { JobsRequest, ReindexRequest } from '../registry/contract/jobs.ts';
import { markId } from '../records/dirty.ts';
import { keysOverlap, type WaitingDeletes } from '../records/waiting-deletes.ts';
import { bucketRecordSchema } from '../records/bucket.ts';
import { decodeCursor } from '../base/cursor.ts';
import { omit } from '../base/defined.ts';
import { mayTransition, type JobTransition } from './job.rules.ts';
import { hasEnded, jobSchema, type JobRecord, occupiesBucket } from '../records/job.ts';
import { RequestError } from '../base/request-error.ts';
import {
  listAllRecords,
  readRecord,
  refs,
  removeRecord,
  updateRecord,
  keepingUnknown,
  parseEntry,
  readPage,
  type Page,
} from '../store/stored.ts';
import type { StateStore, Listed, WithPorts } from '../store/store.ts';
import { reportJobEnd, transitionJob } from './job-ends.ts';
import { needsConsent } from '../observing/gaps.ts';
import { requireBucket, notConnected } from '../observing/buckets.ts';

const JOB_ID = /^job-[0-9a-z]{9}-[0-9a-f]{12}$/;
/** The most jobs that are stored, including a thousand ended ones, because the metrics read all of them every few seconds. */
const JOBS_MAX = 2_000;

export interface ReindexJobs {
  /**
   * Stores a new job. Throws `job.conflict` (with `job_id`) while the bucket has an apply job, `job.limit` and `bucket.not-connected`.
   * The caller has already repaired the notification, if that was requested.
   */
  request(request: Omit<ReindexRequest, 'repair'> & { readonly repair?: boolean }, by: string, signal?: AbortSignal): Promise<Job>;
  get(id: string, signal?: AbortSignal): Promise<Job>;
  /** Lists jobs without their examples: first those that have not ended, the newest first; then the others, likewise. */
  list(request: JobsRequest): Promise<Page<Job>>;
  /** Throws `job.not-cancellable` if it has ended. */
  cancel(id: string, signal?: AbortSignal): Promise<Job>;
  /** Throws `job.not-pausable` if it is neither queued nor running. */
  pause(id: string, signal?: AbortSignal): Promise<Job>;
  /** Throws `job.not-resumable` if the job is not paused, and `job.conflict` if another apply job now occupies the bucket. */
  resume(id: string, signal?: AbortSignal): Promise<Job>;
  /** Starts a job that may make as many deletions as this one held back, and no more. Throws `job.nothing-waits`, and as request() does. */
  allow(id: string, by: string, signal?: AbortSignal): Promise<Job>;
  /**
   * Keeps the documents whose deletion the job held back, until another job finds them. Cancels a job that was allowed to delete some of
   * them and has not ended. Throws `job.nothing-waits`.
   */
  decline(id: string, signal?: AbortSignal): Promise<Job>;
  /** Requests a job for Tally's own work. `tags`, `fill`: as in its record. Throws as request() does. */
  readonly start: (
    request: Pick<JobRecord, 'bucket' | 'prefix' | 'mode' | 'tags' | 'fill'> & { readonly requestedBy: 'gap' | 'schedule' },
    signal?: AbortSignal,
  ) => Promise<JobRecord>;
  /** Cancels all jobs of a bucket that have not ended. */
  cancelOf(bucket: string): Promise<void>;
}

/** Creates the operations of jobs. */
export function createReindexJobs({ state, clock, telemetry }: WithPorts<'state' | 'clock' | 'telemetry'>): ReindexJobs {
  async function store(job: JobRecord, signal?: AbortSignal): Promise<JobRecord> {
    await requireBucket(state, job.bucket, signal);
    if ((await state.count('job', signal)) >= JOBS_MAX)
      throw new RequestError('job.limit', `${JOBS_MAX} jobs are stored, which is the limit: wait until some have ended, or cancel some`);
    if (job.mode === 'apply') await refuseIfOccupied(state, job);
    // the bucket's record, which is stored next, waits until lists show both
    const isApply = job.mode === 'apply';
    await updateRecord(state, refs.job(job.id), () => job, isApply ? 'soon' : 'now');
    // the job may begin meanwhile, because the worker checks whether it occupies its bucket
    if (isApply)
      await occupyBucket(state, job).catch(async (error: unknown) => {
        await removeRecord(state, refs.job(job.id).id);
        throw error;
      });
    return job;
  }

  async function find(id: string, signal?: AbortSignal): Promise<JobRecord> {
    const job = JOB_ID.test(id) ? await readRecord(state, refs.job(id), signal) : undefined;
    if (job === undefined) throw notFound(id);
    return job;
  }

  /** The job as shown, with what the bucket's record says about its deletions. */
  async function shown(job: JobRecord, signal?: AbortSignal): Promise<Job> {
    const bucket = await readRecord(state, refs.bucket(job.bucket), signal);
    return jobView(job, { nowMs: clock.nowMs(), waiting: bucket?.waiting });
  }

  /** Throws `job.not-found`, and the refusal. */
  async function transition(id: string, change: JobTransition, refusal: (job: JobRecord) => RequestError): Promise<JobRecord> {
    const job = await transitionJob(state, id, change);
    if (job === undefined) throw notFound(id);
    if (job === 'refused') throw refusal(await find(id));
    return job;
  }

  async function request(
    { fill, now, ...wanted }: Pick<JobRecord, 'bucket' | 'prefix' | 'mode' | 'fill' | 'now' | 'allowDeletes'>,
    by: string,
    signal?: AbortSignal,
  ): Promise<Job> {
    const isWhole = wanted.mode === 'apply' && now !== true;
    const tags = isWhole && (await areTagsMissed(state, wanted.bucket, signal));
    const wishes = { ...wanted, ...(tags && { tags }), ...(fill === true && { fill }), ...(now === true && { now }) };
    return shown(await store(jobOf(wishes, by, clock.nowMs()), signal));
  }

  /** The job's deletions that wait for a person. */
  async function waitingOf({ id, bucket }: JobRecord): Promise<WaitingDeletes | undefined> {
    const { waiting = [] } = (await readRecord(state, refs.bucket(bucket))) ?? {};
    return waiting.find(({ jobId: counted }) => counted === id);
  }

  /** The same, if there are any. Throws `job.nothing-waits`. */
  async function requireWaiting(job: JobRecord): Promise<{ readonly prefix: string; readonly count: number }> {
    const found = await waitingOf(job);
    if (found?.count === undefined) throw nothingWaits(job.id);
    return { prefix: found.prefix, count: found.count };
  }

  async function cancelEach(bucket: string, isMeant: (job: JobRecord) => boolean): Promise<void> {
    const jobs = await listAllRecords(state, 'job', jobSchema);
    for (const job of jobs.filter((each) => each.bucket === bucket && !hasEnded(each) && isMeant(each))) {
      const cancelled = await transitionJob(state, job.id, { kind: 'cancel', atMs: clock.nowMs() });
      if (cancelled !== undefined && cancelled !== 'refused') reportJobEnd(telemetry, cancelled);
    }
  }

  return {
    request: (wanted, by, signal) => request(omit(wanted, 'repair'), by, signal),
    start: ({ requestedBy, ...wishes }, signal) => store(jobOf(wishes, requestedBy, clock.nowMs()), signal),
    get: async (id, signal) => shown(await find(id, signal), signal),
    list: (wanted) => listJobs(state, wanted, clock.nowMs()),
    async cancel(id, signal) {
      await find(id, signal);
      const refusal = (job: JobRecord): RequestError => new RequestError('job.not-cancellable', `${id} is already ${job.state}`);
      // the process that works on it loses it, and does not count what it has written since it last stored its progress
      const job = await transition(id, { kind: 'cancel', atMs: clock.nowMs() }, refusal);
      reportJobEnd(telemetry, job);
      return shown(job);
    },
    async pause(id, signal) {
      await find(id, signal);
      const refusal = (job: JobRecord): RequestError => new RequestError('job.not-pausable', `${id} is already ${job.state}`);
      return shown(await transition(id, { kind: 'pause', atMs: clock.nowMs() }, refusal));
    },
    async resume(id, signal) {
      const before = await find(id, signal);
      if (!mayTransition(before, 'resume')) throw notPaused(before);
      if (before.mode === 'apply') await refuseIfOccupied(state, before);
      const waits = { isHeld: await needsConsent(state, before), isSettled: (await waitingOf(before)) === undefined };
      const job = await transition(id, { kind: 'resume', atMs: clock.nowMs(), ...waits }, notPaused);
      // where another job was faster, a process pauses this one before it begins
      if (job.mode === 'apply') await occupyBucket(state, job);
      return shown(job);
    },
    async allow(id, by, signal) {
      const job = await find(id, signal);
      const { prefix, count } = await requireWaiting(job);
      return request({ bucket: job.bucket, prefix, mode: 'apply', allowDeletes: count }, by, signal);
    },
    async decline(id, signal) {
      const job = await find(id, signal);
      const { prefix } = await requireWaiting(job);
      // first, because such a job keeps deleting until then, and the decision must come after what it stores as it stops
      await cancelEach(job.bucket, (each) => each.allowDeletes !== undefined && keysOverlap(each.prefix, prefix));
      // found by their prefix, because the job that was just stopped may have counted them. If it has made them, none wait
      const isMeant = (each: WaitingDeletes): boolean => each.prefix === prefix && each.count !== undefined;
      const declined = await updateRecord(state, refs.bucket(job.bucket), (record) => {
        if (record?.waiting?.some(isMeant) !== true) return undefined;
        return { ...record, waiting: record.waiting.map((each) => (isMeant(each) ? { ...each, declinedAtMs: clock.nowMs() } : each)) };
      });
      if (declined?.waiting?.some(isMeant) !== true) throw nothingWaits(id);
      return shown(job);
    },
    cancelOf: (bucket) => cancelEach(bucket, () => true),
  };
}

async function listJobs(state: StateStore, { bucket, limit, cursor }: JobsRequest, nowMs: number): Promise<Page<Job>> {
  const all = await listAllRecords(state, 'job', jobSchema);
  const wanted = all.filter((job) => bucket === undefined || job.bucket === bucket).toSorted((a, b) => (placeOf(a) < placeOf(b) ? 1 : -1));
  const { items, ...rest } = await readPage({
    limit,
    after: decodeCursor(cursor, 1),
    fetch: async (count, after) => wanted.filter((job) => placeOf(job) < (after?.[0] ?? '2')).slice(0, count),
    positionOf: (job) => [placeOf(job)],
  });
  const buckets = await listAllRecords(state, 'bucket', bucketRecordSchema);
  const waiting = buckets.flatMap((each) => each.waiting ?? []);
  // examples have up to 140 keys each
  return { ...rest, items: items.map((job) => jobView(omit(job, 'examples'), { nowMs, waiting })) };
}

function jobOf(
  wishes: Pick<JobRecord, 'bucket' | 'prefix' | 'mode' | 'fill' | 'tags' | 'now' | 'allowDeletes'>,
  requestedBy: string,
  createdAtMs: number,
): JobRecord {
  return { id: newJobId(createdAtMs), ...wishes, requestedBy, state: 'queued', createdAtMs, dueAtMs: createdAtMs };
}

/** A job's place in the list, which begins with the last place. */
function placeOf(job: JobRecord): string {
  return `${hasEnded(job) ? 0 : 1} ${job.id}`;
}

/** Ids sort by creation: nine base-36 digits of milliseconds reach beyond the year 5000. */
function newJobId(createdAtMs: number): string {
  return `job-${createdAtMs.toString(36).padStart(9, '0')}-${randomBytes(6).toString('hex')}`;
}

function notFound(id: string): RequestError {
  return new RequestError('job.not-found', `there is no job ${id.slice(0, 64)}: \`tally jobs\` lists the existing ones`);
}

function notPaused({ id, state }: JobRecord): RequestError {
  return new RequestError('job.not-resumable', `${id} is ${state}: only a paused job can be resumed`);
}

function nothingWaits(id: string): RequestError {
  const detail = `${id.slice(0, 64)} holds no deletions for you to decide: a later job may have compared them (\`tally bucket list\`)`;
  return new RequestError('job.nothing-waits', detail);
}

/** Whether only a job that reads all tags closes the bucket's gap, so that any other would have to be followed by a second one. */
async function areTagsMissed(state: StateStore, bucket: string, signal?: AbortSignal): Promise<boolean> {
  return (await readRecord(state, refs.gap(markId(bucket)), signal))?.readTags === true;
}

// ── which apply job occupies a bucket: at most one. The bucket's record names it, which counts only while that job is stored as queued
// or running. So a job is stored before it occupies its bucket, and an apply job runs only while the record names it ─────

/** How often to try to occupy a bucket while its record keeps changing. */
const ATTEMPTS_MAX = 10;

/** Throws `job.conflict`, which names the job that occupies the bucket, unless it is this one. Throws the store's fault. */
async function refuseIfNamed(
  state: StateStore,
  applyJobId: string | undefined,
  { id, bucket }: Pick<JobRecord, 'bucket'> & { readonly id?: string },
) {
  const job = applyJobId === undefined || applyJobId === id ? undefined : await readRecord(state, refs.job(applyJobId));
  if (job === undefined || !occupiesBucket(job)) return;
  throw new RequestError('job.conflict', `the job ${job.id} of ${bucket} is ${job.state}: wait until it has ended, or cancel it`, {
    job_id: job.id,
  });
}

/** Throws `job.conflict` if another apply job occupies the bucket. Throws the store's fault. */
export async function refuseIfOccupied(state: StateStore, job: Pick<JobRecord, 'bucket'> & { readonly id?: string }): Promise<void> {
  const record = await readRecord(state, refs.bucket(job.bucket));
  await refuseIfNamed(state, record?.applyJobId, job);
}

/**
 * Occupies the bucket for a job that is stored as queued or running. `listed`: as for {@link StateStore.put}. Throws `job.conflict`,
 * `state.conflict`, `bucket.not-connected` and the store's fault.
 */
export async function occupyBucket(
  state: StateStore,
  { id: jobId, bucket }: Pick<JobRecord, 'id' | 'bucket'>,
  listed: Listed = 'now',
): Promise<void> {
  const { id, kind } = refs.bucket(bucket);
  // not by updateRecord, because another record decides whether the bucket is free. Stored even if it already names the job, so that a concurrent write loses
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const entry = await state.get(id);
    if (entry === undefined) throw notConnected(bucket);
    const record = parseEntry(entry, bucketRecordSchema);
    await refuseIfNamed(state, record.applyJobId, { id: jobId, bucket });
    const named = keepingUnknown(entry, bucketRecordSchema, { ...record, applyJobId: jobId });
    const stored = await state.put({ id, kind, record: named, listed }, entry.version);
    if (stored !== 'conflict') return;
  }
  throw new RequestError('state.conflict', `the record of ${bucket} keeps changing: try again`);
}
