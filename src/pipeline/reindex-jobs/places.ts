/** The places of this worker: what is worked on in each, and what is looked at meanwhile. */
import { placeOf } from '../../domain/reindex/job-steps.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import { readRecord, refs } from '../records/stored.ts';
import type { TurnSlot } from './run-range.ts';
import type { Task } from './tasks.ts';

/** A turn that has only begun may end by itself. */
const TURN_MIN_MS = 1_500;
/** A range that could not be split is not asked again for so long. */
const SPLIT_PAUSE_MS = 15_000;

export interface Places {
  readonly isFull: boolean;
  /** Runs the work in a place of its own. */
  occupy(task: Task, work: (slot: TurnSlot) => Promise<void>): void;
  /** Resolves when nothing is worked on. */
  idle(): Promise<void>;
  /** Ends the turns of jobs that no longer run. Throws the store's fault. */
  watchJobs(): Promise<void>;
  /** How many may be occupied. */
  readonly free: number;
  /** The ranges that have been turning longest are to be split, evenly, so that up to `count` more come of them, counting those on the way. */
  wantSplits(count: number): void;
}

interface PlacesDependencies {
  readonly state: StateStore;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly placesMax: number;
  readonly stopping: AbortSignal;
}

interface Place {
  readonly task: Task;
  readonly ended: Promise<void>;
  /** Since when its turn runs; undefined while none does. */
  turningSinceMs: number | undefined;
  /** Into how many its range is to be split: 1 for not at all. Asked once in a turn. */
  parts: number;
  readonly splitWanted: PromiseWithResolvers<void>;
  /** Its job was paused, cancelled or ended. */
  isOver: boolean;
}

/** Creates empty places. */
export function createPlaces({ state, clock, telemetry, placesMax, stopping }: PlacesDependencies): Places {
  const places = new Set<Place>();
  const unsplit = new Map<string, number>();

  function slotOf(place: Place): TurnSlot {
    return {
      task: place.task,
      shouldEnd: () => stopping.aborted || place.isOver,
      partsWanted: () => (place.isOver || stopping.aborted ? 1 : place.parts),
      isRunning(isRunning) {
        place.turningSinceMs = isRunning ? clock.monotonicMs() : undefined;
        telemetry.reindexRanges(turning().length);
      },
      splitWanted: place.splitWanted.promise,
      notSplit() {
        place.parts = 1;
        unsplit.set(nameOf(place.task), clock.monotonicMs() + SPLIT_PAUSE_MS);
      },
    };
  }

  function turning(): readonly (Place & { readonly turningSinceMs: number })[] {
    return [...places].filter((place): place is Place & { turningSinceMs: number } => place.turningSinceMs !== undefined);
  }

  return {
    get isFull() {
      return places.size >= placesMax;
    },
    occupy(task, work) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const place: Place = {
        task,
        ended: promise,
        turningSinceMs: undefined,
        parts: 1,
        splitWanted: Promise.withResolvers(),
        isOver: false,
      };
      places.add(place);
      void work(slotOf(place)).finally(() => {
        places.delete(place);
        resolve();
      });
    },
    async idle() {
      while (places.size > 0) await Promise.all([...places].map(({ ended }) => ended));
    },
    async watchJobs() {
      const ofRanges = [...places].filter(({ task }) => task.range !== undefined);
      for (const [id, ofJob] of Map.groupBy(ofRanges, ({ task }) => task.job)) {
        const job = await readRecord(state, refs.job(id));
        const isOver = job === undefined || placeOf(job) !== 'comparing';
        for (const place of ofJob) place.isOver = isOver;
      }
    },
    get free() {
      return placesMax - places.size;
    },
    wantSplits(count) {
      const nowMs = clock.monotonicMs();
      for (const [name, untilMs] of unsplit) if (untilMs <= nowMs) unsplit.delete(name);
      const running = turning().filter(({ isOver }) => !isOver);
      const more = count - [...places].reduce((sum, { parts, isOver }) => sum + (isOver ? 0 : parts - 1), 0);
      const candidates = running
        .filter(({ parts, turningSinceMs }) => parts === 1 && nowMs - turningSinceMs >= TURN_MIN_MS)
        .filter(({ task }) => !unsplit.has(nameOf(task)))
        .sort((a, b) => a.turningSinceMs - b.turningSinceMs);
      for (let given = 0; given < more && candidates.length > 0; given += 1) {
        const place = candidates[given % candidates.length];
        if (place !== undefined) place.parts += 1;
      }
      for (const { parts, splitWanted } of candidates) if (parts > 1) splitWanted.resolve();
    },
  };
}

function nameOf({ job, range = 0 }: Task): string {
  return `${job} ${range}`;
}
