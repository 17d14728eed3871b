/**
 * The slots of this process: each runs one turn of one part of a job. The jobs that this process holds share them turn by turn, and
 * one that has had no turn comes before all that have, the latest first. So a small job waits for the end of one turn at most, however
 * many giant ones there are. One that has waited for minutes comes before all. With too many jobs for its slots, a process gives one back after its turn, for a process with free slots.
 */
import { inTime } from '../base/in-time.ts';
import type { WithPorts } from '../store/store.ts';

/** A job without a turn for so long comes first: with more work than slots take, new jobs would keep it waiting for good. Forty jobs with eight slots take half as long. */
const LATE_MS = 300_000;
/** A younger turn is not cut, because it may be about to end. */
const TURN_MIN_MS = 1_500;
/** Slots that became free a moment ago are not worth a cut either: a job whose parts end one after another is nearly over. */
const FREE_MIN_MS = 1_500;
/** How long a part that could not be cut is left alone. */
const UNCUT_PAUSE_MS = 15_000;
/**
 * Parts that are compared at the same time even if the index is slow. The first part of each job begins in spite of it, so that no
 * job waits for another.
 */
const TURNS_WHEN_SLOW = 2;

/** A turn as its part sees it. */
export interface SlotTurn {
  /** From now on the part can be cut. `cut` is given the number of parts that are wanted, and resolves with whether it was; it does not reject, and is called again only then. */
  readonly cuttable: (cut: Cut) => void;
}

type Cut = (parts: number) => Promise<boolean>;

interface Turn {
  readonly jobId: string;
  readonly sinceMs: number;
  cut?: Cut;
  /** Until this time (monotonic) the part is not cut: it is being cut, or could not be cut a moment ago. */
  wholeUntilMs: number;
}

interface Waiting {
  readonly jobId: string;
  readonly isNew: () => boolean;
  /** Since when (monotonic) its job waits without having begun a turn. */
  sinceMs: number;
  readonly begin: () => void;
}

/** A job that wants turns. `isNew`: nothing of it has been compared. */
interface Sharing {
  readonly id: string;
  readonly isNew: () => boolean;
}

/** With more jobs than these for each slot, one waits for a minute between two turns of 30 s. */
const JOBS_PER_SLOT = 2;

export interface Slots {
  /** Whether a turn could begin now. */
  readonly hasFree: () => boolean;
  /** Whether there are too many jobs for the slots, so that one which has had its turn is better given back. */
  readonly areCrowded: () => boolean;
  /** Runs the work of a turn as soon as it is the job's turn. Rejects with the signal's reason while it waits, else as the work does. */
  run<Result>(job: Sharing, work: (turn: SlotTurn) => Promise<Result>, signal: AbortSignal): Promise<Result>;
  /** Begins turns that waited while the index was slow; if slots stay free, has the parts cut whose turns have run longest. */
  fill(): void;
}

interface SlotsDependencies extends WithPorts<'clock' | 'telemetry'> {
  readonly slotsMax: number;
  /** Whether the index is so slow that more turns at the same time would only wait longer. */
  readonly indexIsSlow: () => boolean;
}

/** Creates the slots, all free. */
export function createSlots({ clock, telemetry, slotsMax, indexIsSlow }: SlotsDependencies): Slots {
  const turns = new Set<Turn>();
  let waiting: readonly Waiting[] = [];
  /** Since when (monotonic) slots are free that nothing waits for. */
  let freeSinceMs: number | undefined;
  /** How many parts the cuts that are being searched will add. */
  let awaited = 0;

  const turnsOf = (jobId: string): number => [...turns].filter((turn) => turn.jobId === jobId).length;

  /** The most turns that may run now. */
  const allowed = (): number => (indexIsSlow() ? Math.min(slotsMax, TURNS_WHEN_SLOW) : slotsMax);

  /** The next of those that wait: of the job with the fewest turns; of such, the one that is late, else the latest that is new, else the one that has waited longest. */
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
    async run({ id: jobId, isNew }, work, signal) {
      const mine = Promise.withResolvers<Turn>();
      const entry: Waiting = {
        jobId,
        isNew,
        sinceMs: clock.monotonicMs(),
        begin() {
          const turn: Turn = { jobId, sinceMs: clock.monotonicMs(), wholeUntilMs: clock.monotonicMs() + TURN_MIN_MS };
          turns.add(turn);
          mine.resolve(turn);
        },
      };
      waiting = [...waiting, entry];
      pump();
      const turn = await inTime(mine.promise, signal).catch((error: unknown) => {
        waiting = waiting.filter((each) => each !== entry);
        // it may have begun in the same moment
        void mine.promise.then((begun) => turns.delete(begun));
        throw error;
      });
      try {
        return await work({ cuttable: (cut) => void (turn.cut = cut) });
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
      if (freeSinceMs === undefined || nowMs - freeSinceMs < FREE_MIN_MS) return;
      cutLongest(Math.max(0, free - awaited), nowMs);
    },
  };

  /** Has parts cut whose turns can be, such that all of them together add this many; those that have run longest come first. */
  function cutLongest(wanted: number, nowMs: number): void {
    const candidates = [...turns].filter(({ cut, wholeUntilMs }) => cut !== undefined && nowMs >= wholeUntilMs);
    for (const [at, turn] of candidates.toSorted((a, b) => a.sinceMs - b.sinceMs).entries()) {
      const more = Math.floor(wanted / candidates.length) + (at < wanted % candidates.length ? 1 : 0);
      if (more > 0) void cutTurn(turn, more);
    }
  }

  async function cutTurn(turn: Turn, more: number): Promise<void> {
    turn.wholeUntilMs = Infinity;
    awaited += more;
    const isCut = await turn.cut?.(1 + more);
    awaited -= more;
    turn.wholeUntilMs = clock.monotonicMs() + (isCut === true ? 0 : UNCUT_PAUSE_MS);
  }
}
