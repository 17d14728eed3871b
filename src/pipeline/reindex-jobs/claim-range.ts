/** Claims a range for one turn, and tidies up ranges that no turn may run on: those of a job that is paused or has ended. */
import type { BucketRecord } from '../../domain/bucket.ts';
import { asleep, claimOf, heldBy, LEASE_MS, RENEW_MS } from '../../domain/reindex/claims.ts';
import { phaseOf } from '../../domain/reindex/job-transitions.ts';
import { hasEnded, rangeSchema, type JobRecord, type RangeRecord } from '../../domain/reindex/job.ts';
import { readRecord, refs, removeRecord, updateRecord, keepingUnknown, parseEntry } from '../records/stored.ts';
import type { EndsDependencies, JobEnds } from './job-ends.ts';
import type { LeaseWatch } from './lease-watch.ts';
import type { Occupancy } from './occupancy.ts';
import { randomBytes } from 'node:crypto';
import PQueue from 'p-queue';
import { takeRange, type Taking } from '../../domain/reindex/range-transitions.ts';
import type { Listed, StateEntry } from '../ports/state.ts';
import type { WithPorts } from '../ports/ports.ts';

export interface ClaimedRange {
  readonly job: JobRecord;
  readonly bucket: BucketRecord;
  readonly range: HeldRange;
}

interface ClaimDependencies extends EndsDependencies {
  readonly occupancy: Occupancy;
  readonly ends: JobEnds;
  readonly watch: LeaseWatch;
  readonly worker: string;
}

/** Creates the function. It resolves with undefined if there is nothing to do on the range now. It throws the store's fault. */
export function createClaimRange(dependencies: ClaimDependencies) {
  const { state, clock, telemetry, occupancy, ends, watch } = dependencies;
  const takeAndHold = createTakeRange(dependencies);

  return async function claimRange({ jobId, number }: Pick<RangeRecord, 'jobId' | 'number'>): Promise<ClaimedRange | undefined> {
    // the list may be behind, and many workers try the same few ranges: one request shows that another one has it
    const range = await readRecord(state, refs.range(jobId, number));
    if (range === undefined || !isClaimable(range)) return undefined;
    const job = await readRecord(state, refs.job(jobId));
    if (job === undefined || hasEnded(job)) {
      // a worker died before it had removed the ranges, or the list is behind
      await removeRecord(state, refs.range(jobId, number).id);
      return undefined;
    }
    // if another job occupies its bucket, the job's own step pauses it
    if (phaseOf(job) !== 'comparing' || !(await occupancy.mayRun(job))) {
      await putToSleep(jobId, number);
      return undefined;
    }
    const bucket = await readRecord(state, refs.bucket(job.bucket));
    if (bucket === undefined) {
      await ends.cancel(job);
      return undefined;
    }
    const taken = await takeAndHold(jobId, number);
    telemetry.count('tally_reindex_claims_total', 1, { result: taken.kind });
    switch (taken.kind) {
      case 'taken':
        return { job, bucket, range: taken.range };
      case 'early':
      case 'leased':
        return undefined;
      case 'poisonous':
        await ends.fail(job, taken.error);
        return undefined;
    }
  };

  function isClaimable(range: RangeRecord): boolean {
    const { kind } = claimOf(range, clock.nowMs(), watch.isOver(refs.range(range.jobId, range.number).id, range));
    if (kind === 'early' || kind === 'leased') telemetry.count('tally_reindex_claims_total', 1, { result: kind });
    return kind === 'taken' || kind === 'poisonous';
  }

  /** The range is not due until its job continues: hundreds of ranges of a paused job must not hide those of others. */
  async function putToSleep(jobId: string, number: number): Promise<void> {
    const ref = refs.range(jobId, number);
    await updateRecord(state, ref, (range) => (range !== undefined && isClaimable(range) ? asleep(range) : undefined), 'soon');
  }
}

/*
 * A range that this worker holds. It is leased by compare-and-swap and its lease is renewed while it is compared. It is lost
 * when another worker wins a swap of its record, or when the lease could not be renewed in time.
 */

export interface HeldRange {
  /** The record as last stored. */
  readonly record: RangeRecord;
  /** Aborted when the range is lost. */
  readonly lost: AbortSignal;
  /**
   * Stores what `next` returns, unless that is the record itself. False: the range is lost. Throws the store's fault; then the
   * record may or may not be stored. Lists show it within a second, or at once with `listed: 'now'`.
   */
  change(next: (range: RangeRecord) => RangeRecord, listed?: Listed): Promise<boolean>;
  /** Stops renewing the lease. */
  release(): void;
}

interface HeldDependencies extends WithPorts<'state' | 'clock'> {
  readonly worker: string;
}

