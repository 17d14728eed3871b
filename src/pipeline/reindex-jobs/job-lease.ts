/**
 * The lease of a job: one process works on it. Claiming, renewing and giving back are compare-and-swaps of the job's record, as is
 * everything that the holder stores in it. Other writers (pause, resume, cancel) change the same record, so a swap that conflicts
 * reads it again: while its lease is the holder's own, the change is made to what is stored now. The job is lost when it is not, or
 * when the lease could not be renewed in time.
 */
import { randomBytes } from 'node:crypto';
import PQueue from 'p-queue';
import { asleep, claimOf, heldBy, leaseName, LEASE_MS, RENEW_MS, WATCH_MS, type Claim } from '../../domain/reindex/claims.ts';
import { hasEnded, jobSchema, type JobRecord } from '../../domain/reindex/job.ts';
import { afterTransition, type JobTransition } from '../../domain/reindex/job-transitions.ts';
import type { Listed, StateEntry } from '../ports/state.ts';
import { createWatch } from '../records/lease.ts';
import { keepingUnknown, parseEntry, refs } from '../records/stored.ts';
import type { WithPorts } from '../ports/ports.ts';

/** From one attempt to renew that failed to the next. */
const RETRY_MS = 5_000;

export interface HeldJob {
  /** The record as last stored or read by this process. */
  readonly job: JobRecord;
  /** Aborted when the job is lost. */
  readonly lost: AbortSignal;
  /**
   * Stores what `next` returns, and renews the lease; nothing is stored if that is the same job. False: the job is lost, and nothing
   * was stored. Throws the store's fault; then the change may or may not be stored. `next` may be called twice. Lists show it within a second, or
   * at once with `listed: 'now'`.
   */
  change(next: (job: JobRecord) => JobRecord, listed?: Listed): Promise<boolean>;
  /** Carries out one transition, of the job as `prepare` returns it. False: the job is lost, or its phase does not allow it. Throws as change() does. */
  transition(transition: JobTransition, prepare?: (job: JobRecord) => JobRecord): Promise<boolean>;
  /** Gives the job back with its last change; it is due at that time, unless it is paused or has ended. Then nothing renews the lease any more. Throws as change() does. */
  release(dueAtMs: number, next?: (job: JobRecord) => JobRecord): Promise<void>;
}

/** A held job, or why it could not be claimed; `poisonous` with its record. */
export type JobClaim =
  | { readonly kind: 'taken'; readonly held: HeldJob }
  | { readonly kind: Exclude<Claim['kind'], 'taken' | 'poisonous'> }
  | { readonly kind: 'poisonous'; readonly job: JobRecord };

interface LeaseDependencies extends WithPorts<'state' | 'clock'> {
  /** A name that no other process has or had. */
  readonly worker: string;
}

/** Creates the function that claims jobs for one process, which remembers the leases that it watches. It throws the store's fault. */
export function createClaimJob({ state, clock, worker }: LeaseDependencies): (jobId: string) => Promise<JobClaim> {
  const watchedMs = createWatch(clock);

  /** By the steady clock: a wall clock that is wrong or set neither blocks a job nor takes it from a process that lives. */
  function isOver(id: string, job: JobRecord): boolean {
    const name = leaseName(job);
    return name !== undefined && watchedMs(id, name) >= WATCH_MS;
  }

  return async function claimJob(jobId) {
    const { id, kind } = refs.job(jobId);
    const entry = await state.get(id);
    if (entry === undefined) return { kind: 'early' };
    const job = parseEntry(entry, jobSchema);
    const nowMs = clock.nowMs();
    const claim = claimOf(job, nowMs, isOver(id, job));
    if (claim.kind === 'poisonous') return { kind: 'poisonous', job };
    if (claim.kind !== 'taken') return { kind: claim.kind };
    // unique for this lease: a process that stood still for a minute may take its own job again
    const holder = `${worker}/${randomBytes(4).toString('hex')}`;
    const taken = { ...job, fruitless: claim.fruitless, ...heldBy(holder, nowMs) };
    const atMs = clock.monotonicMs();
    const stored = await state.put({ id, kind, record: keepingUnknown(entry, jobSchema, taken), listed: 'soon' }, entry.version);
    // another process was faster, or the job was changed
    if (stored === 'conflict') return { kind: 'leased' };
    return { kind: 'taken', held: holdJob({ state, clock, worker: holder }, stored, { taken, atMs }) };
  };
}

