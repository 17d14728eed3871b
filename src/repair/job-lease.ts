/**
 * A job's lease, by which one process works on it. Claiming, renewing and giving back are compare-and-swaps of the job's record, as is
 * everything that the holder stores in it. Others (pause, resume, cancel) change the same record, so a swap that conflicts is applied
 * again to what is then stored (src/store/lease.ts), as long as the lease is still the holder's.
 */
import { randomBytes } from 'node:crypto';
import { asleep, claimOf, heldBy, leaseName, WATCH_MS, type Claim, hasEnded, jobSchema, type JobRecord } from '../records/job.ts';
import { afterTransition, type JobTransition } from './job.rules.ts';
import type { Listed, StateEntry, WithPorts } from '../store/store.ts';
import { createWatch, holdRecord } from '../store/lease.ts';
import { keepingUnknown, parseEntry, refs } from '../store/stored.ts';

export interface HeldJob {
  /** The record as last stored or read by this process. */
  readonly job: JobRecord;
  /** Aborted when the job is lost. */
  readonly lost: AbortSignal;
  /**
   * Stores what `next` returns, and renews the lease; stores nothing if that is the same job. Resolves to false if the job is lost, and
   * nothing was stored. Throws the store's fault; the change may then be stored or not. `next` may be called twice. Lists show the change
   * within a second, or at once with `listed: 'now'`.
   */
  change(next: (job: JobRecord) => JobRecord, listed?: Listed): Promise<boolean>;
  /** Makes one transition of the job that `prepare` returns. Resolves to false if the job is lost, or its phase does not allow the transition. Throws as change() does. */
  transition(transition: JobTransition, prepare?: (job: JobRecord) => JobRecord): Promise<boolean>;
  /** Gives the job back with a last change, and stops renewing the lease. The job is due at `dueAtMs`, unless it is paused or has ended. Throws as change() does. */
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

/** Creates the function that claims jobs for one process, and remembers the leases that it watches. It throws the store's fault. */
export function createClaimJob({ state, clock, worker }: LeaseDependencies): (jobId: string) => Promise<JobClaim> {
  const watchedMs = createWatch(clock);

  /** By the steady clock: a wrong or changed wall clock neither blocks a job nor takes it away from a living process. */
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
    // unique for this lease, because a process that was suspended for a minute may take its own job again
    const holder = `${worker}/${randomBytes(4).toString('hex')}`;
    const taken = { ...job, fruitless: claim.fruitless, ...heldBy(holder, nowMs) };
    const atMs = clock.monotonicMs();
    const stored = await state.put({ id, kind, record: keepingUnknown(entry, jobSchema, taken), listed: 'soon' }, entry.version);
    // another process was faster, or the job was changed
    if (stored === 'conflict') return { kind: 'leased' };
    return { kind: 'taken', held: holdJob({ state, clock, worker: holder }, stored, atMs) };
  };
}

/** Holds the job whose lease was stored in `entry` at `atMs` (monotonic) or later. */
function holdJob({ state, clock, worker }: LeaseDependencies, entry: StateEntry, atMs: number): HeldJob {
  const held = holdRecord<JobRecord>({ state, clock }, entry, atMs, {
    read: (found) => parseEntry(found, jobSchema),
    isOurs: ({ lease }) => lease?.worker === worker,
    renewed: (job) => (job.lease === undefined || job.dueAtMs === undefined ? job : { ...job, ...heldBy(worker, clock.nowMs()) }),
    written: (job, before) => keepingUnknown(before, jobSchema, job),
  });
  const { lost, change } = held;
  held.keep();
  return {
    get job() {
      return held.record();
    },
    lost,
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
      await held.release();
      await change((found) => {
        const { state: phase } = found;
        return { ...asleep(next(found)), ...(!hasEnded(found) && phase !== 'paused' && { dueAtMs }) };
      });
    },
  };
}
