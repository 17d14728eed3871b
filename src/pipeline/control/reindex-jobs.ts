/**
 * Re-index jobs as records: requested, shown, paused, resumed, cancelled. Whoever works on them is told by a task on the
 * work queue; where that is lost, or there is no work queue here, the workers' own calendar finds what was asked for.
 */
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { decodeCursor } from '../../domain/cursor.ts';
import { mayStep, type JobStep } from '../../domain/reindex/job-steps.ts';
import { viewOf, type JobView } from '../../domain/reindex/job-view.ts';
import { hasEnded, jobModes, jobSchema, type JobRecord } from '../../domain/reindex/job.ts';
import { RequestError } from '../../domain/request-error.ts';
import { stepJob, sumsNow } from '../reindex-jobs/job-records.ts';
import { listRanges } from '../reindex-jobs/range-records.ts';
import type { SendTask } from '../reindex-jobs/tasks.ts';
import { listAllRecords, parseEntry, readRecord, refs, removeRecord, updateRecord } from '../records/stored.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { Control } from './control.ts';
import { createJobSlots } from '../reindex-jobs/job-slots.ts';
import { requireBucket } from '../buckets/list.ts';
import { keyTextSchema, limitSchema, parseRequest, readPage } from '../records/pages.ts';
import { faultOf } from '../../domain/fault.ts';

/** Far beyond any bucket, and far below where a number is no longer exact. */
const DELETES_MAX = 1_000_000_000_000;
const deletesSchema = z
  .number({ error: 'must be a whole number' })
  .int('must be a whole number')
  .min(0, 'must be at least 0')
  .max(DELETES_MAX, `must be at most ${DELETES_MAX}`);
const flagSchema = z.boolean({ error: 'must be true or false' }).default(false);

const requestSchema = z.strictObject({
  bucket: z.string(),
  prefix: keyTextSchema.default(''),
  mode: z.enum(jobModes, { error: `must be one of ${jobModes.join(', ')}` }).default('apply'),
  fill: flagSchema,
  now: flagSchema,
  repair: flagSchema,
  allowDeletes: deletesSchema.optional(),
});
const resumeSchema = z.strictObject({ allowDeletes: deletesSchema.optional() });
const listSchema = z.strictObject({ limit: limitSchema, cursor: z.string().optional() });

const JOB_ID = /^job-[0-9a-z]{9}-[0-9a-f]{12}$/;
/** Stored at once, a thousand ended ones among them; each is read every few seconds by whoever counts them. */
const JOBS_MAX = 2_000;

type Jobs = Control['jobs'];

/** What a job is asked for by the product itself. */
export interface OwnRequest {
  readonly bucket: string;
  readonly prefix: string;
  readonly mode: JobRecord['mode'];
  readonly requestedBy: 'gap' | 'schedule';
  /** The gaps that it closes when it is done. */
  readonly gapIds: readonly string[];
}

export interface ReindexJobs extends Jobs {
  /** Requests a job for the product's own work. Throws as request() does. */
  start(request: OwnRequest, signal?: AbortSignal): Promise<JobRecord>;
  /** Cancels all jobs of a bucket that have not ended. */
  cancelOf(bucket: string): Promise<void>;
}

interface JobsDependencies {
  readonly state: StateStore;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Absent: there is no work queue here. */
  readonly sendTask?: SendTask | undefined;
}

