/**
 * The reindex role: looks in the state index for jobs and ranges that are due, claims some, and works on them, a few at a time,
 * until it is stopped.
 *
 *   stopped ──start──► looking ──stop──► draining (turns end at their next page) ──► idle │ deadline: turns aborted
 *
 * It looks only while a slot is free, so that other workers get the work that this one has no slot for. Which of the found ones
 * it tries first is random, so that workers that look at the same moment rarely meet; compare-and-swap decides who has one.
 */
import { faultOf, type Fault } from '../../domain/fault.ts';
import { DUE_AHEAD_MAX_MS } from '../../domain/reindex/claims.ts';
import { jobSchema, rangeSchema } from '../../domain/reindex/job.ts';
import type { Circuits } from '../serving/circuits.ts';
import type { BucketListing } from '../ports/storage.ts';
import type { DueEntry } from '../ports/state.ts';
import type { Store } from '../ports/store.ts';
import type { ReconcileTurn } from '../compare/reconcile-turn.ts';
import { endedBy } from '../serving/async.ts';
import { createLastFailure } from '../serving/last-failure.ts';
import { repeat } from '../serving/repeat.ts';
import { createClaimRange, type ClaimedRange } from './claim-range.ts';
import { createClaimJob, type HeldJob } from './held-job.ts';
import { createJobEnds } from './job-ends.ts';
import { createLeaseWatch } from './lease-watch.ts';
import { createOccupancy } from './occupancy.ts';
import type { RangeLimits } from './range-records.ts';
import { createRunRange } from './run-range.ts';
import { createTakeStep, diedAtStep } from './advance-job.ts';
import { createWorkerSlots, type WorkerSlots } from './worker-slots.ts';
import type { WithPorts } from '../ports/ports.ts';

/** How long aborted turns have after the deadline to give their ranges back. */
const ABORTED_GRACE_MS = 500;
/** How often a worker without a free slot checks whether it may look. */
const ADMIT_CHECK_MS = 100;
/** How often the jobs of the slots are read: a pause or a cancel takes effect this soon. */
const JOB_CHECK_MS = 2_000;
/** From one look to the next while a job runs anywhere: a range that another worker split off or gave back is found this soon. */
const LOOK_MS = 2_000;
/** The same while no job runs: six requests a minute, and a job of another process begins this soon. */
const LOOK_IDLE_MS = 10_000;
/** Looks differ by up to this share, so that the workers of a fleet that was started at one moment do not look at the same one. */
const JITTER = 0.2;
/** After this process has made something due it looks at once, and once more when the state index has surely refreshed (every 200 ms). */
const LOOK_SOON_MS: readonly number[] = [0, 250];
/** The most records that one look finds: four times the slots of a worker with default settings. */
const FOUND_MAX = 32;
/** The share of what it found that a worker claims at one look, and when it looks for more: what it has split off is for the others too. */
const SHARE = 1 / 4;
const SHARE_MS = 250;
/** Finding nothing for this long means that nothing is due. */
const NOTHING_DUE_MS = 1_500;
const SPLIT_CHECK_MS = 500;
/**
 * Ranges of one worker that are compared at the same time even if the index is slow: one alone would keep a job from other workers.
 * The first range of a new job begins in spite of it, so that no job waits for another.
 */
const RANGES_WHEN_SLOW = 2;
/** How often a worker without a free slot looks whether anything is due that other workers could take. */
const OTHERS_CHECK_MS = 5_000;

/** The looks, in the log. */
const LOOKING = 'look for re-index work';

export interface ReindexParts extends WithPorts<'clock' | 'telemetry'> {
  readonly store: Pick<Store, 'state' | 'scan'>;
  readonly listing: BucketListing;
  readonly turn: ReconcileTurn;
  readonly circuits: Pick<Circuits, 'openOf'>;
  /** Whether the index is so slow that more ranges at the same time would only wait longer. Default: it never is. */
  readonly indexIsSlow?: () => boolean;
  /** A name that no other process has or had. */
  readonly worker: string;
  readonly limits: RangeLimits & { readonly listings: number };
  /** From 0 to 1, 1 excluded. Default: Math.random. */
  readonly random?: () => number;
}

