/**
 * The queue of all requests to S3 about single objects, for observations and for enrichment. It has one limit for all of them, and
 * serves the buckets in turn. Requests that hang must not take every place, so one bucket, one region, and all that fails
 * together have a share only.
 */
import type { FaultCode } from '../../domain/fault.ts';
import type { Clock } from '../ports/clock.ts';
import type { BucketLocation } from '../ports/storage.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { LiveLoad } from '../serving/live-load.ts';

/** Of the places, when other buckets or regions need some as well: what one bucket, one region, and all that fails may have. */
const BUCKET_SHARE = 1 / 2;
const REGION_SHARE = 3 / 4;
const FAILING_SHARE = 1 / 4;
/** How long a bucket counts after its last request. A bucket that is alone may have every place, once its region has answered. */
const ASKED_MS = 60_000;

export interface HeadQueue {
  /** Runs the task when it may have a place. Rejects with the signal's reason if it is aborted before that. */
  run<Result>(target: BucketLocation, task: () => Promise<Result>, signal?: AbortSignal): Promise<Result>;
  /** Reports how many tasks wait and run now. */
  report(): void;
}

interface HeadQueueDependencies {
  readonly concurrency: number;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** The load of the live path; absent: the queue serves something else. */
  readonly load?: Pick<LiveLoad, 'heads'> | undefined;
  /** Whether the latest requests of this bucket failed. */
  readonly isFailing: (target: BucketLocation) => boolean;
}

/** The tasks of one bucket. */
interface Lane {
  readonly target: BucketLocation;
  readonly waiting: Set<() => void>;
  running: number;
  askedAtMs: number;
}

/** Creates an empty queue. It is bounded by the held set: each held message waits for its own tasks. */
export function createHeadQueue({ concurrency, clock, load, isFailing }: HeadQueueDependencies): HeadQueue {
  /** In the order in which they are served next. */
  const lanes = new Map<string, Lane>();
  const placesOf = (share: number): number => Math.max(1, Math.floor(concurrency * share));
  /** The regions that have answered this process: one that hangs when it starts must leave places for the first request of another. */
  const answered = new Set<string>();
  let queued = 0;
  let running = 0;
  let failing = 0;

  function laneOf(target: BucketLocation): Lane {
    const lane = lanes.get(target.bucket) ?? { target, waiting: new Set<() => void>(), running: 0, askedAtMs: 0 };
    lane.askedAtMs = clock.monotonicMs();
    lanes.set(target.bucket, lane);
    return lane;
  }

  function forgetIdle(): void {
    const sinceMs = clock.monotonicMs() - ASKED_MS;
    for (const [bucket, lane] of lanes) {
      if (lane.running === 0 && lane.waiting.size === 0 && lane.askedAtMs < sinceMs) lanes.delete(bucket);
    }
  }

  function mayRun({ target, running: own }: Lane, isSuspect: boolean): boolean {
    if (isSuspect && failing >= placesOf(FAILING_SHARE)) return false;
    if (lanes.size > 1 && own >= placesOf(BUCKET_SHARE)) return false;
    const others = [...lanes.values()].filter((lane) => lane.target.region !== target.region);
    if (others.length === 0 && answered.has(target.region)) return true;
    return running - others.reduce((sum, lane) => sum + lane.running, 0) < placesOf(REGION_SHARE);
  }

  /** Serves the next task of each bucket once. Returns whether one could begin. */
  function serveEachBucket(): boolean {
    let hasBegun = false;
    // a copy, because the order changes
    for (const lane of Array.from(lanes.values())) {
      if (running >= concurrency) return false;
      const [next] = lane.waiting;
      if (next === undefined || !mayRun(lane, isFailing(lane.target))) continue;
      next();
      hasBegun = true;
    }
    return hasBegun;
  }

  function serve(): void {
    if (queued === 0) return;
    forgetIdle();
    while (serveEachBucket());
  }

  /** Takes a place. Returns the function that gives it back. */
  function begin(lane: Lane): () => void {
    // the bucket that is served goes to the end
    lanes.delete(lane.target.bucket);
    lanes.set(lane.target.bucket, lane);
    const isSuspect = isFailing(lane.target);
    running += 1;
    lane.running += 1;
    if (isSuspect) failing += 1;
    return () => {
      running -= 1;
      lane.running -= 1;
      if (isSuspect) failing -= 1;
      serve();
      report();
    };
  }

  /** Resolves with a place when one is free; rejects with the signal's reason. */
  function placeFor(lane: Lane, signal: AbortSignal | undefined): Promise<() => void> {
    const { promise, resolve, reject } = Promise.withResolvers<() => void>();
    const leave = (): void => {
      lane.waiting.delete(go);
      queued -= 1;
      signal?.removeEventListener('abort', abort);
    };
    const go = (): void => {
      leave();
      resolve(begin(lane));
    };
    const abort = (): void => {
      leave();
      reject(signal?.reason);
    };
    lane.waiting.add(go);
    queued += 1;
    signal?.addEventListener('abort', abort, { once: true });
    return promise;
  }

  function report(): void {
    load?.heads({ queued, inFlight: running });
  }

  return {
    async run(target, task, signal) {
      signal?.throwIfAborted();
      const lane = laneOf(target);
      const isFree = running < concurrency && lane.waiting.size === 0 && mayRun(lane, isFailing(target));
      const end = isFree ? begin(lane) : await placeFor(lane, signal);
      try {
        const answer = await task();
        answered.add(target.region);
        return answer;
      } finally {
        end();
      }
    },
    report,
  };
}

/** What a HEAD saw, or why it failed. */
export type HeadResult = 'present' | 'absent' | FaultCode;

/** Counts a HEAD and measures it. */
export function reportHead(telemetry: Telemetry, durationMs: number, result: HeadResult): void {
  telemetry.count('tally_head_requests_total', 1, { result });
  telemetry.observe('tally_head_duration_seconds', durationMs / 1_000);
}
