/** Clocks: microseconds since the epoch, used as a document's external version. A clock is about 1.8e15, so it is a safe integer. */

/** The clock of a moment in milliseconds. */
export function clockOfMs(ms: number): number {
  return Math.max(0, Math.floor(ms * 1_000));
}

/** The moment of a clock, in milliseconds (with a fraction). */
export function msOfClock(clock: number): number {
  return clock / 1_000;
}
