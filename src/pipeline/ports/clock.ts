/** The clock: the pipeline's only source of time. */
export interface Clock {
  /** The wall clock, in ms since the epoch. It never decides an order. */
  nowMs(): number;
  /** The monotonic clock, in ms from an arbitrary start, for durations and expiry. */
  monotonicMs(): number;
  /** Resolves after `delayMs`; rejects with the signal's reason if it is aborted earlier. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}
