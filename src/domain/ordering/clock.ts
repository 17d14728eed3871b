/** Clocks: microseconds since the epoch, used as a document's external version. A clock is about 1.8e15, so it is a safe integer. */

const FRACTION_UNITS = 4_294_967_296; // 2^32: the fraction is binary

/**
 * The clock in a sequencer, or undefined when its format is unknown. Observed format: two hex digits (usually 00,
 * sometimes 80), eight of Unix seconds, eight of binary fraction; older sequencers lack the first two digits. Seconds and
 * fraction are read separately, because together they exceed 2^53.
 */
export function sequencerClock(sequencer: string): number | undefined {
  if (!/^([0-9A-Fa-f]{2})?[0-9A-Fa-f]{16}$/.test(sequencer)) return undefined;
  const seconds = Number.parseInt(sequencer.slice(-16, -8), 16);
  const fraction = Number.parseInt(sequencer.slice(-8), 16);
  // both steps are exact: fraction × 10^6 is below 2^53, and the division is by a power of two
  return seconds * 1_000_000 + Math.floor((fraction * 1_000_000) / FRACTION_UNITS);
}

/** The clock of a moment in milliseconds. */
export function clockOfMs(ms: number): number {
  return Math.max(0, Math.floor(ms * 1_000));
}

/** The moment of a clock, in milliseconds (with a fraction). */
export function msOfClock(clock: number): number {
  return clock / 1_000;
}
