/**
 * How a job ends: done when every range is and searches find what it wrote, failed by a fault, cancelled with its
 * bucket. Its ranges' sums are stored in the very swap that ends it, and their records are removed after; what a crash
 * leaves of them the calendar finds.
 */
import { afterStep, placeOf } from '../../domain/reindex/job-steps.ts';
import { sumOf } from '../../domain/reindex/job-view.ts';
import { jobSchema, type JobFault, type JobRecord, type RangeRecord } from '../../domain/reindex/job.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { ObjectScan } from '../ports/object-index.ts';
import { keepingUnknown, parseEntry, readRecord, refs, removeRecord, updateRecord } from '../records/stored.ts';
import { keepExamples, stepJob, sumsNow } from './job-records.ts';
import { boundsCut, ensureRange, freshRange, listRanges, writeEach } from './range-records.ts';
import type { SendTask } from './tasks.ts';

/** Lists may be a moment behind: when no more ranges than this are open by them, each is read by its id, and each that they lack. */
const LOOKS_MAX = 16;
/** Others change the record while ranges are split or tombstones reserved. */
const ATTEMPTS_MAX = 5;

export interface JobEnds {
  /** Ends the job as done if all its ranges are; makes those that a crash left unmade. Throws the store's fault. */
  finishIfDone(jobId: string): Promise<void>;
  /** Ends it as failed, wherever it is. Throws the store's fault. */
  fail(job: JobRecord, error: JobFault): Promise<void>;
  /** Ends it as cancelled: its bucket is no longer connected. Throws the store's fault. */
  cancel(job: JobRecord): Promise<void>;
  /**
   * Makes the ranges that were split off this one, where they are not there yet, and tells the workers; whether any was
   * made. `isTold: false`: whoever made one may not have come to tell, so it is told again. Throws the store's fault.
   */
  completeSplit(range: RangeRecord, options?: { readonly isTold: boolean }): Promise<boolean>;
}

export interface EndsDependencies {
  readonly state: StateStore;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly sendTask: SendTask;
}

interface JobEndsDependencies extends EndsDependencies {
  readonly scan: Pick<ObjectScan, 'refresh'>;
}

/** Creates the ends. */
export function createJobEnds({ state, scan, clock, telemetry, sendTask }: JobEndsDependencies): JobEnds {
  async function end(job: JobRecord): Promise<void> {
    telemetry.jobEnded(job);
    await removeRanges(state, job.id);
  }

  /** Undefined while not all are done. */
  async function allDone(job: JobRecord): Promise<readonly RangeRecord[] | undefined> {
    const listed = await listRanges(state, job.id);
    const ranges = new Map(listed.filter(({ done }) => done).map((range) => [range.number, range]));
    if (listed.length - ranges.size > LOOKS_MAX) return undefined;
    const open = numbersOf(job).filter((number) => !ranges.has(number));
    for (const number of open) {
      const range = await readRecord(state, refs.range(job.id, number));
      if (range !== undefined) ranges.set(number, range);
      else if (await makeCut(job, number)) return undefined;
      // else a number that was taken for a split which never came about
    }
    for (const range of ranges.values()) {
      if (!range.done) return undefined;
      const isMade = (range.splits ?? []).every(({ number }) => ranges.has(number));
      if (!isMade && (await completeSplit(range))) return undefined;
    }
    return [...ranges.values()];
  }

  /** Whether it is one of the ranges cut in advance, which is made now. */
  async function makeCut(job: JobRecord, number: number): Promise<boolean> {
    const bounds = boundsCut(job, number);
    if (bounds === undefined) return false;
    await ensureRange(state, freshRange(job.id, number, { ...bounds, nowMs: clock.nowMs() }));
    await sendTask({ job: job.id, range: number });
    return true;
  }

  async function completeSplit({ jobId, splits = [] }: RangeRecord, { isTold } = { isTold: true }): Promise<boolean> {
    let isAnyNew = false;
    await writeEach(splits, async ({ number, ...bounds }) => {
      const isNew = await ensureRange(state, freshRange(jobId, number, { ...bounds, nowMs: clock.nowMs() }));
      if (isNew || !isTold) await sendTask({ job: jobId, range: number, turn: 0 });
      isAnyNew ||= isNew;
    });
    return isAnyNew;
  }

  /** Before the job ends, so that a bucket never waits for a date whose job is over. */
  async function dateBucket(job: JobRecord, atMs: number): Promise<void> {
    const certifies = job.mode === 'apply' && job.prefix === '' && job.now !== true;
    if (!certifies) return;
    await updateRecord(state, refs.bucket(job.bucket), (bucket) => bucket && { ...bucket, lastReindexAtMs: atMs });
  }

  async function attemptFinish(jobId: string): Promise<'conflict' | 'over'> {
    const { id, kind } = refs.job(jobId);
    const entry = await state.get(id);
    if (entry === undefined) return 'over';
    const job = parseEntry(entry, jobSchema);
    if (placeOf(job) !== 'comparing') return 'over';
    const ranges = await allDone(job);
    if (ranges === undefined) return 'over';
    const atMs = clock.nowMs();
    const sums = sumOf(job, ranges);
    const finished = afterStep(job, { kind: 'finish', atMs, sums });
    if (finished === 'refused') return 'over';
    await keepExamples(state, job.id, sums);
    // who waited for the job is going to search
    if (job.mode === 'apply') await scan.refresh(job.bucket);
    await dateBucket(job, atMs);
    // a range that was split off since would have changed it
    const stored = await state.put({ id, kind, record: keepingUnknown(entry, jobSchema, finished) }, entry.version);
    if (stored === 'conflict') return 'conflict';
    await end(finished);
    return 'over';
  }

  return {
    completeSplit,
    async finishIfDone(jobId) {
      for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
        if ((await attemptFinish(jobId)) === 'over') return;
      }
    },
    async fail(job, error) {
      const failed = await stepJob(state, job.id, { kind: 'fail', atMs: clock.nowMs(), error, sums: await sumsNow(state, job) });
      if (failed !== undefined && failed !== 'refused') await end(failed);
    },
    async cancel(job) {
      const cancelled = await stepJob(state, job.id, { kind: 'cancel', atMs: clock.nowMs(), sums: await sumsNow(state, job) });
      if (cancelled !== undefined && cancelled !== 'refused') await end(cancelled);
    },
  };
}

/** Removes all range records of a job. Throws the store's fault. */
export async function removeRanges(state: StateStore, jobId: string): Promise<void> {
  await writeEach(await listRanges(state, jobId), ({ number }) => removeRecord(state, refs.range(jobId, number).id));
}

function numbersOf({ rangesCut = 0 }: JobRecord): readonly number[] {
  return Array.from({ length: rangesCut }, (_, number) => number);
}
