/** The clock: Tally's only source of time. */
export interface Clock {
  /** The wall clock, in ms since the epoch. It is never used to decide an order. */
  nowMs(): number;
  /**
   * For durations and expiry, in ms from an arbitrary start. It never goes back, and it continues while the machine is suspended, so
   * an answer that was held during a suspension does not look fresh. It may run ahead, and then held answers expire early.
   */
  monotonicMs(): number;
  /**
   * For watching other processes, in ms from an arbitrary start. It never goes back and never runs ahead: it stops while the
   * machine is suspended, and setting the wall clock forward does not move it. So a process that is alive never looks dead.
   */
  steadyMs(): number;
  /** Resolves after `delayMs`; rejects with the signal's reason if it is aborted earlier. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}
