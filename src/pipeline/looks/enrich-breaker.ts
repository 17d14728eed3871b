/**
 * The circuit breaker of enrichment, one for each bucket. While S3 does not answer for a bucket, its documents are written
 * without enrichment at once and do not wait in the held set that all buckets share.
 *
 *             failures in a row             after the pause
 *   closed ────────────────────► paused ──────────────────► one request ─── answer ───► closed
 *                                   ▲                            │ failure
 *                                   └────────────────────────────┘
 */
import type { Clock } from '../ports/clock.ts';

/** More than a few requests that fail by chance, and fewer than the slots of the HEAD queue. */
const FAILURES_MAX = 5;
/** As long as the interval of the fault gate's probes. */
const PAUSE_MS = 5_000;

export interface EnrichBreaker {
  isPaused(bucket: string): boolean;
  /** Whether a request may be sent now. After a pause one caller may send a request; the others wait for another pause. */
  admits(bucket: string): boolean;
  /** S3 answered, even if it refused the request. */
  answered(bucket: string): void;
  /** S3 did not answer in time, or the fault was not the object's own (S3 is unavailable or throttles, no credentials, the bucket). */
  failed(bucket: string): void;
}

/** Creates the breaker. It remembers failing buckets only, so its memory is bounded by the connected buckets. */
export function createEnrichBreaker({ clock }: { readonly clock: Clock }): EnrichBreaker {
  const failing = new Map<string, { failures: number; pausedUntilMs: number }>();

  return {
    isPaused: (bucket) => (failing.get(bucket)?.pausedUntilMs ?? 0) > clock.monotonicMs(),
    admits(bucket) {
      const state = failing.get(bucket);
      if (state === undefined || state.failures < FAILURES_MAX) return true;
      if (state.pausedUntilMs > clock.monotonicMs()) return false;
      state.pausedUntilMs = clock.monotonicMs() + PAUSE_MS;
      return true;
    },
    answered: (bucket) => void failing.delete(bucket),
    failed(bucket) {
      const state = failing.get(bucket) ?? { failures: 0, pausedUntilMs: 0 };
      state.failures += 1;
      if (state.failures >= FAILURES_MAX) state.pausedUntilMs = clock.monotonicMs() + PAUSE_MS;
      failing.set(bucket, state);
    },
  };
}
