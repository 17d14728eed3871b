/**
 * Advances a job until its ranges can be compared, and then looks each minute whether they are in order. Any worker may do it,
 * when it has claimed the job. Each transition is one compare-and-swap, and everything before it can be repeated; so a crash in
 * between does no harm.
 *
 *   queued ── floor stored in the bucket's record ──► waiting ── Q later by S3's clock ──► index refreshed, documents counted,
 *   ranges cut ──► comparing ── range records stored ──(each minute: those that are missing, those that sleep, the end)──►
 *
 * S3's clock decides whether the wait is over, never this machine's: the end must hold for all workers.
 */
import type { BucketRecord } from '../../domain/bucket.ts';
import { PLAUSIBLE_MS, RECONCILE_WAIT_MS } from '../../domain/ordering/constants.ts';
import { FaultError, faultOf, type Fault } from '../../domain/fault.ts';
import { coversBefore, lastBeginOf, nextBeginOf } from '../../domain/reindex/covers.ts';
import { phaseOf, tombstoneLimit } from '../../domain/reindex/job-transitions.ts';
import { hasEnded, type JobRecord } from '../../domain/reindex/job.ts';
import { RequestError } from '../../domain/request-error.ts';
import { isAnyHeld } from '../gaps/stored-gaps.ts';
import { closesDeletesOf } from './announced-deletes.ts';
import type { Occupancy } from './occupancy.ts';
import type { ObjectScan } from '../ports/object-index.ts';
import type { BucketListing, BucketLocation, ListingPage } from '../ports/storage.ts';
import { LISTING_PAGE } from '../compare/page-feeds.ts';
import { readRecord, refs, updateRecord } from '../records/stored.ts';
import type { EndsDependencies, JobEnds } from './job-ends.ts';
import { transitionJob } from './job-records.ts';
import { cutKeys, probeIndex, probeListing } from './key-probes.ts';
import { ensureCutRange, listRanges, writeEach, type RangeLimits } from './range-records.ts';
import { WITHOUT_PROGRESS_MAX } from '../../domain/reindex/claims.ts';
import { answerAtStart, FAULT_WAIT_MS, waitMs, answerTo } from '../../domain/reindex/range-transitions.ts';
import type { HeldJob } from './held-job.ts';
import { hasPassedMore, passedPages, placeAfter, type ListingPlace } from '../../domain/reindex/passed-pages.ts';
import type { WithPorts } from '../ports/ports.ts';

/** What rule 8 adds to W, since S3 states whole seconds and its clocks differ. */
const FLOOR_SLACK_MS = 3_000;
/** The Date header states whole seconds, so the moment may be this much later. */
const DATE_STEP_MS = 1_000;
/** Twice the listings of two workers with default settings; a range that takes longer than the others is split later. */
const CUTS_MAX = 32;

/**
 * At 100 ms for each LIST they list 40,000 keys a second, more than an index of a few cores writes. They differ in size: while the
 * index has work to spare, they are split further.
 */
const LISTED_CUTS = 4;
/** How often a job that compares is looked at. Only what a crash left undone waits for it. */
const CHECK_MS = 60_000;
const NOW: StepEnd = { againMs: 0 };

/** LIST requests of these three cuts, each of which takes up to 17. */
const CUT_REQUESTS_MAX = 50;

/** What a job begins with. `first`: the first page of its listing that has keys, or the last page. `requests`: those of the attempt that found it. */
interface Begin {
  readonly first: ListingPage;
  readonly requests: number;
  readonly location: BucketLocation;
}

interface Cuts {
  readonly cuts: readonly string[];
  readonly requests: number;
}

interface AdvanceDependencies extends EndsDependencies {
  readonly listing: BucketListing;
  readonly scan: ObjectScan;
  readonly occupancy: Occupancy;
  readonly ends: JobEnds;
  readonly limits: RangeLimits;
}

/** When the job is due again, and whether ranges of it are due now that were not; `over`: nothing is to be done, because it was paused or has ended. */
type StepEnd = 'over' | { readonly againMs: number; readonly hasMadeDue?: boolean };

