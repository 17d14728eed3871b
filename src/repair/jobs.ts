/**
 * The role reindex: looks in the state index for due jobs, claims some, begins them, and works on them until it is stopped.
 *
 *   stopped ──start──► looking ──stop──► draining (turns end at their next page) ──► idle │ deadline: turns aborted
 *
 * A process whose slots are all in use leaves a job to others for some seconds, but then takes it, however many it holds, because jobs
 * take turns (slots.ts).
 */
import { faultOf, FaultError, type Fault } from '../base/fault.ts';
import {
  DUE_AHEAD_MAX_MS,
  FAULT_WAIT_MS,
  waitMs,
  WITHOUT_PROGRESS_MAX,
  coversBefore,
  lastBeginOf,
  nextBeginOf,
  type JobRecord,
} from '../records/job.ts';
import { endedWithoutProgress, phaseOf, tombstoneLimit, answerAtStart, waitingToStart } from './job.rules.ts';
import { FOLLOW_MS_MAX, type ReconcileTurn, LISTING_PAGE } from './reconcile-turn.ts';
import type { WithPorts, Store, ObjectScan } from '../store/store.ts';
import type { BucketListing, BucketLocation, ListingPage } from '../aws/storage.ts';
import { refs, readRecord, updateRecord } from '../store/stored.ts';
import { endedBy, withDeadline, repeat } from '../process/async.ts';
import type { Circuits } from '../observing/circuits.ts';
import { createLastFailure } from '../observing/readiness.ts';
import { compareJob } from './compare-job.ts';
import { reportJobEnd, transitionJob, cancelJob, failJob, noteStop } from './job-ends.ts';
import { createClaimJob, type HeldJob } from './job-lease.ts';
import { CUT_KEYS_MIN } from './key-probes.ts';
import type { LookForOverdue } from './lifecycle.ts';
import { createSlots } from './slots.ts';
import { PLAUSIBLE_MS, RECONCILE_WAIT_MS } from '../ordering/constants.ts';
import { addCounts, noCounts } from '../records/comparison.ts';
import { RequestError } from '../base/request-error.ts';
import { areDeletesAnnounced, isAnyHeld } from '../observing/gaps.ts';
import { occupyBucket } from './job-requests.ts';

/** How long aborted turns have after the deadline to give their jobs back. */
const ABORTED_GRACE_MS = 500;
/** Between two looks. A look is one small search, and a job begins this soon after it was stored, given back or has waited. */
const LOOK_MS = 2_000;
/** Which share of the jobs that it found a process claims with each look, so that buckets spread over processes. */
const SHARE = 1 / 4;
/** For how long a process without a free slot leaves a job to others. */
const OTHERS_FIRST_MS = 5_000;
/** How many jobs one look finds at most. */
const FOUND_MAX = 32;
const FILL_CHECK_MS = 500;
/** Each request before comparing has its own time-out. A beginning that hangs nevertheless is given up after this time. */
const BEGIN_STUCK_MS = FOLLOW_MS_MAX + 600_000;

/** The name of looks in the log. */
const LOOKING = 'look for re-index work';

export interface ReindexParts extends WithPorts<'clock' | 'telemetry'> {
  readonly store: Pick<Store, 'state' | 'scan'>;
  readonly listing: BucketListing;
  readonly turn: ReconcileTurn;
  readonly circuits: Pick<Circuits, 'openOf'>;
  /** Whether writes wait for the index, so that more turns at the same time would only wait longer. Default: none do. */
  readonly indexIsSlow?: () => boolean;
  /** A name that no other process has or had. */
  readonly worker: string;
  /** How many turns run at the same time. */
  readonly listings: number;
  /** Looks at the gaps of a bucket whose job has begun or ended, so that its status need not wait for the next round of all gaps. */
  readonly lookAtGaps?: (bucket: string, signal: AbortSignal) => Promise<void>;
  readonly lookForOverdue?: LookForOverdue;
  /** How many keys a part must have left to be cut. Default: a page. */
  readonly cutKeysMin?: number;
}

export interface ReindexRole {
  start(): void;
  /** Stops looking and ends all turns; aborts those that still run at the deadline. Resolves within a second of the deadline. */
  stop(deadline: AbortSignal): Promise<void>;
  /** The fault of the last look; undefined if it succeeded. */
  lookFault(): Fault | undefined;
}

