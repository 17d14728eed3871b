/** The slots of this worker. Each works on one claimed range or job; meanwhile the jobs of the ranges are watched and ranges chosen to be split. */
import { phaseOf } from '../../domain/reindex/job-transitions.ts';
import { readRecord, refs } from '../records/stored.ts';
import type { WithPorts } from '../ports/ports.ts';

/** A younger turn is not split, because it may be about to end. */
const TURN_MIN_MS = 1_500;
/** How long a range that could not be split is left alone. */
const SPLIT_PAUSE_MS = 15_000;

/** What a slot works on: a range, or the next step of a job. */
export interface Work {
  readonly jobId: string;
  readonly number?: number;
}

/** A slot as the work in it sees it. */
export interface WorkerSlot {
  /** Called between pages: true ends the turn. */
  readonly shouldEnd: () => boolean;
  /** How many parts the range is to be split into, because other slots are free; 1: the range stays whole. */
  readonly partsWanted: () => number;
  /** Resolves when the range is to be split; stays pending if that never happens. */
  readonly splitWanted: Promise<void>;
  /** Reports that the turn has begun or ended. */
  readonly isRunning: (isRunning: boolean) => void;
  /** Reports that no boundary was found to split the range at. */
  readonly notSplit: () => void;
}

export interface WorkerSlots {
  readonly isFull: boolean;
  /** How many slots are free. */
  readonly free: number;
  /** How many slots work on ranges of the job. */
  readonly workedOn: (jobId: string) => number;
  /** Runs the work in a free slot. `run` does not reject. */
  run(work: Work, run: (slot: WorkerSlot) => Promise<void>): void;
  /** Resolves when all slots are free. */
  idle(): Promise<void>;
  /** Ends the turns of jobs that no longer run. Throws the store's fault. */
  watchJobs(): Promise<void>;
  /** Asks for splits that add `count` ranges, including those already asked for. The turns that have run longest are split first, evenly. */
  wantSplits(count: number): void;
}

interface SlotsDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly slotsMax: number;
  readonly stopping: AbortSignal;
}

/** A slot in use. */
interface Slot {
  readonly work: Work;
  readonly ended: Promise<void>;
  /** When its turn began (monotonic); undefined while none runs. */
  turningSinceMs: number | undefined;
  /** How many parts its range is to be split into; 1: it stays whole. Set once in a turn. */
  parts: number;
  readonly splitWanted: PromiseWithResolvers<void>;
  /** Whether its job was paused, was cancelled or has ended. */
  isOver: boolean;
}

/** Creates the slots, all free. */
export function createWorkerSlots({ state, clock, telemetry, slotsMax, stopping }: SlotsDependencies): WorkerSlots {
  const used = new Set<Slot>();
  const unsplit = new Map<string, number>();

  function viewOf(slot: Slot): WorkerSlot {
    return {
      shouldEnd: () => stopping.aborted || slot.isOver,
      partsWanted: () => (slot.isOver || stopping.aborted ? 1 : slot.parts),
      isRunning(isRunning) {
        slot.turningSinceMs = isRunning ? clock.monotonicMs() : undefined;
        telemetry.set('tally_reindex_ranges', turning().length);
      },
      splitWanted: slot.splitWanted.promise,
      notSplit() {
        slot.parts = 1;
        unsplit.set(nameOf(slot.work), clock.monotonicMs() + SPLIT_PAUSE_MS);
      },
    };
  }

  function turning(): readonly (Slot & { readonly turningSinceMs: number })[] {
    return [...used].filter((slot): slot is Slot & { turningSinceMs: number } => slot.turningSinceMs !== undefined);
  }

  return {
    get isFull() {
      return used.size >= slotsMax;
    },
    get free() {
      return slotsMax - used.size;
    },
    workedOn(jobId) {
      return [...used].filter(({ work }) => work.jobId === jobId && work.number !== undefined).length;
    },
    run(work, run) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const splitWanted = Promise.withResolvers<void>();
      const slot: Slot = { work, ended: promise, turningSinceMs: undefined, parts: 1, splitWanted, isOver: false };
      used.add(slot);
      void run(viewOf(slot)).finally(() => {
        used.delete(slot);
        resolve();
      });
    },
    async idle() {
      while (used.size > 0) await Promise.all([...used].map(({ ended }) => ended));
    },
    async watchJobs() {
      const ofRanges = [...used].filter(({ work }) => work.number !== undefined);
      for (const [id, ofJob] of Map.groupBy(ofRanges, ({ work }) => work.jobId)) {
        const job = await readRecord(state, refs.job(id));
        const isOver = job === undefined || phaseOf(job) !== 'comparing';
        for (const slot of ofJob) slot.isOver = isOver;
      }
    },
    wantSplits(count) {
      const nowMs = clock.monotonicMs();
      for (const [name, untilMs] of unsplit) if (untilMs <= nowMs) unsplit.delete(name);
      const running = turning().filter(({ isOver }) => !isOver);
      const more = count - [...used].reduce((sum, { parts, isOver }) => sum + (isOver ? 0 : parts - 1), 0);
      const candidates = running
        .filter(({ parts, turningSinceMs }) => parts === 1 && nowMs - turningSinceMs >= TURN_MIN_MS)
        .filter(({ work }) => !unsplit.has(nameOf(work)))
        .sort((a, b) => a.turningSinceMs - b.turningSinceMs);
      for (let given = 0; given < more && candidates.length > 0; given += 1) {
        const slot = candidates[given % candidates.length];
        if (slot !== undefined) slot.parts += 1;
      }
      for (const { parts, splitWanted } of candidates) if (parts > 1) splitWanted.resolve();
    },
  };
}

function nameOf({ jobId, number = 0 }: Work): string {
  return `${jobId} ${number}`;
}
