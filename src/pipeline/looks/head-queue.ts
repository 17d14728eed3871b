/** The queue of all requests to S3 about single objects, for looks and for enrichment, with one limit for both. */
import PQueue from 'p-queue';
import type { Telemetry } from '../ports/telemetry.ts';

export interface HeadQueue {
  /** Runs the task when a slot is free. Rejects with the signal's reason if it is aborted before that. */
  run<Result>(task: () => Promise<Result>, signal?: AbortSignal): Promise<Result>;
  /** Reports how many tasks wait and run now. */
  report(): void;
}

/** Creates an empty queue. It is bounded by the held set: each held message waits for its own tasks. */
export function createHeadQueue(dependencies: { readonly concurrency: number; readonly telemetry: Telemetry }): HeadQueue {
  const { concurrency, telemetry } = dependencies;
  const queue = new PQueue({ concurrency });

  function report(): void {
    telemetry.heads({ queued: queue.size, inFlight: queue.pending });
  }

  return {
    run: (task, signal) => queue.add(task, signal === undefined ? {} : { signal }).finally(report),
    report,
  };
}
