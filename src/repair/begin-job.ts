/**
 * Brings a held job to the point where it compares. Each transition is one compare-and-swap, and everything before it can be
 * repeated, so a crash in between does no harm.
 *
 *   queued ── floor stored in the bucket's record ──► waiting ── Q later by S3's clock ──► index refreshed, documents counted
 *   ──► comparing
 *
 * S3's clock decides whether the wait is over, never this machine's: the end must hold for all processes.
 */
import { FaultError, faultOf, type Fault } from '../base/fault.ts';
import { PLAUSIBLE_MS, RECONCILE_WAIT_MS } from '../ordering/constants.ts';
import { waitMs, WITHOUT_PROGRESS_MAX, coversBefore, lastBeginOf, nextBeginOf, type JobRecord } from '../records/job.ts';
import { addCounts, noCounts } from '../records/comparison.ts';
import { phaseOf, tombstoneLimit, answerAtStart, waitingToStart } from './job.rules.ts';
import { RequestError } from '../base/request-error.ts';
import { FOLLOW_MS_MAX, LISTING_PAGE } from './reconcile-turn.ts';
import { areDeletesAnnounced, isAnyHeld } from '../observing/gaps.ts';
import type { ObjectScan, WithPorts } from '../store/store.ts';
import type { BucketListing, BucketLocation, ListingPage } from '../aws/storage.ts';
import { readRecord, refs, updateRecord } from '../store/stored.ts';
import type { HeldJob } from './job-lease.ts';
import { cancelJob, failJob, noteStop } from './job-ends.ts';
import { occupyBucket } from './job-requests.ts';

/** What a floor adds to W, because S3 states whole seconds and its clocks differ (rule 8). */
const FLOOR_SLACK_MS = 3_000;
/** The Date header states whole seconds, so the true moment may be this much later. */
const DATE_STEP_MS = 1_000;
/** When to try again after the beginning failed because of the job itself. */
const RETRY_MS = 10_000;

export interface BeginDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly listing: BucketListing;
  readonly scan: ObjectScan;
}

/** What a job needs to begin. `first`: the first page of its listing that has keys, or the last page. */
interface Begin {
  readonly first: ListingPage;
  readonly location: BucketLocation;
}

/** `begun`: the job compares. `over`: it is paused, cancelled or lost. Otherwise, when the next attempt is due. */
type BeginEnd = 'begun' | 'over' | { readonly againMs: number };

