/** The queue of all that is asked of S3 about single objects, looks and enrichment alike: so many at once, whoever asks. */
import PQueue from 'p-queue';
import type { Telemetry } from '../ports/telemetry.ts';

export interface HeadQueue {
  /** Runs the task when a place is free. Rejects with the signal's reason if it is aborted before that. */
  run<Result>(task: () => Promise<Result>, signal?: AbortSignal): Promise<Result>;
  /** Tells how many wait and run now. */
  tell(): void;
}

/** Creates an empty queue. It is bounded by the held set: each held message waits for its own tasks. */
export function createHeadQueue(dependencies: { readonly concurrency: number; readonly telemetry: Telemetry }): HeadQueue {
  const { concurrency, telemetry } = dependencies;
  const queue = new PQueue({ concurrency });

  function tell(): void {
    telemetry.heads({ queued: queue.size, inFlight: queue.pending });
  }

  return {
    run: (task, signal) => queue.add(task, signal === undefined ? {} : { signal }).finally(tell),
    tell,
  };
}
