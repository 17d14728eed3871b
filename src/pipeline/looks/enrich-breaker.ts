/**
 * The breaker of enrichment, one for each bucket: while S3 does not answer for a bucket, its documents are written plain
 * at once, instead of each of them waiting in the held set that all buckets share.
 *
 *            failures in a row             after the pause
 *   trying ────────────────────► paused ──────────────────► one tries ─── answer ───► trying
 *                                   ▲                            │ failure
 *                                   └────────────────────────────┘
 */
import type { Clock } from '../ports/clock.ts';

/** More than passing trouble with single requests, and fewer than the places among the HEADs. */
const FAILURES_MAX = 5;
/** As often as the fault gate's probe asks. */
const PAUSE_MS = 5_000;

export interface EnrichBreaker {
  isPaused(bucket: string): boolean;
  /** Whether a request may be sent now. After a pause the first who asks may, and nobody else for as long again. */
  admits(bucket: string): boolean;
  /** S3 answered, be it with a refusal. */
  answered(bucket: string): void;
  /** S3 did not answer in time, or for itself: unavailable, throttled, without credentials. */
  failed(bucket: string): void;
}

/** Creates the breaker; nothing is paused. It remembers failing buckets only, so no more than are connected. */
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
