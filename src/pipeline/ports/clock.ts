/** Time: the only source of it for the pipeline. */
export interface Clock {
  /** Wall clock, ms since the epoch. Never decides an order. */
  nowMs(): number;
  /** Monotonic clock, ms from an arbitrary start: for durations and expiry. */
  monotonicMs(): number;
  /** Resolves after `delayMs`; rejects with the signal's reason when aborted before. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}
