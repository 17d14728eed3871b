/**
 * A sweep visits each connected bucket once. A bucket's fault is reported, and the others are still visited. A run that takes too
 * long ends after a visit. Each run begins with a random bucket, so that no bucket keeps the same others from their turn. The
 * buckets of a region that does not answer are visited last.
 */
import type { BucketRecord } from '../records/bucket.ts';
import { faultOf, type FaultCode } from '../base/fault.ts';
import type { BucketLocation } from '../aws/storage.ts';
import type { LabelsOf } from '../process/telemetry.ts';
import type { WithPorts } from '../store/store.ts';
import { listBuckets } from './buckets.ts';

/** Visits one bucket. Resolves with how many objects it checked or tombstones it purged; undefined if nothing was due, which is not reported. */
export type Visit = (bucket: BucketRecord, signal: AbortSignal) => Promise<number | undefined>;

/**
 * Reads, in lists, what a run needs to know about all buckets, and resolves with a function that says whether to visit a bucket. If
 * nothing is due, a run's number of requests must not grow with the number of buckets.
 */
export type DueOf = (signal: AbortSignal) => Promise<(bucket: BucketRecord) => boolean>;

/** How long one visit may take at most. The next visit continues. */
export const VISIT_MAX_MS = 300_000;

/** The calendar's work that visits every bucket. */
export type Sweep = LabelsOf<'tally_sweeps_total'>['sweep'];

interface SweepDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  /** For how long a run begins visits, so that the last one ends before the run is aborted. */
  readonly runMaxMs: number;
  /** From 0 to 1, 1 excluded. Default: Math.random. */
  readonly random?: () => number;
}

/** Creates the sweep. Without `dueOf`, each bucket is visited. Throws the store's fault if the buckets cannot be listed. */
export function createSweep(
  { state, clock, telemetry, runMaxMs, random = Math.random }: SweepDependencies,
  sweep: Sweep,
  visit: Visit,
  dueOf: DueOf = () => Promise.resolve(() => true),
): (signal: AbortSignal) => Promise<void> {
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
    const isDue = await dueOf(signal);
    const buckets = (await listBuckets(state)).filter(isDue);
    const from = Math.floor(random() * buckets.length);
    const regions = createRegionNotes();
    const putOff: BucketRecord[] = [];
    for (const bucket of [...buckets.slice(from), ...buckets.slice(0, from)])
      if (regions.hangs(bucket)) putOff.push(bucket);
      else await visitInTime(bucket);
    for (const bucket of putOff) await visitInTime(bucket);

    async function visitInTime(bucket: BucketRecord): Promise<void> {
      signal.throwIfAborted();
      if (clock.monotonicMs() < untilMs) await visitOne(bucket, regions, signal);
    }
  };
}

// ── buckets that hang do not delay the others: once three buckets of a region had no answer in a run, its remaining buckets come after
// those of all other regions. The next run asks the region again ─────────────────────────────────────────────────────────

/** Three buckets are not chance, and each of them may have waited for its time-out. */
const UNANSWERED_MAX = 3;

/** What the visits of one run show about the regions. */
interface RegionNotes {
  /** Whether the region had no answer for several buckets, and has answered none since. */
  hangs(bucket: BucketLocation): boolean;
  /** Notes how a visit that needed S3 ended. Any answer, even a refusal, shows that the region works. */
  visited(bucket: BucketLocation, fault?: FaultCode): void;
}

function createRegionNotes(): RegionNotes {
  const unanswered = new Map<string, number>();
  return {
    hangs: ({ region }) => (unanswered.get(region) ?? 0) >= UNANSWERED_MAX,
    visited({ region }, fault) {
      if (fault === 's3.unavailable' || fault === 'connect.unavailable') unanswered.set(region, (unanswered.get(region) ?? 0) + 1);
      else unanswered.delete(region);
    },
  };
}