/** Creates the function that takes the next step of a job. It throws the faults of S3 and of the store; the job is unchanged then. */
function createAdvanceJob(dependencies: AdvanceDependencies): (job: JobRecord, signal: AbortSignal) => Promise<StepEnd> {
  const { state, clock, listing, scan, occupancy, ends, limits } = dependencies;
  const firstPage = createFirstPage(dependencies);

  async function advance(job: JobRecord, signal: AbortSignal): Promise<StepEnd> {
    if (!(await mayRun(job))) return 'over';
    const bucket = await readRecord(state, refs.bucket(job.bucket), signal);
    if (bucket === undefined) {
      await ends.cancel(job);
      return 'over';
    }
    return carryOn(job, bucket, signal);
  }

  async function carryOn(job: JobRecord, bucket: BucketRecord, signal: AbortSignal): Promise<StepEnd> {
    const phase = phaseOf(job);
    if (phase === 'comparing') return keepInOrder(job);
    if (phase === 'queued' && job.mode === 'apply' && job.now !== true) {
      const [startedMs, sentMs] = [clock.monotonicMs(), clock.nowMs()];
      return wait(job, { first: await listing.page(bucket, firstOf(job), signal), startedMs, sentMs });
    }
    const waitUntilMs = phase === 'waiting' ? (job.waitUntilMs ?? 0) : 0;
    const found = await firstPage({ job, bucket, waitUntilMs }, signal);
    return 'againMs' in found ? found : begin(job, { ...found, location: bucket }, signal);
  }

  /** An apply job that does not occupy its bucket occupies it now, or is paused if another job does. */
  async function mayRun(job: JobRecord): Promise<boolean> {
    if (await occupancy.mayRun(job)) return true;
    try {
      // without the wait for lists: the request for a new job occupies its bucket at the same moment, and it is what waits
      await occupancy.occupy(job, 'soon');
      return true;
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      await transitionJob(state, job.id, { kind: 'pause', atMs: clock.nowMs() });
      return false;
    }
  }

  /** Rule 8. The floor is stored first, with the place of this beginning, so that every waiting job has one. */
  async function wait(
    job: JobRecord,
    look: { readonly first: ListingPage; readonly startedMs: number; readonly sentMs: number },
  ): Promise<StepEnd> {
    const { observedAtMs, answeredAtMs = observedAtMs } = look.first;
    const floor = (answeredAtMs + PLAUSIBLE_MS + FLOOR_SLACK_MS) * 1_000;
    const bucket = await updateRecord(
      state,
      refs.bucket(job.bucket),
      (current) => current && { ...current, floor: Math.max(current.floor, floor), lastBeginOrder: nextBeginOf(current, clock.nowMs()) },
    );
    if (bucket === undefined) return NOW;
    // the latest moment, by S3's clock, at which the floor was stored
    const storedMs = answeredAtMs + DATE_STEP_MS + Math.ceil(clock.monotonicMs() - look.startedMs);
    const waitUntilMs = storedMs + RECONCILE_WAIT_MS;
    const coversBeforeMs = coversBefore({ observedAtMs, sentMs: look.sentMs });
    const beginOrder = lastBeginOf(bucket);
    await transitionJob(state, job.id, { kind: 'wait', atMs: clock.nowMs(), coversBeforeMs, beginOrder, waitUntilMs });
    return { againMs: RECONCILE_WAIT_MS };
  }

  async function begin(job: JobRecord, { first, requests: ofFirst, location }: Begin, signal: AbortSignal): Promise<StepEnd> {
    const { bucket, prefix } = job;
    await scan.refresh(bucket, signal);
    const documentsAtStart = await scan.countLive(bucket, prefix, signal);
    const { cuts, requests: ofCuts } = await cutsOf(job, { first, location, documentsAtStart }, signal);
    const isDoubtful = first.objects.length === 0 && documentsAtStart > 0;
    const { isEmpty: isEmptyBucket, requests: ofBucket } = isDoubtful ? await lookAtBucket(job, signal) : { isEmpty: false, requests: 0 };
    const closesDeletes = await closesDeletesOf(state, job);
    const { allowDeletes } = job;
    const limit = tombstoneLimit({ documentsAtStart, isEmptyBucket, closesDeletes, allowDeletes, isAnyHeld: await isAnyHeld(state, job) });
    const begun = await transitionJob(state, job.id, {
      kind: 'compare',
      atMs: clock.nowMs(),
      documentsAtStart,
      cuts,
      ...(limit !== undefined && { tombstonesMax: limit }),
      listRequests: (job.listRequestsAtStart ?? 0) + (job.waitUntilMs === undefined ? 0 : 1) + ofFirst + ofBucket + ofCuts,
    });
    return begun === undefined || begun === 'refused' ? NOW : keepInOrder(begun);
  }

  /** Where the first ranges end, and the number of LIST requests that finding it took. */
  async function cutsOf(
    { bucket, prefix }: JobRecord,
    { first, location, documentsAtStart }: Omit<Begin, 'requests'> & { readonly documentsAtStart: number },
    signal: AbortSignal,
  ): Promise<Cuts> {
    // a power of two, because keys are cut by halving: then the parts are of like size and end together
    const parts = 2 ** Math.floor(Math.log2(Math.min(CUTS_MAX, documentsAtStart / limits.rangeDocumentsMin)));
    if (parts > 1) {
      const probe = probeIndex({ scan, bucket, prefix, keysMin: Math.min(LISTING_PAGE, limits.rangeDocumentsMin) }, signal);
      return { cuts: await cutKeys({ cursor: '' }, parts, probe), requests: 0 };
    }
    const keys = first.isTruncated ? first.objects.length : 0;
    const isUnknown = keys >= limits.splitKeysMin && keys > documentsAtStart;
    return isUnknown ? cutsOfListing({ listing, location, prefix, keysMin: limits.splitKeysMin }, signal) : { cuts: [], requests: 0 };
  }

  /** Whether the whole bucket is empty. A prefix without objects is ordinary, but an empty bucket needs a person's consent. */
  async function lookAtBucket(
    { bucket, prefix }: JobRecord,
    signal: AbortSignal,
  ): Promise<{ readonly isEmpty: boolean; readonly requests: number }> {
    const record = await readRecord(state, refs.bucket(bucket), signal);
    if (prefix === '' || record === undefined) return { isEmpty: true, requests: 0 };
    try {
      const { objects, requests = 1 } = await listing.page(record, { prefix: '', after: '', limit: 1 }, signal);
      return { isEmpty: objects.length === 0, requests };
    } catch (error) {
      // the policy may allow this prefix only: what cannot be seen counts as empty
      if (error instanceof FaultError && error.code === 'object.denied') return { isEmpty: true, requests: 1 };
      throw error;
    }
  }

  /**
   * Stores the range records that are missing, makes those due that fell asleep while the job was paused, and ends the job if all
   * are done: a worker may have died before it did. Each worker that stores a range as done looks at the end too.
   */
  async function keepInOrder(job: JobRecord): Promise<StepEnd> {
    const ranges = new Map((await listRanges(state, job.id)).map((range) => [range.number, range]));
    const numbers = Array.from({ length: job.rangesCut ?? 0 }, (_, number) => number);
    let hasMadeDue = false;
    await writeEach(numbers, async (number) => {
      const range = ranges.get(number);
      if (range !== undefined && (range.done || range.dueAtMs !== undefined)) return;
      hasMadeDue = true;
      await (range === undefined ? ensureCutRange(state, job, { number, nowMs: clock.nowMs() }) : wake(job.id, number));
    });
    await ends.finishIfDone(job.id);
    return { againMs: CHECK_MS, hasMadeDue };
  }

  async function wake(jobId: string, number: number): Promise<void> {
    await updateRecord(
      state,
      refs.range(jobId, number),
      (range) => (range === undefined || range.done || range.dueAtMs !== undefined ? undefined : { ...range, dueAtMs: clock.nowMs() }),
      'soon',
    );
  }

  return advance;
}