export interface ReindexRole {
  start(): void;
  /** Looks at once: this process has made a job due. One that it has stored, whose id is given, it begins without a look, which would not find it yet. */
  readonly wake: (jobId?: string) => void;
  /** Stops looking and ends all turns; aborts those that still run at the deadline. Resolves within a second of it. */
  stop(deadline: AbortSignal): Promise<void>;
  /** The fault of the last look; undefined if it succeeded. */
  lookFault(): Fault | undefined;
}

/** Creates the role from its parts; nothing runs before start(). */
export function createReindexRole(parts: ReindexParts): ReindexRole {
  const { store, circuits, clock, telemetry, limits, indexIsSlow = () => false, random = Math.random } = parts;
  const { state, scan } = store;
  const occupancy = createOccupancy(state);
  const ends = createJobEnds({ state, scan, clock, telemetry });
  const watch = createLeaseWatch(clock);
  const work = { ...parts, state, scan, occupancy, ends, watch };
  const stopping = new AbortController();
  const aborting = new AbortController();
  const slots = createWorkerSlots({ state, clock, telemetry, slotsMax: limits.listings, stopping: stopping.signal });
  const claim = createClaim(work, { slots, wake, turnEnded, report, stopping: stopping.signal, aborting: aborting.signal });
  const lastLook = createLastFailure(clock);
  let looking: Promise<void> = Promise.resolve();
  /** Since when nothing was found for the free slots. */
  let nothingSinceMs: number | undefined;
  /** Whether the last look found work that this worker had no slot for, or that it left because the index is slow. */
  let hasLeftWork = false;
  /** The looks that follow soon. */
  let soon: readonly number[] = [];
  let sleeping = new AbortController();

  function wake(jobId?: string): void {
    soon = LOOK_SOON_MS;
    sleeping.abort(new Error('something is due'));
    if (jobId === undefined || slots.isFull || stopping.signal.aborted || circuits.openOf(['cluster']) !== undefined) return;
    claim.ownJob(jobId);
  }

  function turnEnded(hasMadeDue: boolean): void {
    if (hasMadeDue || hasLeftWork) wake();
  }

  async function look(signal: AbortSignal): Promise<{ readonly found: readonly DueEntry[]; readonly isAnyOpen: boolean }> {
    return state.due({ nowMs: clock.nowMs(), aheadMaxMs: DUE_AHEAD_MAX_MS, limit: FOUND_MAX }, signal);
  }

  /** Looks, and claims as much as there are slots. Resolves with the time until the next look. */
  async function lookAndClaim(signal: AbortSignal): Promise<number> {
    soon = soon.slice(1);
    try {
      const { found, isAnyOpen } = await look(signal);
      lastLook.succeeded(LOOKING);
      noteClaimed(await claimSome(found), found.length);
      return soon[0] ?? (isAnyOpen ? LOOK_MS : LOOK_IDLE_MS) * (1 + JITTER * (2 * random() - 1));
    } catch (error) {
      signal.throwIfAborted();
      report(LOOKING, error);
      lastLook.failed(LOOKING, faultOf(error));
      return LOOK_MS;
    }
  }

  function noteClaimed(claimed: number, found: number): void {
    hasLeftWork = claimed < found && rangesWanted() === 0;
    if (hasLeftWork) {
      // left to other workers; this one looks again when a turn ends
      nothingSinceMs = undefined;
      return;
    }
    if (claimed > 0 || nothingSinceMs === undefined) nothingSinceMs = slots.isFull ? undefined : clock.monotonicMs();
    // what is left is for it as well, once the others have had their chance
    if (claimed > 0 && claimed < found && soon.length === 0) soon = [SHARE_MS];
  }

  /** How many more ranges this worker could compare now: few while the index is slow, since more would only wait, and write out of key order, which costs the index a tenth more. */
  function rangesWanted(): number {
    const used = limits.listings - slots.free;
    return indexIsSlow() ? Math.min(slots.free, Math.max(0, RANGES_WHEN_SLOW - used)) : slots.free;
  }

  /** Claims its share of what was found. Resolves with how many were claimed. */
  async function claimSome(found: readonly DueEntry[]): Promise<number> {
    const { items, wanted } = shareOf(found, { free: slots.free, ranges: rangesWanted() });
    const tryOne = (entry: DueEntry): Promise<boolean> => claim.due(entry).catch((error: unknown) => report('claim re-index work', error));
    return takeSome(inTurns(items, slots.workedOn, random), wanted, async (entry) => !stopping.signal.aborted && tryOne(entry));
  }

  function report(operation: string, error: unknown): false {
    if (aborting.signal.aborted) return false;
    telemetry.requestFailed(operation, error);
    return false;
  }

  async function keepLooking(signal: AbortSignal): Promise<void> {
    for (;;) {
      while (slots.isFull || circuits.openOf(['cluster']) !== undefined) {
        nothingSinceMs = undefined;
        await clock.sleep(ADMIT_CHECK_MS, signal);
      }
      sleeping = new AbortController();
      const nextMs = await lookAndClaim(signal);
      if (!slots.isFull) await clock.sleep(nextMs, AbortSignal.any([signal, sleeping.signal])).catch(() => signal.throwIfAborted());
    }
  }

  /** Splits ranges of this worker while nothing is due and slots are free; while the index is slow, a few slots suffice. */
  async function fillOwnSlots(): Promise<void> {
    const isNothingDue = nothingSinceMs !== undefined && clock.monotonicMs() - nothingSinceMs >= NOTHING_DUE_MS;
    const wanted = rangesWanted();
    if (isNothingDue && wanted > 0) slots.wantSplits(wanted);
  }

  /** Splits one range for other workers while nothing is due and no slot is free here. */
  async function feedOthers(signal: AbortSignal): Promise<void> {
    if (!slots.isFull || indexIsSlow()) return;
    const { found } = await look(signal);
    // a lease that is late may be that of a living worker whose clock is slow
    if (!found.some(({ record }) => rangeSchema.safeParse(record).data?.lease === undefined)) slots.wantSplits(1);
  }

  return {
    start() {
      const signal = stopping.signal;
      repeat({ clock, telemetry }, { name: 'check the jobs being worked on', intervalMs: JOB_CHECK_MS, signal }, () => slots.watchJobs());
      repeat({ clock, telemetry }, { name: 'choose ranges to split', intervalMs: SPLIT_CHECK_MS, signal }, fillOwnSlots);
      repeat({ clock, telemetry }, { name: 'check whether other workers lack work', intervalMs: OTHERS_CHECK_MS, signal }, feedOthers);
      looking = keepLooking(signal).catch((error: unknown) => {
        if (!signal.aborted) report(LOOKING, error);
      });
    },
    wake,
    async stop(deadline) {
      stopping.abort(new Error('the process is stopping'));
      await endedBy(looking, deadline);
      await endedBy(slots.idle(), deadline);
      aborting.abort(new Error('the deadline of the stop has passed'));
      await endedBy(slots.idle(), AbortSignal.timeout(ABORTED_GRACE_MS));
    },
    lookFault: () => lastLook.current(),
  };
}

