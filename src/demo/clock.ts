/**
 * The clock of the embedded AWS. Sequencers, event times, SentTimestamp and Date headers all come from it, so that they agree with
 * each other. It does not go back while the process lives: when the machine's clock is set back, it continues at its own pace until
 * the machine's clock has caught up.
 */
import type { Clock } from '../process/clock.ts';

const MICROSECONDS_PER_SECOND = 1_000_000;
const FRACTION_UNITS = 4_294_967_296; // 2^32, because the fraction in a sequencer is binary

export interface EmbeddedClock {
  /** The time in ms since the epoch. It is never earlier than a moment that was returned before. */
  nowMs(): number;
  /** A moment in microseconds since the epoch that is later than all returned before. */
  next(): number;
}

export function createEmbeddedClock(clock: Pick<Clock, 'nowMs' | 'monotonicMs'>): EmbeddedClock {
  let last = 0;
  let anchor = { atMs: 0, monotonicMs: clock.monotonicMs() };

  function nowMs(): number {
    const monotonicMs = clock.monotonicMs();
    const steadyMs = anchor.atMs + (monotonicMs - anchor.monotonicMs);
    const wallMs = clock.nowMs();
    if (wallMs > steadyMs) anchor = { atMs: wallMs, monotonicMs };
    return Math.max(wallMs, steadyMs);
  }

  return {
    nowMs,
    next: () => (last = Math.max(last + 1, Math.floor(nowMs() * 1_000))),
  };
}

/** A moment in the form of S3's sequencers: `00`, eight hexadecimal digits of Unix seconds, eight of the binary fraction. */
export function sequencerOf(moment: number): string {
  const seconds = Math.floor(moment / MICROSECONDS_PER_SECOND);
  // rounded up, because reading it rounds down, so that the result is the same microsecond
  const fraction = Math.ceil(((moment % MICROSECONDS_PER_SECOND) * FRACTION_UNITS) / MICROSECONDS_PER_SECOND);
  return `00${hex8(seconds)}${hex8(fraction)}`;
}

function hex8(value: number): string {
  return value.toString(16).toUpperCase().padStart(8, '0');
}
