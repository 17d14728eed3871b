/** Shows people who watch a job what a turn has counted so far, which is stored in its range only when the turn has ended. */
import type { ReconcileCounts } from '../../domain/reindex/counts.ts';
import type { Clock } from '../ports/clock.ts';
import type { HeldRange } from './held-range.ts';

/**
 * A turn's first counts are stored within a second, so that a first index is seen to run, and shorter turns store none; then every
 * five seconds. That is one more write of its record in five seconds for each range, beside the lease's in fifteen.
 */
const PROGRESS_FIRST_MS = 1_000;
const PROGRESS_MS = 5_000;

interface Progressing {
  readonly clock: Clock;
  readonly range: HeldRange;
  /** Undefined before the first slice. */
  readonly counted: () => ReconcileCounts | undefined;
}

/** Stores what the turn has counted, again and again until it has ended. Never rejects: a failure costs a look at the progress. */
export async function showProgress({ clock, range, counted }: Progressing, ended: AbortSignal): Promise<void> {
  const sleep = (delayMs: number): Promise<boolean> =>
    clock.sleep(delayMs, ended).then(
      () => true,
      () => false,
    );
  let turnCounts: ReconcileCounts | undefined;
  while (await sleep(turnCounts === undefined ? PROGRESS_FIRST_MS : PROGRESS_MS)) {
    turnCounts = counted();
    if (turnCounts === undefined) continue;
    const shown = turnCounts;
    await range.change((record) => (record.lease === undefined ? record : { ...record, turnCounts: shown })).catch(() => false);
  }
}