/** Creates the role from its parts; nothing runs before start(). */
export function createReindexRole(parts: ReindexParts): ReindexRole {
  const { store, circuits, clock, telemetry, listings, cutKeysMin = CUT_KEYS_MIN, indexIsSlow = () => false } = parts;
  const { state, scan } = store;
  const stopping = new AbortController();
  const aborting = new AbortController();
  const slots = createSlots({ clock, telemetry, slotsMax: listings, indexIsSlow });
  const work = { ...parts, state, scan, slots, cutKeysMin };
  const claimJob = createClaimJob(work);
  const beginJob = createBeginJob(work);
  const lastLook = createLastFailure(clock);
  /** The jobs that this process claims or holds. */
  const jobs = new Map<string, Promise<void>>();

  /** Claims the job and works on it. Resolves with whether it was claimed. */
  async function take(jobId: string): Promise<boolean> {
    if (jobs.has(jobId) || stopping.signal.aborted) return false;
    const claimed = Promise.withResolvers<boolean>();
    const ended = claimAndWork(jobId, claimed.resolve)
      .catch((error: unknown) => report('work on a re-index job', error))
      .finally(() => {
        jobs.delete(jobId);
        claimed.resolve(false);
      });
    jobs.set(jobId, ended);
    return claimed.promise;
  }

  async function claimAndWork(jobId: string, claimed: (isClaimed: boolean) => void): Promise<void> {
    const claim = await claimJob(jobId);
    if (claim.kind === 'poisonous') {
      const failed = await transitionJob(state, jobId, { kind: 'fail', atMs: clock.nowMs(), error: endedWithoutProgress(claim.job) });
      if (failed !== undefined && failed !== 'refused') reportJobEnd(telemetry, failed);
    }
    if (claim.kind !== 'taken') return;
    claimed(true);
    const { held } = claim;
    try {
      await workOn(held);
    } catch (error) {
      report('work on a re-index job', error);
    } finally {
      // if it was not given back, the store failed, or the process stops
      await held.release(clock.nowMs() + (stopping.signal.aborted ? 0 : FAULT_WAIT_MS)).catch(() => undefined);
      if (!stopping.signal.aborted) await parts.lookAtGaps?.(held.job.bucket, stopping.signal);
    }
  }

  async function workOn(held: HeldJob): Promise<void> {
    const late = (): Error => new FaultError('internal.unexpected', `the job did not begin within ${BEGIN_STUCK_MS} ms`);
    const signal = AbortSignal.any([aborting.signal, held.lost]);
    const isBegun = await withDeadline(clock, { maxMs: BEGIN_STUCK_MS, late }, (own) => beginJob(held, own), signal);
    if (isBegun) await compareJob(work, held, { stopping: stopping.signal, aborting: aborting.signal });
  }

  /** Looks, and claims a share of what it finds. */
  async function look(signal: AbortSignal): Promise<void> {
    if (circuits.openOf(['cluster']) !== undefined) return;
    try {
      const aheadMs = slots.hasFree() ? 0 : OTHERS_FIRST_MS;
      const when = { nowMs: clock.nowMs() - aheadMs, aheadMaxMs: DUE_AHEAD_MAX_MS + aheadMs, limit: FOUND_MAX };
      const found = await state.due(when, signal);
      lastLook.succeeded(LOOKING);
      const ids = found.map((id) => id.slice(refs.job('').id.length)).filter((id) => !jobs.has(id));
      await takeSome(ids, Math.ceil(ids.length * SHARE));
    } catch (error) {
      if (!signal.aborted) lastLook.failed(LOOKING, faultOf(error));
      throw error;
    }
  }

  /** Tries the jobs in their order until `wanted` were claimed. */
  async function takeSome(ids: readonly string[], wanted: number): Promise<void> {
    let claimed = 0;
    for (const id of ids) {
      if (claimed >= wanted) return;
      if (await take(id)) claimed += 1;
    }
  }

  function report(operation: string, error: unknown): void {
    if (!aborting.signal.aborted) telemetry.requestFailed(operation, error);
  }

  /** Resolves when this process holds no job. */
  async function idle(): Promise<void> {
    while (jobs.size > 0) await Promise.all(jobs.values());
  }

  return {
    start() {
      const { signal } = stopping;
      repeat({ clock, telemetry }, { name: 'fill the slots of re-index', intervalMs: FILL_CHECK_MS, signal }, async () => slots.fill());
      repeat({ clock, telemetry }, { name: LOOKING, intervalMs: LOOK_MS, isAtOnce: true, signal }, look);
    },
    async stop(deadline) {
      stopping.abort(new Error('the process is stopping'));
      await endedBy(idle(), deadline);
      aborting.abort(new Error('the deadline of the stop has passed'));
      await endedBy(idle(), AbortSignal.timeout(ABORTED_GRACE_MS));
    },
    lookFault: () => lastLook.current(),
  };
}

// ── the beginning of a job, up to where it compares ────────────────────────────────────────────────────────────────

/** What a floor adds to W, because S3 states whole seconds and its clocks differ (rule 8). */
const FLOOR_SLACK_MS = 3_000;
/** The Date header states whole seconds, so the true moment may be this much later. */
const DATE_STEP_MS = 1_000;
/** When to try again after the beginning failed because of the job itself. */
const RETRY_MS = 10_000;

interface BeginDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
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

/**
 * Creates the function that brings a held job as far as possible now. Each transition is one compare-and-swap, and everything before
 * it can be repeated, so a crash in between does no harm.
 *
 *   queued ── floor stored in the bucket's record ──► waiting ── Q later by S3's clock ──► index refreshed, documents counted
 *   ──► comparing
 *
 * S3's clock decides whether the wait is over, never this machine's: the end must hold for all processes. Resolves with whether it
 * compares; if not, it was given back, or has failed. Throws only the store's fault and the signal's reason.
 */
function createBeginJob(dependencies: BeginDependencies): (held: HeldJob, signal: AbortSignal) => Promise<boolean> {
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
