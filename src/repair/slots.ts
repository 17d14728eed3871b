/**
 * The slots of this process: each runs one turn of one part of a job. The jobs that this process holds share them turn by turn, and
 * one that has had no turn comes before all that have, the latest first. So a small job waits for the end of one turn at most, however
 * many giant ones there are. One that has waited for minutes comes before all. With too many jobs for its slots, a process gives one back after its turn, for a process with free slots.
 */
import { inTime } from '../base/in-time.ts';
import type { WithPorts } from '../store/store.ts';

/** A job without a turn for so long comes first: with more work than slots take, new jobs would keep it waiting for good. Forty jobs with eight slots take half as long. */
const LATE_MS = 300_000;
/** A younger turn is not ended for a cut, because it may be about to end: but for the first of its job. */
const TURN_MIN_MS = 1_500;
/** Slots that became free a moment ago are not worth a cut either: a job whose parts end one after another is nearly over. */
const FREE_MIN_MS = 1_500;
/**
 * Parts that are compared at the same time even if writes wait for the index: more of them would make each other wait, and cost requests
 * and memory. The first part of each job begins in spite of it, so that no job waits for another.
 */
const TURNS_WHEN_SLOW = 2;

/** A turn as its slot sees it. */
interface Turn {
  readonly jobId: string;
  /** It is the first of its job. */
  readonly isFirst: boolean;
  readonly isWhole: boolean;
  readonly sinceMs: number;
  /** Into how many parts more the part is to be cut: while it is not 0, the turn ends behind its next slice. */
  wanted: number;
}

interface Waiting extends Sharing {
  /** Since when (monotonic) its job waits without having begun a turn. */
  sinceMs: number;
  readonly begin: () => void;
}

/** A part that wants a turn. */
interface Sharing {
  readonly jobId: string;
  /** Whether nothing of the job has been compared. */
  readonly isNew: () => boolean;
  /** The part could not be cut a moment ago. */
  readonly isWhole: boolean;
}

/** With more jobs than these for each slot, one waits for a minute between two turns of 30 s. */
const JOBS_PER_SLOT = 2;

export interface Slots {
  /** Whether a turn could begin now. */
  readonly hasFree: () => boolean;
  /** Whether there are too many jobs for the slots, so that one which has had its turn is better given back. */
  readonly areCrowded: () => boolean;
  /** Runs the work of a turn as soon as it is the job's turn. Rejects with the signal's reason while it waits, else as the work does. */
  run<Result>(part: Sharing, work: (turn: Pick<Turn, 'wanted'>) => Promise<Result>, signal: AbortSignal): Promise<Result>;
  /** Begins turns that waited while the index was slow; if slots stay free, wants the parts cut whose turns have run longest. */
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
  /** Since when (monotonic) slots are free that nothing waits for. */
  let freeSinceMs: number | undefined;

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
    async run(part, work, signal) {
      const { jobId, isWhole } = part;
      const mine = Promise.withResolvers<Turn>();
      const entry: Waiting = {
        ...part,
        sinceMs: clock.monotonicMs(),
        begin() {
          const turn: Turn = { jobId, isFirst: part.isNew(), isWhole, sinceMs: clock.monotonicMs(), wanted: 0 };
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
      cutLongest(free - [...turns].reduce((sum, { wanted }) => sum + wanted, 0), isRipe);
    },
  };

  /** Wants parts cut such that all of them together add this many; those whose turns have run longest come first. */
  function cutLongest(more: number, isRipe: (turn: Turn) => boolean): void {
    const candidates = [...turns].filter((turn) => !turn.isWhole && turn.wanted === 0 && isRipe(turn));
    for (const [at, turn] of candidates.toSorted((a, b) => a.sinceMs - b.sinceMs).entries())
      turn.wanted = Math.max(0, Math.floor(more / candidates.length) + (at < more % candidates.length ? 1 : 0));
  }
}