/** Creates the jobs' verbs. */
export function createReindexJobs({ state, clock, telemetry, sendTask }: JobsDependencies): ReindexJobs {
  const slots = createJobSlots({ state });

  async function store(job: JobRecord, signal?: AbortSignal): Promise<JobRecord> {
    await requireBucket(state, job.bucket, signal);
    if ((await state.count('job', signal)) >= JOBS_MAX)
      throw new RequestError('job.limit', `${JOBS_MAX} jobs are stored: wait until some have ended, or cancel them`);
    if (job.mode === 'apply') await slots.refuseIfOccupied({ bucket: job.bucket }, signal);
    await updateRecord(state, refs.job(job.id), () => job);
    if (job.mode === 'apply') await takeSlotOr(job, () => removeRecord(state, refs.job(job.id).id));
    await tell(job.id);
    return job;
  }

  async function takeSlotOr(job: JobRecord, undo: () => Promise<unknown>): Promise<void> {
    try {
      await slots.take(job);
    } catch (error) {
      await undo();
      throw error;
    }
  }

  /** Without it the workers find the job within a minute or so. */
  async function tell(id: string): Promise<void> {
    try {
      await sendTask?.({ job: id });
    } catch (error) {
      const { code, reason } = faultOf(error);
      telemetry.requestFailed('send a task to the work queue', code, reason);
    }
  }

  async function find(id: string, signal?: AbortSignal): Promise<JobRecord> {
    const job = JOB_ID.test(id) ? await readRecord(state, refs.job(id), signal) : undefined;
    if (job === undefined) throw notFound(id);
    return job;
  }

  async function shown(job: JobRecord, signal?: AbortSignal): Promise<JobView> {
    const isComparing = job.comparingAtMs !== undefined && !hasEnded(job);
    return viewOf(job, isComparing ? await listRanges(state, job.id, signal) : [], clock.nowMs());
  }

  async function shownWhole(job: JobRecord, signal?: AbortSignal): Promise<JobView> {
    const view = await shown(job, signal);
    const kept = hasEnded(job) ? await readRecord(state, refs.jobExamples(job.id), signal) : undefined;
    return kept === undefined ? view : { ...view, examples: kept.examples };
  }

  /** Throws `job.not-found`, and the refusal. */
  async function step(id: string, toStep: JobStep, refusal: (job: JobRecord) => RequestError): Promise<JobRecord> {
    const job = await stepJob(state, id, toStep);
    if (job === undefined) throw notFound(id);
    if (job === 'refused') throw refusal(await find(id));
    return job;
  }

  async function resumeApply(before: JobRecord, resumed: JobRecord): Promise<void> {
    await takeSlotOr(resumed, () =>
      updateRecord(state, refs.job(resumed.id), (current) => {
        if (current === undefined || current.state !== resumed.state) return current;
        const { pausedBecause, pausedAtMs, pausedMs, brake } = before;
        return { ...current, state: 'paused' as const, pausedBecause, pausedAtMs, pausedMs, brake };
      }),
    );
  }

  return {
    async request(wanted, by, signal) {
      const { repair, ...wishes } = parseRequest(requestSchema, wanted);
      if (repair) throw repairRefused((await requireBucket(state, wishes.bucket, signal)).source);
      return shown(await store(jobOf(wishes, by, clock.nowMs()), signal));
    },
    start: ({ gapIds, requestedBy, ...wishes }, signal) =>
      store({ ...jobOf(wishes, requestedBy, clock.nowMs()), ...(gapIds.length > 0 && { gapIds: [...gapIds] }) }, signal),
    get: async (id, signal) => shownWhole(await find(id, signal), signal),
    async list(page, signal) {
      const { limit, cursor } = parseRequest(listSchema, page);
      const { items, ...rest } = await readPage({
        limit,
        after: cursor === undefined ? undefined : decodeCursor(cursor, 1),
        fetch: async (count, position) => {
          const after = position?.[0];
          const entries = await state.list('job', { limit: count, ...(after !== undefined && { after: refs.job(after).id }) }, signal);
          return entries.map((entry) => parseEntry(entry, jobSchema));
        },
        positionOf: ({ id }) => [id],
      });
      const views: JobView[] = [];
      for (const job of items) {
        // up to 500 keys each
        const { examples: _, ...view } = await shown(job, signal);
        views.push(view);
      }
      return { ...rest, items: views };
    },
    async cancel(id, signal) {
      const sums = await sumsNow(state, await find(id, signal));
      const refusal = (job: JobRecord): RequestError => new RequestError('job.not-cancellable', `${id} is ${job.state} already`);
      const job = await step(id, { kind: 'cancel', atMs: clock.nowMs(), sums }, refusal);
      telemetry.jobEnded(job);
      return shownWhole(job);
    },
    async pause(id, signal) {
      await find(id, signal);
      const refusal = (job: JobRecord): RequestError => new RequestError('job.not-pausable', `${id} is ${job.state} already`);
      return shown(await step(id, { kind: 'pause', atMs: clock.nowMs() }, refusal));
    },
    async resume(id, wanted, signal) {
      const { allowDeletes } = parseRequest(resumeSchema, wanted);
      const before = await find(id, signal);
      if (!mayStep(before, 'resume')) throw notPaused(before);
      if (before.pausedBecause === 'brake' && allowDeletes === undefined) throw heldByBrake(before);
      if (before.mode === 'apply') await slots.refuseIfOccupied(before, signal);
      const resume = { kind: 'resume', atMs: clock.nowMs(), ...(allowDeletes !== undefined && { allowDeletes }) } as const;
      const job = await step(id, resume, notPaused);
      if (job.mode === 'apply') await resumeApply(before, job);
      await tell(id);
      return shown(job);
    },
    async cancelOf(bucket) {
      const jobs = await listAllRecords(state, 'job', jobSchema);
      for (const job of jobs.filter((each) => each.bucket === bucket && !hasEnded(each))) {
        await stepJob(state, job.id, { kind: 'cancel', atMs: clock.nowMs(), sums: await sumsNow(state, job) });
      }
    },
  };
}

interface Wishes {
  readonly bucket: string;
  readonly prefix: string;
  readonly mode: JobRecord['mode'];
  readonly fill?: boolean;
  readonly now?: boolean;
  readonly allowDeletes?: number | undefined;
}

function jobOf({ fill, now, allowDeletes, ...wishes }: Wishes, requestedBy: string, createdAtMs: number): JobRecord {
  return {
    id: jobId(createdAtMs),
    ...wishes,
    requestedBy,
    state: 'queued',
    createdAtMs,
    ...(fill === true && { fill }),
    ...(now === true && { now }),
    ...(allowDeletes !== undefined && { allowDeletes }),
  };
}

/** Sorts by creation: nine base-36 digits of milliseconds reach beyond the year 5000. */
function jobId(createdAtMs: number): string {
  return `job-${createdAtMs.toString(36).padStart(9, '0')}-${randomBytes(6).toString('hex')}`;
}

function notFound(id: string): RequestError {
  return new RequestError('job.not-found', `there is no job ${id.slice(0, 64)}`);
}

function notPaused({ id, state }: JobRecord): RequestError {
  return new RequestError('job.not-resumable', `${id} is ${state}: only a paused job can be resumed`);
}

function heldByBrake({ id, brake }: JobRecord): RequestError {
  const waiting = brake?.waiting ?? 0;
  const detail = `${id} would delete ${waiting} or more documents beyond what its brake allows: see whether the bucket is as it should be, then resume it with allowDeletes`;
  return new RequestError('job.not-resumable', detail, { waiting });
}

function repairRefused(source: string): RequestError {
  const reason =
    source === 'notification'
      ? 'repairing the notification of a bucket belongs to connecting it, which this version does not do yet: set it up as the README says'
      : `its events come by ${source}: re-creating its notification would make the very one that clashes with it`;
  return new RequestError('job.repair-refused', `repair: ${reason}. Ask for the re-index without it.`);
}
