/**
 * A sweep visits each connected bucket once. A fault of one bucket is reported, and the others are visited all the same. A run
 * that takes long ends after a visit, and the next run begins with the bucket after it: no bucket keeps later ones from their
 * turn. The place is stored, because any worker may do the next run. The buckets of a region that does not answer are visited last.
 */
import type { BucketRecord } from '../../domain/bucket.ts';
import { faultOf, type FaultCode } from '../../domain/fault.ts';
import { createRegionNotes, visitInTurn, type RegionNotes } from './bucket-turns.ts';
import type { LabelsOf } from '../ports/telemetry.ts';
import { readRecord, refs, updateRecord } from '../records/stored.ts';
import type { WithPorts } from '../ports/ports.ts';
import { listBuckets, type AllBuckets } from '../buckets/known.ts';

/** Visits one bucket. Resolves with the objects checked or tombstones purged; undefined when nothing was due, which is not reported. */
export type Visit = (bucket: BucketRecord, signal: AbortSignal) => Promise<number | undefined>;

/**
 * Reads what a run needs to know of all buckets, in lists, and resolves with whether a bucket is to be visited. The number of
 * requests of a run in which nothing is due must not grow with the number of buckets.
 */
export type DueOf = (signal: AbortSignal) => Promise<(bucket: BucketRecord) => boolean>;

/** How long one visit may take, if there is much to do. The next visit continues. */
export const VISIT_MAX_MS = 300_000;

/** The jobs of the calendar that visit every bucket. */
export type Sweep = LabelsOf<'tally_sweeps_total'>['sweep'];

interface SweepDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  /** Default: each run lists them. */
  readonly allBuckets?: AllBuckets;
  /** A run begins no visit after this time, so that the last one ends before the run is aborted. */
  readonly runMaxMs: number;
}

/** Creates the sweep. Without `dueOf` each bucket is visited. It throws the store's fault when the buckets cannot be listed. */
export function createSweep(
  { state, clock, telemetry, runMaxMs, allBuckets = () => listBuckets(state) }: SweepDependencies,
  sweep: Sweep,
  visit: Visit,
  dueOf: DueOf = () => Promise.resolve(() => true),
): (signal: AbortSignal) => Promise<void> {
  const ref = refs.schedule(`sweep-place:${sweep}`);

  async function keepPlace(place: string): Promise<void> {
    await updateRecord(state, ref, (current) => ({ ...current, name: `sweep-place:${sweep}`, dueAtMs: 0, place }));
  }

  async function visitOne(bucket: BucketRecord, regions: RegionNotes, signal: AbortSignal): Promise<void> {
    try {
      const objects = await visit(bucket, signal);
      if (objects !== undefined) regions.visited(bucket);
      if (objects !== undefined) reportEnd(bucket.bucket, 'ok', objects);
    } catch (error) {
      signal.throwIfAborted();
      const { code } = faultOf(error);
      regions.visited(bucket, code);
      reportEnd(bucket.bucket, code, 0);
      telemetry.requestFailed(`sweep: ${sweep}`, error);
    }
  }

  /** `objects`: how many objects the sweep read, or how many tombstones it purged. */
  function reportEnd(bucket: string, result: 'ok' | FaultCode, objects: number): void {
    telemetry.count('tally_sweeps_total', 1, { sweep, result });
    if (result !== 'ok' || objects > 0) telemetry.info('sweep ended', { sweep, bucket, result, objects });
  }

  return async function sweepBuckets(signal) {
    const untilMs = clock.monotonicMs() + runMaxMs;
    const place = (await readRecord(state, ref, signal))?.place ?? '';
    const isDue = await dueOf(signal);
    const buckets = beginningAfter(place, (await allBuckets()).filter(isDue));
    const regions = createRegionNotes();
    let last = place;
    let isOver = false;
    try {
      await visitInTurn(buckets, 1, async (bucket, isPutOff) => {
        signal.throwIfAborted();
        isOver ||= clock.monotonicMs() >= untilMs;
        if (isOver) return 'done';
        if (!isPutOff) last = bucket.bucket;
        if (!isPutOff && regions.hangs(bucket)) return 'later';
        await visitOne(bucket, regions, signal);
        return 'done';
      });
      // all were visited
      if (!isOver) last = '';
    } finally {
      if (last !== place) await keepPlace(last);
    }
  };
}

/** The buckets after the place, then those up to it. */
function beginningAfter(place: string, buckets: readonly BucketRecord[]): readonly BucketRecord[] {
  return [...buckets.filter(({ bucket }) => bucket > place), ...buckets.filter(({ bucket }) => bucket <= place)];
}