/** A held range, or why the range could not be taken. */
type Taken = { readonly kind: 'taken'; readonly range: HeldRange } | Exclude<Taking, { readonly kind: 'taken' }>;

/** Creates the function that takes ranges for one worker. It throws the store's fault. */
export function createTakeRange({ state, clock, worker, watch }: HeldDependencies & { readonly watch: LeaseWatch }) {
  return async function takeAndHold(jobId: string, number: number): Promise<Taken> {
    const { id, kind } = refs.range(jobId, number);
    const entry = await state.get(id);
    if (entry === undefined) return { kind: 'early' };
    const range = parseEntry(entry, rangeSchema);
    // unique for this lease: a worker that stood still for a minute may take its own range again
    const holder = `${worker}/${randomBytes(4).toString('hex')}`;
    const taking = takeRange(range, { worker: holder, nowMs: clock.nowMs(), isOver: watch.isOver(id, range) });
    if (taking.kind !== 'taken') return taking;
    const atMs = clock.monotonicMs();
    const stored = await state.put({ id, kind, record: keepingUnknown(entry, rangeSchema, taking.range), listed: 'soon' }, entry.version);
    // another worker was faster, or its job has ended
    if (stored === 'conflict') return { kind: 'leased' };
    return { kind: 'taken', range: holdRange({ state, clock, worker: holder }, stored, { taken: taking.range, atMs }) };
  };
}

/** Holds a range whose lease was stored in `entry` at `atMs` (monotonic) or later, and renews the lease until the range is released. */
function holdRange(
  { state, clock, worker }: HeldDependencies,
  entry: StateEntry,
  { taken, atMs: takenAtMs }: { readonly taken: RangeRecord; readonly atMs: number },
): HeldRange {
  const lost = new AbortController();
  const released = new AbortController();
  let record = taken;
  /** The entry in the store, as far as this worker knows. */
  let current = entry;
  let heldUntilMs = takenAtMs + LEASE_MS;
  /** One swap at a time: each needs the version that the swap before it stored. */
  const swaps = new PQueue({ concurrency: 1 });

  function lose(reason: string): void {
    lost.abort(new Error(`${entry.id} was lost: ${reason}`));
  }

  async function swap(next: (range: RangeRecord) => RangeRecord, listed: Listed): Promise<boolean> {
    if (lost.signal.aborted) return false;
    const changed = next(record);
    if (changed === record) return true;
    let stored = await put(changed, listed);
    if (stored === 'conflict' && (await isStillOurs())) stored = await put(changed, listed);
    if (stored === 'conflict') {
      lose('another worker has taken it, or its job has ended');
      return false;
    }
    record = changed;
    current = stored;
    return true;
  }

  function put(changed: RangeRecord, listed: Listed): Promise<StateEntry | 'conflict'> {
    const { id, kind } = refs.range(changed.jobId, changed.number);
    return state.put({ id, kind, record: keepingUnknown(current, rangeSchema, changed), listed }, current.version);
  }

  /** Whether the lease is still this worker's: a renewal that timed out may have been stored all the same. */
  async function isStillOurs(): Promise<boolean> {
    const found = await state.get(entry.id);
    if (found === undefined) return false;
    if (parseEntry(found, rangeSchema).lease?.worker !== worker) return false;
    current = found;
    return true;
  }

  function change(next: (range: RangeRecord) => RangeRecord, listed: Listed = 'soon'): Promise<boolean> {
    return swaps.add(() => swap(next, listed));
  }

  async function renew(): Promise<void> {
    const atMs = clock.monotonicMs();
    const held = heldBy(worker, clock.nowMs());
    // after the range was given back its version must not change, since another worker may be taking it
    if (await change((range) => (range.lease === undefined ? range : { ...range, ...held }))) heldUntilMs = atMs + LEASE_MS;
  }

  async function keep(): Promise<void> {
    while (!released.signal.aborted && !lost.signal.aborted) {
      await clock.sleep(RENEW_MS, released.signal);
      // the next one may succeed
      await renew().catch(() => undefined);
    }
  }

  /** An answer to a renewal may take longer than a lease lives. */
  async function loseInTime(): Promise<void> {
    const ended = AbortSignal.any([released.signal, lost.signal]);
    for (let leftMs = heldUntilMs - clock.monotonicMs(); leftMs > 0; leftMs = heldUntilMs - clock.monotonicMs())
      await clock.sleep(leftMs, ended);
    lose('its lease could not be renewed in time');
  }

  // both reject when the range is released, which is not a failure
  void Promise.all([keep(), loseInTime()]).catch(() => undefined);

  return {
    get record() {
      return record;
    },
    lost: lost.signal,
    change,
    release: () => released.abort(new Error('the range was released')),
  };
}
