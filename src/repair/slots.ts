/**
 * This process's slots: each runs one turn of one part of a job. The jobs that the process holds take turns. A job that has had no turn
 * goes before all others; among those, the newest first. So a small job waits for one turn at most, however many giant ones there are.
 * A job that has waited for minutes goes before all. A process with too many jobs for its slots gives one back after its turn.
 */
import { inTime } from '../base/in-time.ts';
import type { WithPorts } from '../store/store.ts';

/** A job that has had no turn for this long goes first; otherwise a stream of new jobs could keep it waiting forever. With eight slots, a round of turns of forty jobs takes half as long. */
const LATE_MS = 300_000;
/** A younger turn is not cut, because it may be about to end, unless it is its job's first turn. */
const TURN_MIN_MS = 1_500;
/** Slots that have just become free are not worth a cut either: if a job's parts end one after another, it is nearly over. */
const FREE_MIN_MS = 1_500;
/**
 * How many parts are compared at the same time while writes wait for the index: more would make each other wait, and cost requests and
 * memory. Each job's first part begins regardless, so that no job waits for another.
 */
const TURNS_WHEN_SLOW = 2;

/** A turn as its slot sees it. */
interface Turn {
  readonly jobId: string;
  /** Whether it is its job's first. */
  readonly isFirst: boolean;
  readonly isUncuttable: boolean;
  readonly sinceMs: number;
  /** How many extra parts to cut its part into: while it is not 0, the turn ends behind its next slice. */
  extraParts: number;
}

interface Waiting extends Sharing {
  /** Since when (monotonic) its job has waited without beginning a turn. */
  sinceMs: number;
  readonly begin: () => void;
}

/** A part that wants a turn. */
interface Sharing {
  readonly jobId: string;
  /** Whether nothing of the job has been compared yet. */
  readonly isNew: () => boolean;
  /** Whether the last attempt to cut the part failed. */
  readonly isUncuttable: boolean;
}

/** With more jobs per slot than this, a job waits for at least a minute between two turns of 30 s. */
const JOBS_PER_SLOT = 2;

export interface Slots {
  /** Whether a turn could begin now. */
  readonly hasFree: () => boolean;
  /** Whether there are too many jobs for the slots, so that a job is better given back after its turn. */
  readonly areCrowded: () => boolean;
  /** Runs a turn's work as soon as a slot is the part's. Rejects with the signal's reason while it waits, otherwise as the work does. */
  run<Result>(part: Sharing, work: (turn: Pick<Turn, 'extraParts'>) => Promise<Result>, signal: AbortSignal): Promise<Result>;
  /** Begins turns that waited while the index was slow; if slots stay free, asks for the parts whose turns have run longest to be cut. */
  fill(): void;
}

interface SlotsDependencies extends WithPorts<'clock' | 'telemetry'> {
  readonly slotsMax: number;
  /** Whether writes wait for the index. */
  readonly indexIsSlow: () => boolean;
}

/** Creates the slots, all free. */
export function createSlots({ clock, telemetry, slotsMax, indexIsSlow }: SlotsDependencies): Slots {
  const turns = new Set<Turn>();
  let waiting: readonly Waiting[] = [];
  /** Since when (monotonic) there have been free slots for which nothing waits. */
  let freeSinceMs: number | undefined;

  const turnsOf = (jobId: string): number => [...turns].filter((turn) => turn.jobId === jobId).length;

  /** The most turns that may run now. */
  const allowed = (): number => (indexIsSlow() ? Math.min(slotsMax, TURNS_WHEN_SLOW) : slotsMax);

  /** The next part to begin: of the jobs with the fewest running turns, one that is late, else the newest without a turn, else the one that has waited longest. */
  function next(): Waiting | undefined {
    const fewest = Math.min(...waiting.map(({ jobId }) => turnsOf(jobId)));
    const those = waiting.filter(({ jobId }) => turnsOf(jobId) === fewest);
    const [late] = those.filter(({ sinceMs }) => clock.monotonicMs() - sinceMs >= LATE_MS).toSorted((a, b) => a.sinceMs - b.sinceMs);
    const first = late ?? those.findLast(({ isNew }) => isNew()) ?? those[0];
    if (first === undefined || turns.size >= slotsMax) return undefined;
    return turns.size < allowed() || turnsOf(first.jobId) === 0 ? first : undefined;
  }

  function pump(): void {
    for (let entry = next(); entry !== undefined; entry = next()) {
      const { begin, jobId } = entry;
      waiting = waiting.filter((each) => each !== entry);
      for (const each of waiting) if (each.jobId === jobId) each.sinceMs = clock.monotonicMs();
      begin();
    }
    telemetry.set('tally_reindex_parts', turns.size);
  }

  return {
    hasFree: () => turns.size < allowed() && waiting.length === 0,
    areCrowded: () => new Set([...turns, ...waiting].map(({ jobId }) => jobId)).size > slotsMax * JOBS_PER_SLOT,
    async run(part, work, signal) {
      const { jobId, isUncuttable } = part;
      const begun = Promise.withResolvers<Turn>();
      const entry: Waiting = {
        ...part,
        sinceMs: clock.monotonicMs(),
        begin() {
          const turn: Turn = { jobId, isFirst: part.isNew(), isUncuttable, sinceMs: clock.monotonicMs(), extraParts: 0 };
          turns.add(turn);
          begun.resolve(turn);
        },
      };
      waiting = [...waiting, entry];
      pump();
      const turn = await inTime(begun.promise, signal).catch((error: unknown) => {
        waiting = waiting.filter((each) => each !== entry);
        // the turn may have begun in the same moment
        void begun.promise.then((unused) => turns.delete(unused));
        throw error;
      });
      try {
        return await work(turn);
      } finally {
        turns.delete(turn);
        pump();
      }
    },
    fill() {
      pump();
      const nowMs = clock.monotonicMs();
      const free = waiting.length > 0 ? 0 : allowed() - turns.size;
      freeSinceMs = free > 0 ? (freeSinceMs ?? nowMs) : undefined;
      if (freeSinceMs === undefined) return;
      const isFreeLong = nowMs - freeSinceMs >= FREE_MIN_MS;
      const isRipe = ({ isFirst, sinceMs }: Turn): boolean => isFirst || (isFreeLong && nowMs - sinceMs >= TURN_MIN_MS);
      cutLongest(free - [...turns].reduce((sum, { extraParts }) => sum + extraParts, 0), isRipe);
    },
  };

  /** Asks for cuts that add this many parts in all, first in the turns that have run longest. */
  function cutLongest(more: number, isRipe: (turn: Turn) => boolean): void {
    const candidates = [...turns].filter((turn) => !turn.isUncuttable && turn.extraParts === 0 && isRipe(turn));
    for (const [at, turn] of candidates.toSorted((a, b) => a.sinceMs - b.sinceMs).entries())
      turn.extraParts = Math.max(0, Math.floor(more / candidates.length) + (at < more % candidates.length ? 1 : 0));
  }
}
