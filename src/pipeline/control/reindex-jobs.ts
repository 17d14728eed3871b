/**
 * Re-index jobs as records: requested, shown, cancelled. An apply job is stored first and then takes its bucket's one
 * slot by compare-and-swap, so a slot always points to a job that exists; an apply job may run only while the slot
 * names it, so one whose requester crashed in between never runs.
 */
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { decodeCursor } from '../../domain/cursor.ts';
import { isCancellable, jobModes, jobSchema, occupiesBucket, type JobRecord } from '../../domain/reindex/job.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { Control } from './control.ts';
import { requireBucket } from './list-buckets.ts';
import { keyTextSchema, limitSchema, parseRequest, readPage } from './pages.ts';
import type { Clock, StateStore } from '../ports.ts';
import { parseEntry, readRecord, refs, removeRecord, updateRecord } from '../state-records.ts';

const requestSchema = z.strictObject({
  bucket: z.string(),
  prefix: keyTextSchema.default(''),
  mode: z.enum(jobModes, { error: `must be one of ${jobModes.join(', ')}` }).default('apply'),
});
const listSchema = z.strictObject({ limit: limitSchema, cursor: z.string().optional() });

const JOB_ID = /^job-[0-9a-z]{9}-[0-9a-f]{12}$/;
/** How often a slot is looked at that others take and leave at the same moment. */
const SLOT_ATTEMPTS_MAX = 5;

type Jobs = Control['jobs'];

export interface ReindexJobs extends Jobs {
  /** Cancels the job that has the bucket's slot, if one has. */
  cancelOf(bucket: string): Promise<void>;
}

/** Creates the jobs' verbs. */
export function createReindexJobs({ state, clock }: { readonly state: StateStore; readonly clock: Clock }): ReindexJobs {
  const request: Jobs['request'] = async (wanted, by, signal) => {
    const { bucket, prefix, mode } = parseRequest(requestSchema, wanted);
    await requireBucket(state, bucket, signal);
    const createdAtMs = clock.nowMs();
    const job: JobRecord = { id: jobId(createdAtMs), bucket, prefix, mode, requestedBy: by, state: 'queued', createdAtMs };
    if (mode === 'report') return store(job);
    await refuseIfOccupied(bucket, signal);
    await store(job);
    try {
      await takeSlot(job);
    } catch (error) {
      await removeRecord(state, refs.job(job.id).id);
      throw error;
    }
    return job;
  };

  async function store(job: JobRecord): Promise<JobRecord> {
    return updateRecord(state, refs.job(job.id), () => job);
  }

  /** Not by updateRecord: whether the slot is free is asked of another record. */
  async function takeSlot(job: JobRecord): Promise<void> {
    const { id, kind } = refs.jobSlot(job.bucket);
    for (let attempt = 0; attempt < SLOT_ATTEMPTS_MAX; attempt += 1) {
      const entry = await state.get(id);
      await refuseIfOccupied(job.bucket);
      const stored = await state.put({ id, kind, record: { bucket: job.bucket, jobId: job.id } }, entry?.version ?? null);
      if (stored !== 'conflict') return;
    }
    throw new RequestError('state.conflict', `jobs of ${job.bucket} are requested by others at this moment: ask again`);
  }

  async function refuseIfOccupied(bucket: string, signal?: AbortSignal): Promise<void> {
    const job = await occupantOf(bucket, signal);
    if (job === undefined) return;
    throw new RequestError('job.conflict', `${job.id} of ${bucket} is ${job.state}: wait until it ends, or cancel it`, { jobId: job.id });
  }

  async function occupantOf(bucket: string, signal?: AbortSignal): Promise<JobRecord | undefined> {
    const slot = await readRecord(state, refs.jobSlot(bucket), signal);
    const job = slot === undefined ? undefined : await readRecord(state, refs.job(slot.jobId), signal);
    return job !== undefined && occupiesBucket(job) ? job : undefined;
  }

  async function get(id: string, signal?: AbortSignal): Promise<JobRecord> {
    const job = JOB_ID.test(id) ? await readRecord(state, refs.job(id), signal) : undefined;
    if (job === undefined) throw notFound(id);
    return job;
  }

  const list: Jobs['list'] = async (page, signal) => {
    const { limit, cursor } = parseRequest(listSchema, page);
    return readPage({
      limit,
      after: cursor === undefined ? undefined : decodeCursor(cursor, 1),
      fetch: async (count, position) => {
        const after = position?.[0];
        const entries = await state.list('job', { limit: count, ...(after !== undefined && { after: refs.job(after).id }) }, signal);
        return entries.map((entry) => parseEntry(entry, jobSchema));
      },
      positionOf: ({ id }) => [id],
    });
  };

  async function cancel(id: string, signal?: AbortSignal): Promise<JobRecord> {
    await get(id, signal);
    return updateRecord(state, refs.job(id), (job) => {
      if (job === undefined) throw notFound(id);
      if (!isCancellable(job)) throw new RequestError('job.not-cancellable', `${id} is ${job.state} already`);
      return { ...job, state: 'cancelled' as const, finishedAtMs: clock.nowMs() };
    });
  }

  async function cancelOf(bucket: string): Promise<void> {
    const occupant = await occupantOf(bucket);
    if (occupant === undefined) return;
    await updateRecord(state, refs.job(occupant.id), (job) =>
      job !== undefined && occupiesBucket(job) ? { ...job, state: 'cancelled' as const, finishedAtMs: clock.nowMs() } : undefined,
    );
  }

  return { request, get, list, cancel, cancelOf };
}

/** Sorts by creation: nine base-36 digits of milliseconds reach beyond the year 5000. */
function jobId(createdAtMs: number): string {
  return `job-${createdAtMs.toString(36).padStart(9, '0')}-${randomBytes(6).toString('hex')}`;
}

function notFound(id: string): RequestError {
  return new RequestError('job.not-found', `there is no job ${id.slice(0, 64)}`);
}
