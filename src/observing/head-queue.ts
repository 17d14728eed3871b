/**
 * The queue of all requests to S3 about single objects, for observations and enrichment. It has one limit for all of them, and
 * serves the buckets in turn. So that requests that hang don't take every place, each bucket, each region, and all failing buckets
 * together have a limited share.
 */
import type { FaultCode } from '../base/fault.ts';
import type { Clock } from '../process/clock.ts';
import type { BucketLocation } from '../aws/storage.ts';
import type { Telemetry } from '../process/telemetry.ts';
import type { LiveLoad } from './live-load.ts';

/** The share of the places that one bucket, one region, and all failing buckets together may have while others need some too. */
const BUCKET_SHARE = 1 / 2;
const REGION_SHARE = 3 / 4;
const FAILING_SHARE = 1 / 4;
/** How long a bucket counts after its last request. While only one counts, it may have every place once its region has answered. */
const ASKED_MS = 60_000;

export interface HeadQueue {
  /** Runs the task when it may have a place. Rejects with the signal's reason if aborted before that, and at once if its region is failing and no place is free. */
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
  /** Whether requests for several buckets of the region fail. Such requests don't wait for a place, because thousands may come. */
  readonly isRegionFailing: (target: BucketLocation) => boolean;
}

const NO_PLACE = new Error('no place is free for a region that fails');

interface WaitingTask {
  readonly go: () => void;
  readonly refuse: () => void;
}

/** The tasks of one bucket. */
interface BucketTasks {
  readonly target: BucketLocation;
  readonly waiting: Set<WaitingTask>;
  running: number;
  askedAtMs: number;
}

/** Creates an empty queue. The held set bounds it, because each held message waits for its own tasks. */
export function createHeadQueue({ concurrency, clock, load, isFailing, isRegionFailing }: HeadQueueDependencies): HeadQueue {
  /** In the order in which they are served next. */
  const buckets = new Map<string, BucketTasks>();
  const placesOf = (share: number): number => Math.max(1, Math.floor(concurrency * share));
  /** The regions that have answered this process. A region that hangs from the start must leave places for another's first request. */
  const answeredRegions = new Set<string>();
  let queued = 0;
  let running = 0;
  let failing = 0;

  function tasksOf(target: BucketLocation): BucketTasks {
    const tasks = buckets.get(target.bucket) ?? { target, waiting: new Set<WaitingTask>(), running: 0, askedAtMs: 0 };
    tasks.askedAtMs = clock.monotonicMs();
    buckets.set(target.bucket, tasks);
    return tasks;
  }

  function forgetIdle(): void {
    const sinceMs = clock.monotonicMs() - ASKED_MS;
    for (const [bucket, tasks] of buckets) {
      if (tasks.running === 0 && tasks.waiting.size === 0 && tasks.askedAtMs < sinceMs) buckets.delete(bucket);
    }
  }

  function mayRun({ target, running: own }: BucketTasks, isSuspect: boolean): boolean {
    if (isSuspect && failing >= placesOf(FAILING_SHARE)) return false;
    if (buckets.size > 1 && own >= placesOf(BUCKET_SHARE)) return false;
    const others = [...buckets.values()].filter((tasks) => tasks.target.region !== target.region);
    if (others.length === 0 && answeredRegions.has(target.region)) return true;
    return running - others.reduce((sum, tasks) => sum + tasks.running, 0) < placesOf(REGION_SHARE);
  }

  /** Serves the next task of each bucket once. Returns whether one could begin. */
  function serveEachBucket(): boolean {
    let hasBegun = false;
    // a copy, because the order changes
    for (const tasks of Array.from(buckets.values())) {
      if (running >= concurrency) return false;
      const [next] = tasks.waiting;
      if (next === undefined || !mayRun(tasks, isFailing(tasks.target))) continue;
      next.go();
      hasBegun = true;
    }
    return hasBegun;
  }

  function serve(): void {
    if (queued === 0) return;
    forgetIdle();
    while (serveEachBucket());
    for (const { target, waiting } of buckets.values()) {
      // deleting from a set while iterating over it is safe
      if (waiting.size > 0 && isRegionFailing(target)) for (const { refuse } of waiting) refuse();
    }
  }

  /** Takes a place. Returns the function that gives it back. */
  function begin(tasks: BucketTasks): () => void {
    // the bucket that was just served moves to the end
    buckets.delete(tasks.target.bucket);
    buckets.set(tasks.target.bucket, tasks);
    const isSuspect = isFailing(tasks.target);
    running += 1;
    tasks.running += 1;
    if (isSuspect) failing += 1;
    return () => {
      running -= 1;
      tasks.running -= 1;
      if (isSuspect) failing -= 1;
      serve();
      report();
    };
  }

  /** Resolves with a place when one is free; rejects with the signal's reason. */
  function placeFor(tasks: BucketTasks, signal: AbortSignal | undefined): Promise<() => void> {
    const { promise, resolve, reject } = Promise.withResolvers<() => void>();
    const leave = (): void => {
      tasks.waiting.delete(waitingTask);
      queued -= 1;
      signal?.removeEventListener('abort', abort);
    };
    const go = (): void => {
      leave();
      resolve(begin(tasks));
    };
    const abort = (): void => {
      leave();
      reject(signal?.reason);
    };
    const refuse = (): void => {
      leave();
      reject(NO_PLACE);
    };
    const waitingTask: WaitingTask = { go, refuse };
    tasks.waiting.add(waitingTask);
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
      const tasks = tasksOf(target);
      const isFree = running < concurrency && tasks.waiting.size === 0 && mayRun(tasks, isFailing(target));
      if (!isFree && isRegionFailing(target)) throw NO_PLACE;
      const end = isFree ? begin(tasks) : await placeFor(tasks, signal);
      try {
        const answer = await task();
        answeredRegions.add(target.region);
        return answer;
      } finally {
        end();
      }
    },
    report,
  };
}

/** What a HEAD found, or why it failed. */
export type HeadResult = 'present' | 'absent' | FaultCode;

/** Counts a HEAD and measures it. */
export function reportHead(telemetry: Telemetry, durationMs: number, result: HeadResult): void {
  telemetry.count('tally_head_requests_total', 1, { result });
  telemetry.observe('tally_head_duration_seconds', durationMs / 1_000);
}
