/** Clocks: microseconds since the epoch, a document's external version (about 1.8e15, so a safe integer). */

const FRACTION_UNITS = 4_294_967_296; // 2^32: the fraction is binary

/**
 * The clock that a sequencer states, or undefined when its form is not known. Real form: two hex digits, eight of Unix
 * seconds, eight of binary fraction (the first byte is usually 00, sometimes 80); older ones lack the first byte.
 * The halves are read apart, since the whole exceeds 2^53.
 */
export function sequencerClock(sequencer: string): number | undefined {
  if (!/^([0-9A-Fa-f]{2})?[0-9A-Fa-f]{16}$/.test(sequencer)) return undefined;
  const seconds = Number.parseInt(sequencer.slice(-16, -8), 16);
  const fraction = Number.parseInt(sequencer.slice(-8), 16);
  // fraction × 10^6 < 2^53, and the division is by a power of two: both exact
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
