/** The clock: the pipeline's only source of time. */
export interface Clock {
  /** The wall clock, in ms since the epoch. It never decides an order. */
  nowMs(): number;
  /**
   * For durations and expiry, in ms from an arbitrary start. It never goes back, and it continues while the machine is suspended,
   * so nothing that was held meanwhile looks fresh. It may run ahead, which makes what is held expire early.
   */
  monotonicMs(): number;
  /**
   * For watching what other processes do, in ms from an arbitrary start. It never goes back and never runs ahead: it stands still while
   * the machine is suspended, and a wall clock that is set forward does not move it. So nothing that lives looks dead.
   */
  steadyMs(): number;
  /** Resolves after `delayMs`; rejects with the signal's reason if it is aborted earlier. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}