interface ClaimParts {
  readonly slots: WorkerSlots;
  readonly wake: () => void;
  readonly turnEnded: (hasMadeDue: boolean) => void;
  readonly report: (operation: string, error: unknown) => false;
  readonly stopping: AbortSignal;
  readonly aborting: AbortSignal;
}

type WorkDependencies = Parameters<typeof createClaimJob>[0] &
  Parameters<typeof createClaimRange>[0] &
  Parameters<typeof createRunRange>[0] &
  Parameters<typeof createTakeStep>[0];

/** Creates the functions that claim a job or a range, and work on it in a slot. They resolve with whether it was claimed, and throw the store's fault. */
function createClaim(work: WorkDependencies, { slots, wake, turnEnded, report, stopping, aborting }: ClaimParts) {
  const claimJob = createClaimJob(work);
  const claimRange = createClaimRange(work);
  const runRange = createRunRange(work);
  const takeStep = createTakeStep(work, aborting);

  /** The first range of a job that this worker has begun: no look finds it before the state index has refreshed. The others are for everyone. */
  async function claimFirst(jobId: string): Promise<void> {
    const claimed = stopping.aborted ? undefined : await claimRange({ jobId, number: 0 });
    if (claimed !== undefined) workOnRange(claimed);
  }

  function workOnRange(claimed: ClaimedRange): void {
    const { jobId, number } = claimed.range.record;
    slots.run({ jobId, number }, (slot) =>
      runRange(claimed, slot, aborting).then(turnEnded, (error: unknown) => void report('work on a range of a re-index job', error)),
    );
  }

  async function due({ record }: DueEntry): Promise<boolean> {
    const range = rangeSchema.safeParse(record);
    if (range.success) {
      const claimed = await claimRange(range.data);
      if (claimed !== undefined) workOnRange(claimed);
      return claimed !== undefined;
    }
    // one that a newer version wrote is left to its workers
    const found = jobSchema.safeParse(record);
    return found.success && job(found.data.id);
  }

  async function heldJob(id: string): Promise<HeldJob | undefined> {
    const claimed = await claimJob(id);
    if (claimed.kind === 'poisonous') await work.ends.fail(claimed.job, diedAtStep);
    return claimed.kind === 'taken' ? claimed.held : undefined;
  }

  async function step(held: HeldJob): Promise<void> {
    if (!(await takeStep(held))) return;
    wake();
    await claimFirst(held.job.id).catch((error: unknown) => report('claim re-index work', error));
  }

  async function job(id: string): Promise<boolean> {
    const held = await heldJob(id);
    if (held === undefined) return false;
    slots.run({ jobId: id }, () => step(held));
    return true;
  }

  /** Claims within the slot: many jobs may be stored at once, each of which would find the slot free until one of them is claimed. */
  function ownJob(id: string): void {
    slots.run({ jobId: id }, async () => {
      const held = await heldJob(id).catch((error: unknown) => void report('claim re-index work', error));
      if (held !== undefined) await step(held);
    });
  }

  return { due, ownJob };
}

