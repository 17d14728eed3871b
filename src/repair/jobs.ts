/**
 * The role reindex: looks in the state index for due jobs, claims some, and works on them until it is stopped.
 *
 *   stopped ──start──► looking ──stop──► draining (turns end at their next page) ──► idle │ deadline: turns aborted
 *
 * A process whose slots are all in use leaves a job to others for some seconds, but then takes it, however many it holds, because jobs
 * take turns (slots.ts).
 */
import { faultOf, FaultError, type Fault } from '../base/fault.ts';
import { DUE_AHEAD_MAX_MS, FAULT_WAIT_MS } from '../records/job.ts';
import { endedWithoutProgress } from './job.rules.ts';
import { FOLLOW_MS_MAX, type ReconcileTurn } from './reconcile-turn.ts';
import type { WithPorts, Store } from '../store/store.ts';
import type { BucketListing } from '../aws/storage.ts';
import { refs } from '../store/stored.ts';
import { endedBy, withDeadline, repeat } from '../process/async.ts';
import type { Circuits } from '../observing/circuits.ts';
import { createLastFailure } from '../observing/readiness.ts';
import { createBeginJob } from './begin-job.ts';
import { compareJob } from './compare-job.ts';
import { reportJobEnd, transitionJob } from './job-ends.ts';
import { createClaimJob, type HeldJob } from './job-lease.ts';
import { CUT_KEYS_MIN } from './key-probes.ts';
import type { LookForOverdue } from './overdue.ts';
import { createSlots } from './slots.ts';

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
