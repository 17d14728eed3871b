/**
 * A job carried on to where its ranges can be compared, whichever worker has its task. Each step is one compare-and-swap,
 * and everything before it can be done twice; so a crash between any two of them, or a task that comes twice, does no harm.
 *
 *   queued ── floor stored in the bucket's record ──► waiting ── Q later by S3's clock ──► index refreshed, documents counted,
 *   ranges cut ──► comparing ── range records stored, a task sent for each
 *
 * Whether the wait is over is asked of S3, never of this machine's clock: it must be true of every worker at once.
 */
import type { BucketRecord } from '../../domain/bucket.ts';
import { gapSchema, type GapKind } from '../../domain/gaps/gap.ts';
import { PLAUSIBLE_MS, RECONCILE_WAIT_MS } from '../../domain/ordering/constants.ts';
import { FaultError } from '../../domain/fault.ts';
import { placeOf, tombstoneLimit } from '../../domain/reindex/job-steps.ts';
import type { JobRecord } from '../../domain/reindex/job.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { JobSlots } from './job-slots.ts';
import type { ObjectScan } from '../ports/object-index.ts';
import type { BucketListing, ListingPage } from '../ports/storage.ts';
import { readRecord, refs, updateRecord } from '../records/stored.ts';
import type { EndsDependencies, JobEnds } from './job-ends.ts';
import { stepJob } from './job-records.ts';
import { cutKeys, probeIndex } from './key-probes.ts';
import { boundsCut, ensureRange, freshRange, listRanges, writeEach, type RangeLimits } from './range-records.ts';
import { REMOVE, type TaskEnd } from './tasks.ts';

/** Beyond W, what rule 8 adds for the fractions that a whole second and two clocks hide. */
const FLOOR_SLACK_MS = 3_000;
/** The Date header has whole seconds: the moment may be so much later than it says. */
const DATE_STEP_MS = 1_000;
/** Two workers' listings by default, and as many again; what is longer than the others is split on the way. */
const CUTS_MAX = 32;
/** Kinds of gaps that are made of deletes: an allowance of deletes would never let them close. */
const DELETE_GAPS: ReadonlySet<GapKind> = new Set(['bulk-delete', 'lifecycle']);

export type AdvanceJob = (jobId: string, signal: AbortSignal) => Promise<TaskEnd>;

interface AdvanceDependencies extends EndsDependencies {
  readonly listing: BucketListing;
  readonly scan: ObjectScan;
  readonly slots: JobSlots;
  readonly ends: JobEnds;
  readonly limits: RangeLimits;
}