/** Tries the items in their order until `wanted` were taken, that many at the same time. Resolves with how many were. */
async function takeSome<Item>(items: readonly Item[], wanted: number, take: (item: Item) => Promise<boolean>): Promise<number> {
  const left = [...items];
  const tryUntilTaken = async (): Promise<boolean> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) if (await take(item)) return true;
    return false;
  };
  const taken = await Promise.all(Array.from({ length: wanted }, tryUntilTaken));
  return taken.filter(Boolean).length;
}

/** What a worker may claim of what it found, and how much of it, if it has this many free slots and could compare this many more ranges: the steps of jobs are short. */
function shareOf(found: readonly DueEntry[], { free, ranges }: { readonly free: number; readonly ranges: number }) {
  const items = ranges > 0 ? found : found.filter(({ record }) => !rangeSchema.safeParse(record).success);
  return { items, wanted: Math.min(ranges > 0 ? ranges : free, Math.ceil(items.length * SHARE)) };
}

/**
 * Jobs first; then ranges in a random order in which their jobs take turns, those first that have the fewest of this worker's
 * slots: a small job waits for one turn at most, however many ranges a huge one has.
 */
function inTurns(found: readonly DueEntry[], slotsOf: (jobId: string) => number, random: () => number): readonly DueEntry[] {
  const before = new Map<string, number>();
  return found
    .map((entry) => ({ entry, at: random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ entry }) => {
      const jobId = rangeSchema.safeParse(entry.record).data?.jobId;
      // the steps of jobs are short, and ranges wait for them
      if (jobId === undefined) return { entry, turn: -1 };
      const turn = before.get(jobId) ?? slotsOf(jobId);
      before.set(jobId, turn + 1);
      return { entry, turn };
    })
    .toSorted((a, b) => a.turn - b.turn)
    .map(({ entry }) => entry);
}