/** The cuts of a bucket of which one whole page shows more keys than the index has documents. A fault of the listing leaves it whole: the turn reports such faults. */
async function cutsOfListing(part: Omit<Parameters<typeof probeListing>[0], 'isWanted'>, signal: AbortSignal): Promise<Cuts> {
  const probe = probeListing({ ...part, isWanted: () => probe.requests() < CUT_REQUESTS_MAX }, signal);
  try {
    return { cuts: await cutKeys({ cursor: '' }, LISTED_CUTS, probe), requests: probe.requests() };
  } catch (error) {
    if (!(error instanceof FaultError)) throw error;
    return { cuts: [], requests: probe.requests() };
  }
}

/** Until the next attempt at a step that failed because of the job itself, or that has passed no more pages without keys than an earlier one. */
const RETRY_MS = 10_000;

/** Why a job fails whose every step ended with its process. */
export const diedAtStep = {
  code: 'internal.unexpected',
  reason: `${WITHOUT_PROGRESS_MAX} workers in a row ended while they took a step of this job`,
} as const;

/** Creates the function that takes the next step of a claimed job, and stores when the job is due again: after a fault, too. It resolves with whether something of the job is due now that was not. Never rejects. */
export function createTakeStep(dependencies: AdvanceDependencies, aborted: AbortSignal) {
  const { clock, telemetry, ends } = dependencies;
  const advance = createAdvanceJob(dependencies);
  return async function takeStep(held: HeldJob): Promise<boolean> {
    try {
      const end = await advance(held.job, aborted);
      const againMs = end === 'over' ? FAULT_WAIT_MS : end.againMs;
      await held.release((job) => ({ ...job, fruitless: 0, dueAtMs: clock.nowMs() + againMs }));
      // not where it was put off: it may be due at once for this worker, whose clock may be wrong
      return end !== 'over' && (end.hasMadeDue === true || againMs === 0);
    } catch (error) {
      const { code, reason } = faultOf(error);
      if (!aborted.aborted) telemetry.requestFailed('start a re-index job', error);
      // the store may be what fails
      await afterFault(held, { code, reason }).catch(() => undefined);
      return false;
    }
  };

  async function afterFault(held: HeldJob, fault: Fault): Promise<void> {
    if (aborted.aborted) return held.release((job) => ({ ...job, dueAtMs: clock.nowMs() }));
    const { fruitless = 0 } = held.job;
    switch (answerAtStart(fault.code, held.job)) {
      case 'wait':
        return held.release((job) => waitingToStart(job, fault, clock.nowMs()));
      case 'retry':
        if (fruitless + 1 < WITHOUT_PROGRESS_MAX)
          return held.release((job) => ({ ...job, fruitless: fruitless + 1, dueAtMs: clock.nowMs() + RETRY_MS }));
        break;
      case 'fail':
    }
    await ends.fail(held.job, fault);
    // a job that was paused meanwhile does not fail
    await held.release((job) => ({ ...job, dueAtMs: clock.nowMs() }));
  }
}