/** Creates the advance. It throws the faults of S3, the store and the work queue; the job is where it was then. */
export function createAdvanceJob(dependencies: AdvanceDependencies): AdvanceJob {
  const { state, clock, listing, scan, slots, ends, sendTask, limits } = dependencies;

  async function advance(jobId: string, signal: AbortSignal): Promise<TaskEnd> {
    const job = await readRecord(state, refs.job(jobId), signal);
    if (job === undefined || !isOpen(job) || !(await hasPlace(job))) return REMOVE;
    const bucket = await readRecord(state, refs.bucket(job.bucket), signal);
    if (bucket === undefined) {
      await ends.cancel(job);
      return REMOVE;
    }
    return carryOn(job, bucket, signal);
  }

  async function carryOn(job: JobRecord, bucket: BucketRecord, signal: AbortSignal): Promise<TaskEnd> {
    const place = placeOf(job);
    if (place === 'comparing') return sendRanges(job);
    const startedMs = clock.monotonicMs();
    const first = await listing.page(bucket, { prefix: job.prefix, after: '', limit: 1 }, signal);
    if (place === 'queued' && job.mode === 'apply' && job.now !== true) return wait(job, { first, startedMs });
    const leftMs = place === 'waiting' ? (job.waitUntilMs ?? 0) - first.observedAtMs : 0;
    return leftMs > 0 ? again(leftMs) : begin(job, first, signal);
  }

  /** An apply job runs only while its bucket's slot names it. One that has none takes it, or is set aside. */
  async function hasPlace(job: JobRecord): Promise<boolean> {
    if (job.mode === 'report' || (await slots.isOf(job))) return true;
    try {
      await slots.take(job);
      return true;
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      await stepJob(state, job.id, { kind: 'pause', atMs: clock.nowMs() });
      return false;
    }
  }

  /** Rule 8. The floor comes first: a job that waits has one. */
  async function wait(job: JobRecord, look: { readonly first: ListingPage; readonly startedMs: number }): Promise<TaskEnd> {
    const { observedAtMs } = look.first;
    const floor = (observedAtMs + PLAUSIBLE_MS + FLOOR_SLACK_MS) * 1_000;
    const bucket = await updateRecord(
      state,
      refs.bucket(job.bucket),
      (current) => current && { ...current, floor: Math.max(current.floor, floor) },
    );
    if (bucket === undefined) return again(0);
    // by S3's clock it was stored at this moment at the latest
    const storedMs = observedAtMs + DATE_STEP_MS + (clock.monotonicMs() - look.startedMs);
    const waitUntilMs = storedMs + RECONCILE_WAIT_MS;
    await stepJob(state, job.id, { kind: 'wait', atMs: clock.nowMs(), coversBeforeMs: observedAtMs, waitUntilMs });
    return again(RECONCILE_WAIT_MS);
  }

  async function begin(job: JobRecord, first: ListingPage, signal: AbortSignal): Promise<TaskEnd> {
    const { bucket, prefix } = job;
    await scan.refresh(bucket, signal);
    const documentsAtStart = await scan.countLive(bucket, prefix, signal);
    // halves of halves: parts are equal where they are a power of two, and equal ones end together
    const parts = 2 ** Math.floor(Math.log2(Math.min(CUTS_MAX, documentsAtStart / limits.rangeDocumentsMin)));
    const cuts =
      parts > 1
        ? await cutKeys(
            { cursor: '' },
            parts,
            probeIndex({ scan, bucket, prefix, keysMin: Math.min(1_000, limits.rangeDocumentsMin) }, signal),
          )
        : [];
    const isEmptyBucket = first.objects.length === 0 && documentsAtStart > 0 && (await isEmpty(job, signal));
    const closesDeletes = await closesDeletesOf(job);
    const limit = tombstoneLimit({ documentsAtStart, isEmptyBucket, closesDeletes, allowDeletes: job.allowDeletes });
    const begun = await stepJob(state, job.id, {
      kind: 'compare',
      atMs: clock.nowMs(),
      documentsAtStart,
      cuts,
      ...(limit !== undefined && { tombstonesMax: limit }),
      listRequests: (job.waitUntilMs === undefined ? 1 : 2) + (isEmptyBucket ? 1 : 0),
    });
    return begun === undefined || begun === 'refused' ? again(0) : sendRanges(begun);
  }

  /** Nothing below the prefix may be on purpose; a bucket without a single object is asked about. */
  async function isEmpty({ bucket, prefix }: JobRecord, signal: AbortSignal): Promise<boolean> {
    const record = await readRecord(state, refs.bucket(bucket), signal);
    if (prefix === '' || record === undefined) return true;
    try {
      return (await listing.page(record, { prefix: '', after: '', limit: 1 }, signal)).objects.length === 0;
    } catch (error) {
      // some may list their own prefix only: who cannot see more must be asked
      if (error instanceof FaultError && error.code === 'object.denied') return true;
      throw error;
    }
  }

  async function closesDeletesOf({ gapIds = [] }: JobRecord): Promise<boolean> {
    for (const id of gapIds) {
      const gap = await readRecord(state, { id, schema: gapSchema });
      if (gap !== undefined && DELETE_GAPS.has(gap.kind)) return true;
    }
    return false;
  }

  /** Makes what is missing of the ranges, and tells the workers of each that is open and in nobody's hands. */
  async function sendRanges(job: JobRecord): Promise<TaskEnd> {
    const ranges = new Map((await listRanges(state, job.id)).map((range) => [range.number, range]));
    const numbers = Array.from({ length: job.rangesCut ?? 0 }, (_, number) => number);
    await writeEach(numbers, async (number) => {
      const range = ranges.get(number) ?? (await made(job, number));
      const isFree = range !== undefined && !range.done && (range.lease?.untilMs ?? 0) <= clock.nowMs();
      if (isFree) await sendTask({ job: job.id, range: number, turn: range.turn });
    });
    await ends.finishIfDone(job.id);
    return REMOVE;
  }

  async function made(job: JobRecord, number: number) {
    const bounds = boundsCut(job, number);
    if (bounds !== undefined) await ensureRange(state, freshRange(job.id, number, { ...bounds, nowMs: clock.nowMs() }));
    return readRecord(state, refs.range(job.id, number));
  }

  return advance;
}

function isOpen(job: JobRecord): boolean {
  return job.state === 'queued' || job.state === 'running';
}

function again(delayMs: number): TaskEnd {
  return { kind: 'again', delayS: Math.ceil(delayMs / 1_000) };
}