/** Holds the job whose lease was stored in `entry` at `atMs` (monotonic) or later. */
function holdJob(
  { state, clock, worker }: LeaseDependencies,
  entry: StateEntry,
  { taken, atMs: takenAtMs }: { readonly taken: JobRecord; readonly atMs: number },
): HeldJob {
  const { id, kind } = entry;
  const lost = new AbortController();
  const released = new AbortController();
  let job = taken;
  /** The entry in the store, as far as this process knows. */
  let current = entry;
  let heldUntilMs = takenAtMs + LEASE_MS;
  /** One swap at a time: each needs the version that the swap before it stored. */
  const swaps = new PQueue({ concurrency: 1 });

  function lose(reason: string): false {
    lost.abort(new Error(`${id} was lost: ${reason}`));
    return false;
  }

  async function swap(next: (job: JobRecord) => JobRecord, listed: Listed): Promise<boolean> {
    if (lost.signal.aborted || job.lease?.worker !== worker) return false;
    const atMs = clock.monotonicMs();
    if (atMs >= heldUntilMs) return lose('its lease could not be renewed in time');
    let stored = await put(next, listed);
    // a person has changed it, or a renewal that timed out was stored all the same
    if (stored === 'conflict' && (await isStillOurs())) stored = await put(next, listed);
    if (stored === 'conflict') return lose('another process has taken it, or it has ended');
    if (stored === 'same') return true;
    heldUntilMs = atMs + LEASE_MS;
    return true;
  }

  async function put(next: (job: JobRecord) => JobRecord, listed: Listed): Promise<'stored' | 'same' | 'conflict'> {
    const changed = next(job);
    if (changed === job) return 'same';
    const isRunning = changed.lease !== undefined && changed.dueAtMs !== undefined;
    const renewed = isRunning ? { ...changed, ...heldBy(worker, clock.nowMs()) } : changed;
    const stored = await state.put({ id, kind, record: keepingUnknown(current, jobSchema, renewed), listed }, current.version);
    if (stored === 'conflict') return 'conflict';
    job = renewed;
    current = stored;
    return 'stored';
  }

  async function isStillOurs(): Promise<boolean> {
    const found = await state.get(id);
    if (found === undefined) return false;
    const read = parseEntry(found, jobSchema);
    if (read.lease?.worker !== worker) return false;
    job = read;
    current = found;
    return true;
  }

  function change(next: (job: JobRecord) => JobRecord, listed: Listed = 'soon'): Promise<boolean> {
    return swaps.add(() => swap(next, listed));
  }

  const renewedMs = (): number => heldUntilMs - LEASE_MS;

  /** Renews the lease unless a change has. A fault is tried again until the lease has ended. */
  async function keep(): Promise<void> {
    while (!released.signal.aborted && !lost.signal.aborted) {
      await clock.sleep(Math.max(RETRY_MS, renewedMs() + RENEW_MS - clock.monotonicMs()), released.signal);
      if (clock.monotonicMs() - renewedMs() >= RENEW_MS) await change((found) => ({ ...found })).catch(() => undefined);
    }
  }

  /** An answer to a renewal may take longer than a lease lives. */
  async function loseInTime(): Promise<void> {
    const ended = AbortSignal.any([released.signal, lost.signal]);
    for (let leftMs = heldUntilMs - clock.monotonicMs(); leftMs > 0; leftMs = heldUntilMs - clock.monotonicMs())
      await clock.sleep(leftMs, ended);
    lose('its lease could not be renewed in time');
  }

  // both reject when the job is released, which is not a failure
  void Promise.all([keep(), loseInTime()]).catch(() => undefined);

  return {
    get job() {
      return job;
    },
    lost: lost.signal,
    change,
    async transition(transition, prepare = (found) => found) {
      let isAllowed = false;
      const isHeld = await change(
        (found) => {
          const next = afterTransition(prepare(found), transition);
          isAllowed = next !== 'refused';
          return next === 'refused' ? found : next;
          // comparing begins without the wait for lists
        },
        transition.kind === 'compare' ? 'soon' : 'now',
      );
      return isHeld && isAllowed;
    },
    async release(dueAtMs, next = (found) => found) {
      released.abort(new Error('the job was released'));
      await change((found) => {
        const { state: phase } = found;
        return { ...asleep(next(found)), ...(!hasEnded(found) && phase !== 'paused' && { dueAtMs }) };
      });
    },
  };
}
