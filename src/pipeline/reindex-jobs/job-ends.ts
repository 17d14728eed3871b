/**
 * How a job ends: it is done when every range is done and searches find what it wrote (or paused, if its deletion limit holds deletions
 * back), failed after a fault, or cancelled when
 * its bucket is disconnected. The swap that ends it also stores the sums of its ranges; their records are removed afterwards.
 * A worker that finds one that a crash left behind removes it.
 */
import { LRUCache } from 'lru-cache';
import { afterTransition, phaseOf, tombstonesLeft } from '../../domain/reindex/job-transitions.ts';
import { rewound } from '../../domain/reindex/range-transitions.ts';
import { sumOf } from '../../domain/reindex/job-view.ts';
import { faults } from '../../domain/fault.ts';
import { jobSchema, type JobFault, type JobRecord, type RangeRecord } from '../../domain/reindex/job.ts';
import type { StateEntry, StateStore } from '../ports/state.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { ObjectScan } from '../ports/object-index.ts';
import { keepingUnknown, parseEntry, readRecord, refs, updateRecord } from '../records/stored.ts';
import { warnOfGap } from '../gaps/reports.ts';
import { keepHeld } from '../gaps/stored-gaps.ts';
import { noteCompared } from './compared.ts';
import { keepExamples, transitionJob, sumsNow } from './job-records.ts';
import { ensureCutRange, ensureRange, freshRange, listRanges, removeRanges, writeEach, listRangesAfter } from './range-records.ts';
import type { WithPorts } from '../ports/ports.ts';

/** Lists may show a range as open, or not at all, that is done. Such ranges are read by their ids, this many at a time, until one is found open. */
const READS_AT_ONCE = 16;
/** Attempts to store the end while other workers split ranges or reserve tombstones, which changes the job's record too. */
const ATTEMPTS_MAX = 5;

export interface JobEnds {
  /** Ends the job as done if all its ranges are done; stores range records that a crash left out. Throws the store's fault. */
  finishIfDone(jobId: string): Promise<void>;
  /** Ends the job as failed, unless it is paused or has ended. Throws the store's fault. */
  fail(job: JobRecord, error: JobFault): Promise<void>;
  /** Ends the job as cancelled, because its bucket is no longer connected. Throws the store's fault. */
  cancel(job: JobRecord): Promise<void>;
  /** Stores the records of the ranges that were split off this one, unless they exist; resolves with whether any was new. Throws the store's fault. */
  completeSplit(range: RangeRecord): Promise<boolean>;
}

export type EndsDependencies = WithPorts<'state' | 'clock' | 'telemetry'>;

/** Creates the functions that end jobs. */
export function createJobEnds({
  state,
  scan,
  clock,
  telemetry,
}: EndsDependencies & { readonly scan: Pick<ObjectScan, 'refresh'> }): JobEnds {
  const openRanges = createOpenRanges(state);

  async function end(job: JobRecord): Promise<void> {
    reportJobEnd(telemetry, job);
    await removeRanges(state, job.id);
  }

  /** The ranges of the job; undefined while not all are done. */
  async function allDone(job: JobRecord): Promise<readonly RangeRecord[] | undefined> {
    const listed = await listRanges(state, job.id);
    const ranges = new Map(listed.filter(({ done }) => done).map((range) => [range.number, range]));
    const open = numbersOf(job).filter((number) => !ranges.has(number));
    // from the last, which are the most likely to be open
    for (let numbers = open.splice(-READS_AT_ONCE); numbers.length > 0; numbers = open.splice(-READS_AT_ONCE)) {
      const read = await Promise.all(numbers.map(async (number) => readRecord(state, refs.range(job.id, number))));
      if (read.some((range) => range?.done === false)) return undefined;
      for (const [at, number] of numbers.entries()) {
        const range = read[at];
        if (range !== undefined) ranges.set(number, range);
        else if (await ensureCutRange(state, job, { number, nowMs: clock.nowMs() })) return undefined;
        // else the number was reserved for a split that was never stored
      }
    }
    for (const range of ranges.values()) {
      const isMade = (range.splits ?? []).every(({ number }) => ranges.has(number));
      if (!isMade && (await completeSplit(range))) return undefined;
    }
    return [...ranges.values()];
  }

  async function completeSplit({ jobId, splits = [], isCounted }: RangeRecord): Promise<boolean> {
    let isAnyNew = false;
    await writeEach(splits, async ({ number, ...bounds }) => {
      if (await ensureRange(state, freshRange(jobId, number, { ...bounds, isCounted, nowMs: clock.nowMs() }))) isAnyNew = true;
    });
    return isAnyNew;
  }

  /** Lets the ranges be compared again in which deletions were held back, each from the first of them on. */
  async function rewind(ranges: readonly RangeRecord[]): Promise<'over'> {
    const holding = ranges.filter(({ heldBack }) => heldBack !== undefined);
    await writeEach(holding, ({ jobId, number }) =>
      updateRecord(state, refs.range(jobId, number), (current) => current && rewound(current, clock.nowMs())),
    );
    return 'over';
  }

  /** Stores what the job holds back, before anything shows that it has compared everything. */
  async function hold(job: JobRecord, ranges: readonly RangeRecord[]): Promise<void> {
    const { counts } = sumOf(job, ranges);
    const gap = await keepHeld(state, { ...job, counts }, { held: counts.held, isWhole: true, nowMs: clock.nowMs() });
    if (gap !== undefined) warnOfGap(telemetry, gap);
  }

  /** Pauses the job, or lets it continue if its deletion limit allows more by now: it was released, or a range has given back what it had reserved. */
  async function pauseOverLimit(entry: StateEntry, job: JobRecord, ranges: readonly RangeRecord[]): Promise<'conflict' | 'over'> {
    if (tombstonesLeft(job) > 0) return rewind(ranges);
    const paused = afterTransition(job, { kind: 'deletion-limit', atMs: clock.nowMs(), waiting: sumOf(job, ranges).counts.held });
    if (paused === 'refused') return 'over';
    await hold(paused, ranges);
    const { id, kind } = refs.job(job.id);
    const stored = await state.put({ id, kind, record: keepingUnknown(entry, jobSchema, paused) }, entry.version);
    return stored === 'conflict' ? 'conflict' : 'over';
  }

  async function attemptFinish(jobId: string): Promise<'conflict' | 'over'> {
    const { id, kind } = refs.job(jobId);
    const entry = await state.get(id);
    if (entry === undefined) return 'over';
    const job = parseEntry(entry, jobSchema);
    if (phaseOf(job) !== 'comparing' || (await openRanges.isAny(jobId))) return 'over';
    const ranges = await allDone(job);
    if (ranges === undefined) return 'over';
    const atMs = clock.nowMs();
    const sums = sumOf(job, ranges);
    if (isHeldBack(job, sums)) return pauseOverLimit(entry, job, ranges);
    const finished = afterTransition(job, { kind: 'finish', atMs, sums });
    if (finished === 'refused') return 'over';
    await keepExamples(state, job.id, sums);
    await hold(finished, ranges);
    // callers that waited for the job search next
    if (job.mode === 'apply') await scan.refresh(job.bucket);
    // before the job ends, so that the bucket has its date and its gap once the job is done
    await noteCompared(state, job, { atMs, counts: sums.counts });
    // conflicts if a range was split since the job was read
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
      const failed = await transitionJob(state, job.id, { kind: 'fail', atMs: clock.nowMs(), error, sums: await sumsNow(state, job) });
      if (failed !== undefined && failed !== 'refused') await end(failed);
    },
    async cancel(job) {
      const cancelled = await transitionJob(state, job.id, { kind: 'cancel', atMs: clock.nowMs(), sums: await sumsNow(state, job) });
      if (cancelled !== undefined && cancelled !== 'refused') await end(cancelled);
    },
  };
}