/** The job keeps its place, shows why it waits, and is due again when the fault may be over. */
function waitingToStart(job: JobRecord, fault: Fault, nowMs: number): JobRecord {
  const sinceMs = job.waits?.sinceMs ?? nowMs;
  return { ...job, waits: { ...fault, sinceMs }, dueAtMs: nowMs + waitMs(sinceMs, nowMs) };
}

/*
 * The first page of a job's listing that has keys: it says whether the bucket is empty, and whether its listing must be cut.
 *
 *   request ─► a key, or the end of the listing ──────────────────────────► the job begins
 *     ▲  └───► no key, and more follow ─► 10 s are over: the place is stored, the job is due again ─┐
 *     └────────────────────────────────────────────────────────────────────────────────────────────┘
 */

/** How long one step follows pages without keys: a crash repeats no more, and other work gets the worker's slot. */
const FOLLOWED_MS_MAX = 10_000;

/** When the job is due again, if the page was not found yet. */
interface Later {
  readonly againMs: number;
}

/** The first page, and the number of requests that this attempt took. */
interface FirstPage {
  readonly first: ListingPage;
  readonly requests: number;
}

interface Wanted {
  readonly job: JobRecord;
  readonly bucket: BucketRecord;
  /** Until this time, by S3's clock, the job does not begin. */
  readonly waitUntilMs: number;
}

/** The first page of the job's listing, as one request. */
function firstOf({ prefix }: Pick<JobRecord, 'prefix'>, place?: ListingPlace): Parameters<BucketListing['page']>[1] {
  return { prefix, after: '', limit: LISTING_PAGE, from: place ?? 'start' };
}

/** Creates the function. It resolves with the page, or with when to look again. It throws the faults of S3 and of the store. */
function createFirstPage({ state, listing, clock }: WithPorts<'state' | 'clock'> & { readonly listing: BucketListing }) {
  return async function firstPage({ job, bucket, waitUntilMs }: Wanted, signal: AbortSignal): Promise<FirstPage | Later> {
    const startedMs = clock.monotonicMs();
    let place = placeAfter(job.passed, '');
    let requests = 0;
    try {
      while (requests === 0 || clock.monotonicMs() - startedMs < FOLLOWED_MS_MAX) {
        requests += 1;
        const first = await listing.page(bucket, firstOf(job, place), signal);
        const leftMs = waitUntilMs - first.observedAtMs;
        if (leftMs > 0 && place === undefined) return { againMs: leftMs };
        if (first.place === undefined) return { first, requests };
        ({ place } = first);
      }
    } catch (error) {
      // so that the next attempt continues there, or at the beginning if the place is what was refused
      await keep(job, { place, requests, isRefused: !signal.aborted && answerTo(faultOf(error).code) === 'retry' });
      throw error;
    }
    await keep(job, { place, requests, isRefused: false });
    return { againMs: hasPassedMore(job.passed, '', place) ? 0 : RETRY_MS };
  };

  /** Stores the place in the job, unless it has begun or ended meanwhile. */
  async function keep(
    { id }: JobRecord,
    { requests, ...at }: { readonly place: ListingPlace | undefined; readonly requests: number; readonly isRefused: boolean },
  ): Promise<void> {
    await updateRecord(state, refs.job(id), (current) => {
      if (current === undefined || hasEnded(current) || current.comparingAtMs !== undefined) return undefined;
      const { passed: before, ...rest } = current;
      const passed = passedPages(before, '', at);
      const listRequestsAtStart = (current.listRequestsAtStart ?? 0) + requests;
      return { ...rest, listRequestsAtStart, ...(passed !== undefined && { passed }) };
    });
  }
}
