/**
 * A range in this worker's hands: leased by compare-and-swap, renewed while it is worked on, lost at the first swap that
 * somebody else won or when it could not be renewed in time.
 */
import { randomBytes } from 'node:crypto';
import PQueue from 'p-queue';
import { rangeSchema, type JobRecord, type RangeRecord } from '../../domain/reindex/job.ts';
import { takeRange, type Taking } from '../../domain/reindex/range-steps.ts';
import { faultOf } from '../../domain/fault.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateEntry, StateStore } from '../ports/state.ts';
import { keepingUnknown, parseEntry, refs } from '../records/stored.ts';
import { boundsCut, ensureRange, freshRange } from './range-records.ts';

/** What a killed worker costs at most. */
const LEASE_MS = 60_000;
/** Three renewals may fail before the lease is over; and a clock that is 45 s fast takes no lease of a worker that lives. */
const RENEW_MS = 15_000;

/** Whoever else writes the record does so once. */
const ATTEMPTS_MAX = 5;
/** After as many writes of others. */
const LOOK_AGAIN_MS = 5_000;

export interface HeldRange {
  /** As stored last. */
  readonly record: RangeRecord;
  /** Aborted when the range is lost. */
  readonly lost: AbortSignal;
  /** Stores what `next` makes of the record, unless that is the very record. False when the range is lost. Throws the store's fault: then nothing is known. */
  change(next: (range: RangeRecord) => RangeRecord): Promise<boolean>;
  /** Ends the renewing. */
  release(): void;
}

interface HeldDependencies {
  readonly state: StateStore;
  readonly clock: Clock;
  readonly worker: string;
}

/** A range in hand, or why it is not to be had. */
export type Taken = { readonly kind: 'taken'; readonly range: HeldRange } | Exclude<Taking, { readonly kind: 'taken' }>;

/** Creates the taking of ranges for one worker. It throws the store's fault. */
export function createTakeRange({ state, clock, worker }: HeldDependencies) {
  return async function takeAndHold(job: JobRecord, number: number, turn: number | undefined): Promise<Taken> {
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
      const taken = await attemptToTake(job, number, turn);
      if (taken !== 'conflict') return taken;
    }
    return { kind: 'leased', leftMs: LOOK_AGAIN_MS };
  };

  async function attemptToTake(job: JobRecord, number: number, turn: number | undefined): Promise<Taken | 'conflict'> {
    const { id, kind } = refs.range(job.id, number);
    const entry = (await state.get(id)) ?? (await made(job, number));
    // a number that was taken for a split which never came about
    if (entry === undefined) return { kind: 'stale' };
    // of this hold alone: a worker that forgot itself for a minute may come to take its own range again
    const holder = `${worker}/${randomBytes(4).toString('hex')}`;
    const taking = takeRange(parseEntry(entry, rangeSchema), { worker: holder, nowMs: clock.nowMs(), leaseMs: LEASE_MS, turn });
    if (taking.kind !== 'taken') return taking;
    const stored = await state.put({ id, kind, record: keepingUnknown(entry, rangeSchema, taking.range) }, entry.version);
    // another worker took it, or it was written without being taken (its task was sent again): the record tells
    if (stored === 'conflict') return 'conflict';
    return { kind: 'taken', range: holdRange({ state, clock, worker: holder }, stored, taking.range) };
  }

  /** One of those that were cut in advance, if whoever cut them did not come so far. */
  async function made(job: JobRecord, number: number): Promise<StateEntry | undefined> {
    const bounds = boundsCut(job, number);
    if (bounds === undefined) return undefined;
    await ensureRange(state, freshRange(job.id, number, { ...bounds, nowMs: clock.nowMs() }));
    return state.get(refs.range(job.id, number).id);
  }
}

/** Holds a range whose lease was just stored in `entry`, and renews it until released. */
function holdRange({ state, clock, worker }: HeldDependencies, entry: StateEntry, taken: RangeRecord): HeldRange {
  const lost = new AbortController();
  const released = new AbortController();
  let record = taken;
  /** As it is in the store, by all that is known here. */
  let current = entry;
  let heldUntilMs = clock.monotonicMs() + LEASE_MS;
  /** One swap at a time: each needs the version that the one before it made. */
  const swaps = new PQueue({ concurrency: 1 });

  function lose(reason: string): void {
    lost.abort(new Error(`the range ${entry.id} was lost: ${reason}`));
  }

  async function swap(next: (range: RangeRecord) => RangeRecord): Promise<boolean> {
    if (lost.signal.aborted) return false;
    const changed = next(record);
    if (changed === record) return true;
    let stored = await put(changed);
    if (stored === 'conflict' && (await isStillOurs())) stored = await put(changed);
    if (stored === 'conflict') {
      lose('another worker has taken it, or its job has ended');
      return false;
    }
    record = changed;
    current = stored;
    return true;
  }

  function put(changed: RangeRecord): Promise<StateEntry | 'conflict'> {
    const { id, kind } = refs.range(changed.jobId, changed.number);
    return state.put({ id, kind, record: keepingUnknown(current, rangeSchema, changed) }, current.version);
  }

  /** A renewal that timed out may have been stored all the same: then this is its version. */
  async function isStillOurs(): Promise<boolean> {
    const found = await state.get(entry.id);
    if (found === undefined) return false;
    const { lease, turn } = parseEntry(found, rangeSchema);
    if (lease?.worker !== worker || turn !== record.turn) return false;
    current = found;
    return true;
  }

  function change(next: (range: RangeRecord) => RangeRecord): Promise<boolean> {
    return swaps.add(() => swap(next));
  }

  async function renew(): Promise<void> {
    const atMs = clock.monotonicMs();
    const lease = { worker, untilMs: clock.nowMs() + LEASE_MS };
    // given back meanwhile: another one's version must not change under who is about to take it
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

  // ends by its release, which is no failure
  void keep().catch(() => undefined);

  return {
    get record() {
      return record;
    },
    lost: lost.signal,
    change,
    release: () => released.abort(new Error('the range was given back')),
  };
}