/** Creates the function that brings a held job as far as possible now. Resolves with whether it compares; if not, it was given back, or has failed. Throws only the store's fault and the signal's reason. */
export function createBeginJob(dependencies: BeginDependencies): (held: HeldJob, signal: AbortSignal) => Promise<boolean> {
  const { state, clock, telemetry, listing, scan } = dependencies;

  async function beginJob(held: HeldJob, signal: AbortSignal): Promise<boolean> {
    try {
      const end = await advance(held, signal);
      if (end === 'begun') return true;
      if (end !== 'over') await held.release(clock.nowMs() + end.againMs, (job) => ({ ...job, fruitless: 0 }));
      else await held.release(clock.nowMs());
    } catch (error) {
      signal.throwIfAborted();
      telemetry.requestFailed('start a re-index job', error);
      const { code, reason } = faultOf(error);
      await afterFault(held, { code, reason });
    }
    return false;
  }

  async function afterFault(held: HeldJob, fault: Fault): Promise<void> {
    const { fruitless = 0 } = held.job;
    const nowMs = clock.nowMs();
    switch (answerAtStart(fault.code, held.job)) {
      case 'wait': {
        const { waits } = waitingToStart(held.job, fault, nowMs);
        return held.release(nowMs + waitMs(waits.sinceMs, nowMs), (job) => waitingToStart(job, fault, nowMs));
      }
      case 'retry':
        if (fruitless + 1 < WITHOUT_PROGRESS_MAX) return held.release(nowMs + RETRY_MS, (job) => ({ ...job, fruitless: fruitless + 1 }));
        break;
      case 'fail':
    }
    await failJob(dependencies, held, fault);
  }

  async function advance(held: HeldJob, signal: AbortSignal): Promise<BeginEnd> {
    const { job } = held;
    if (!(await mayRun(held))) return 'over';
    const bucket = await readRecord(state, refs.bucket(job.bucket), signal);
    if (bucket === undefined) {
      await cancelJob(dependencies, held);
      return 'over';
    }
    const phase = phaseOf(job);
    if (phase === 'comparing') return 'begun';
    if (phase === 'queued' && job.mode === 'apply' && job.now !== true) {
      const [startedMs, sentMs] = [clock.monotonicMs(), clock.nowMs()];
      return wait(held, { first: await listing.page(bucket, firstOf(job, 0), signal), startedMs, sentMs });
    }
    const waitUntilMs = phase === 'waiting' ? (job.waitUntilMs ?? 0) : 0;
    const first = await listing.page(bucket, firstOf(job, FOLLOW_MS_MAX), signal);
    const leftMs = waitUntilMs - first.observedAtMs;
    return leftMs > 0 ? { againMs: leftMs } : begin(held, { first, location: bucket }, signal);
  }

  /** If the bucket's record does not name this apply job, the job occupies its bucket now, or is paused if another job does. */
  async function mayRun(held: HeldJob): Promise<boolean> {
    const { id, bucket, mode } = held.job;
    if (mode === 'report') return true;
    const record = await readRecord(state, refs.bucket(bucket));
    if (record === undefined || record.applyJobId === id) return true;
    try {
      // without waiting for lists: a request for a new job, which occupies the bucket at the same moment, waits for them
      await occupyBucket(state, held.job, 'soon');
      return true;
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      const pause = { kind: 'pause', atMs: clock.nowMs() } as const;
      await noteStop(state, held.job, pause);
      await held.transition(pause);
      return false;
    }
  }

  /** Rule 8. First stores the floor and this beginning's place on the bucket's record, so that every waiting job has both. */
  async function wait(
    held: HeldJob,
    look: { readonly first: ListingPage; readonly startedMs: number; readonly sentMs: number },
  ): Promise<BeginEnd> {
    const { observedAtMs, answeredAtMs = observedAtMs } = look.first;
    const floor = (answeredAtMs + PLAUSIBLE_MS + FLOOR_SLACK_MS) * 1_000;
    const bucket = await updateRecord(
      state,
      refs.bucket(held.job.bucket),
      (current) => current && { ...current, floor: Math.max(current.floor, floor), lastBeginOrder: nextBeginOf(current, clock.nowMs()) },
    );
    if (bucket === undefined) return { againMs: 0 };
    // the latest moment, by S3's clock, at which the floor was stored
    const storedMs = answeredAtMs + DATE_STEP_MS + Math.ceil(clock.monotonicMs() - look.startedMs);
    const waitUntilMs = storedMs + RECONCILE_WAIT_MS;
    const coversBeforeMs = coversBefore({ observedAtMs, sentMs: look.sentMs });
    const beginOrder = lastBeginOf(bucket);
    const isStored = await held.transition({ kind: 'wait', atMs: clock.nowMs(), coversBeforeMs, beginOrder, waitUntilMs }, (job) => ({
      ...job,
      counts: addCounts(job.counts ?? noCounts, { list_requests: 1 }),
    }));
    return isStored ? { againMs: RECONCILE_WAIT_MS } : 'over';
  }

  async function begin(held: HeldJob, { first, location }: Begin, signal: AbortSignal): Promise<BeginEnd> {
    const { job } = held;
    const { bucket, prefix } = job;
    await scan.refresh(bucket, signal);
    const documentsAtStart = await scan.countLive(bucket, prefix, signal);
    const isDoubtful = first.objects.length === 0 && documentsAtStart > 0;
    const { isEmpty: isEmptyBucket, requests: ofBucket } = isDoubtful
      ? await lookAtBucket(dependencies, job, location, signal)
      : { isEmpty: false, requests: 0 };
    const areAnnounced = await areDeletesAnnounced(state, job);
    const { allowDeletes } = job;
    const limit = tombstoneLimit({ documentsAtStart, isEmptyBucket, areAnnounced, allowDeletes, isAnyHeld: await isAnyHeld(state, job) });
    const isBegun = await held.transition({
      kind: 'compare',
      atMs: clock.nowMs(),
      documentsAtStart,
      ...(limit !== undefined && { tombstonesMax: limit }),
      list_requests: (first.requests ?? 1) + ofBucket,
    });
    return isBegun ? 'begun' : 'over';
  }

  return beginJob;
}

/** Whether the whole bucket is empty. A prefix without objects is usual, but deletions in an empty bucket need a person's consent. */
async function lookAtBucket(
  { listing }: BeginDependencies,
  { prefix }: JobRecord,
  location: BucketLocation,
  signal: AbortSignal,
): Promise<{ readonly isEmpty: boolean; readonly requests: number }> {
  if (prefix === '') return { isEmpty: true, requests: 0 };
  try {
    const { objects, requests = 1 } = await listing.page(location, { prefix: '', after: '', limit: 1, followMsMax: FOLLOW_MS_MAX }, signal);
    return { isEmpty: objects.length === 0, requests };
  } catch (error) {
    // the policy may allow only this prefix: a bucket that cannot be seen counts as empty
    if (error instanceof FaultError && error.code === 'object.denied') return { isEmpty: true, requests: 1 };
    throw error;
  }
}

/** The first page of the job's listing. */
function firstOf({ prefix }: Pick<JobRecord, 'prefix'>, followMsMax: number): Parameters<BucketListing['page']>[1] {
  return { prefix, after: '', limit: LISTING_PAGE, followMsMax };
}