/** Whether the job has compared everything and waits for a person, because its deletion limit held deletions back. */
function isHeldBack({ holds }: JobRecord, { counts }: ReturnType<typeof sumOf>): boolean {
  return counts.held > 0 && holds !== true;
}

function numbersOf({ rangesCut = 0 }: JobRecord): readonly number[] {
  return Array.from({ length: rangesCut }, (_, number) => number);
}

/** Logs the end of a job. */
export function reportJobEnd(telemetry: Telemetry, { id, bucket, mode, requestedBy, state, counts, error }: JobRecord): void {
  const fields = { id, bucket, mode, requestedBy, state, counts };
  if (error === undefined) telemetry.info('job ended', fields);
  else telemetry.error('job ended', { ...fields, ...error, advice: faults[error.code].advice });
}

/*
 * Whether a job has an open range, asked each time one of its ranges is done. The worker remembers a page of ranges that were
 * listed as open and reads the first of them alone; when none of the page is open any more, it lists the page behind it. So over
 * a whole job it lists each range about once, where a list of all ranges for each one that is done would grow with the square of
 * their number.
 */

/** Ranges in one list: most pages show an open range among the first. */
const LIST_PAGE = 50;
/** Jobs that are remembered: more than compare at the same time. A job that is forgotten is listed from its beginning. */
const JOBS_MAX = 100;

/** What is known of a job: no range up to `through` is open except these, in the order of their numbers. */
interface Known {
  readonly open: readonly number[];
  readonly through: number;
}

interface OpenRanges {
  /**
   * True: a range of the job is open now. False: the list shows none, which may lag, and ranges that were split off just now are
   * missing in it; so the caller reads them by their ids. Throws the store's fault.
   */
  readonly isAny: (jobId: string) => Promise<boolean>;
}

/** Creates the memory of one worker. */
export function createOpenRanges(state: StateStore): OpenRanges {
  const jobs = new LRUCache<string, Known>({ max: JOBS_MAX });

  /** The first of them that is open, and those behind it. By their ids, since a list may show a range as open that was stored as done a moment ago. */
  async function stillOpen(jobId: string, numbers: readonly number[]): Promise<readonly number[]> {
    for (const [at, number] of numbers.entries()) {
      if ((await readRecord(state, refs.range(jobId, number)))?.done === false) return numbers.slice(at);
    }
    return [];
  }

  return {
    async isAny(jobId) {
      let { open, through } = jobs.get(jobId) ?? { open: [], through: -1 };
      for (;;) {
        open = await stillOpen(jobId, open);
        if (open.length > 0) {
          jobs.set(jobId, { open, through });
          return true;
        }
        const page = await listRangesAfter(state, jobId, { number: through, limit: LIST_PAGE });
        const last = page.at(-1);
        if (last === undefined) {
          jobs.delete(jobId);
          return false;
        }
        open = page.filter(({ done }) => !done).map(({ number }) => number);
        through = last.number;
      }
    },
  };
}
