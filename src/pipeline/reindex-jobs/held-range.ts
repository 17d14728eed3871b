/**
 * A range that this worker holds. It is leased by compare-and-swap and its lease is renewed while it is compared. It is lost
 * when another worker wins a swap of its record, or when the lease could not be renewed in time.
 */
import { randomBytes } from 'node:crypto';
import PQueue from 'p-queue';
import { rangeSchema, type JobRecord, type RangeRecord } from '../../domain/reindex/job.ts';
import { LEASE_MS, takeRange, type Taker, type Taking } from '../../domain/reindex/range-transitions.ts';
import { faultOf } from '../../domain/fault.ts';
import type { Clock } from '../ports/clock.ts';
import type { Listed, StateEntry, StateStore } from '../ports/state.ts';
import { keepingUnknown, parseEntry, refs } from '../records/stored.ts';
import { ensureCutRange } from './range-records.ts';

/** Three renewals may fail before the lease ends, and a worker whose clock is up to 45 s fast takes no lease that is being renewed. */
const RENEW_MS = 15_000;

/** Attempts to take a range while others write its record. */
const ATTEMPTS_MAX = 5;
/** When to try again after that. */
const RETRY_MS = 5_000;

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

interface HeldDependencies {
  readonly state: StateStore;
  readonly clock: Clock;
  readonly worker: string;
}

/** A held range, or why the range could not be taken. */
export type Taken = { readonly kind: 'taken'; readonly range: HeldRange } | Exclude<Taking, { readonly kind: 'taken' }>;

/** The turn that a task names, and the lease that it has watched for WATCH_MS or longer. */
type Wanted = Pick<Taker, 'turn' | 'watched'>;

/** Creates the function that takes ranges for one worker. It throws the store's fault. */
export function createTakeRange({ state, clock, worker }: HeldDependencies) {
  return async function takeAndHold(job: JobRecord, number: number, wanted: Wanted): Promise<Taken> {
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
      const taken = await attemptToTake(job, number, wanted);
      if (taken !== 'conflict') return taken;
    }
    return { kind: 'leased', leftMs: RETRY_MS };
  };

  async function attemptToTake(job: JobRecord, number: number, { turn, watched }: Wanted): Promise<Taken | 'conflict'> {
    const { id, kind } = refs.range(job.id, number);
    const entry = (await state.get(id)) ?? (await makeIfCut(job, number));
    // the number was reserved for a split that was never stored
    if (entry === undefined) return { kind: 'late' };
    // unique for this lease: a worker that stood still for a minute may take its own range again
    const holder = `${worker}/${randomBytes(4).toString('hex')}`;
    const taker = { worker: holder, nowMs: clock.nowMs(), leaseMs: LEASE_MS, watched, turn };
    const taking = takeRange(parseEntry(entry, rangeSchema), taker);
    if (taking.kind !== 'taken') return taking;
    const stored = await state.put({ id, kind, record: keepingUnknown(entry, rangeSchema, taking.range), listed: 'soon' }, entry.version);
    // another worker took the range, or its task was sent again: the next attempt reads which
    if (stored === 'conflict') return 'conflict';
    return { kind: 'taken', range: holdRange({ state, clock, worker: holder }, stored, taking.range) };
  }

  /** Stores the record of a range that was cut in advance, if a crash kept the job's worker from it. */
  async function makeIfCut(job: JobRecord, number: number): Promise<StateEntry | undefined> {
    const isCut = await ensureCutRange(state, job, { number, nowMs: clock.nowMs() });
    return isCut ? state.get(refs.range(job.id, number).id) : undefined;
  }
}

/** Holds a range whose lease was just stored in `entry`, and renews the lease until the range is released. */
function holdRange({ state, clock, worker }: HeldDependencies, entry: StateEntry, taken: RangeRecord): HeldRange {
  const lost = new AbortController();
  const released = new AbortController();
  let record = taken;
  /** The entry in the store, as far as this worker knows. */
  let current = entry;
  let heldUntilMs = clock.monotonicMs() + LEASE_MS;
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
    const { lease, turn } = parseEntry(found, rangeSchema);
    if (lease?.worker !== worker || turn !== record.turn) return false;
    current = found;
    return true;
  }

  function change(next: (range: RangeRecord) => RangeRecord, listed: Listed = 'soon'): Promise<boolean> {
    return swaps.add(() => swap(next, listed));
  }

  async function renew(): Promise<void> {
    const atMs = clock.monotonicMs();
    const lease = { worker, untilMs: clock.nowMs() + LEASE_MS };
    // after the range was given back its version must not change, since another worker may be taking it
    if (await change((range) => (range.lease === undefined ? range : { ...range, lease }))) heldUntilMs = atMs + LEASE_MS;
  }

  async function keep(): Promise<void> {
    while (!released.signal.aborted && !lost.signal.aborted) {
      await clock.sleep(RENEW_MS, released.signal);
      await renew().catch((error: unknown) => {
        if (clock.monotonicMs() >= heldUntilMs) lose(faultOf(error).reason);
      });
    }
  }

  // rejects when the range is released, which is not a failure
  void keep().catch(() => undefined);

  return {
    get record() {
      return record;
    },
    lost: lost.signal,
    change,
    release: () => released.abort(new Error('the range was released')),
  };
}
