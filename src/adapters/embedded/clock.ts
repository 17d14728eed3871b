/**
 * The one clock of the embedded AWS: sequencers, event times, SentTimestamp and Date headers all come from it, so that
 * they agree with each other whatever this machine's clock does. It never goes back, neither when the machine's clock is
 * set back (it then runs on at its own pace until the machine's clock has caught up) nor over a restart.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { Clock } from '../../pipeline/ports/clock.ts';

const MICROSECONDS_PER_SECOND = 1_000_000;
const FRACTION_UNITS = 4_294_967_296; // 2^32: a sequencer's fraction is binary

/** How far ahead moments are reserved on disk: one small write a second at most, and at most one second ahead after a crash. */
const RESERVED_AHEAD = MICROSECONDS_PER_SECOND;

export interface EmbeddedClock {
  /** Never earlier than a moment that was given. Ms since the epoch. */
  nowMs(): number;
  /** A moment later than all given before, also by earlier processes on the same file: microseconds since the epoch. Throws when it cannot be kept on disk. */
  next(): number;
  /** Keeps the last moment, so that the next start need not skip what was reserved. */
  close(): void;
}

/** Opens the clock whose last moment is kept in `file`. Throws when the file is there and is not one. */
export function openEmbeddedClock(clock: Pick<Clock, 'nowMs' | 'monotonicMs'>, file: string): EmbeddedClock {
  let last = readMark(file);
  let reserved = last;
  let anchor = { atMs: last / 1_000, monotonicMs: clock.monotonicMs() };

  function nowMs(): number {
    const monotonicMs = clock.monotonicMs();
    const steadyMs = anchor.atMs + (monotonicMs - anchor.monotonicMs);
    const wallMs = clock.nowMs();
    if (wallMs > steadyMs) anchor = { atMs: wallMs, monotonicMs };
    return Math.max(wallMs, steadyMs);
  }

  return {
    nowMs,
    next: () => {
      const moment = Math.max(last + 1, Math.floor(nowMs() * 1_000));
      if (moment > reserved) {
        writeMark(file, moment + RESERVED_AHEAD);
        reserved = moment + RESERVED_AHEAD;
      }
      last = moment;
      return moment;
    },
    close: () => {
      if (last < reserved) writeMark(file, last);
      reserved = last;
    },
  };
}

/** A moment in the form of S3's sequencers: `00`, eight hex digits of Unix seconds, eight of binary fraction. */
export function sequencerOf(moment: number): string {
  const seconds = Math.floor(moment / MICROSECONDS_PER_SECOND);
  // rounded up: reading it rounds down, which gives the same microsecond again
  const fraction = Math.ceil(((moment % MICROSECONDS_PER_SECOND) * FRACTION_UNITS) / MICROSECONDS_PER_SECOND);
  return `00${hex8(seconds)}${hex8(fraction)}`;
}

function hex8(value: number): string {
  return value.toString(16).toUpperCase().padStart(8, '0');
}

function readMark(file: string): number {
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return 0;
    throw error;
  }
  if (!/^\d{1,16}$/.test(text)) throw new Error(`${file} does not hold a moment; remove the file to begin at the present time`);
  return Number(text);
}

/** Whole or not at all, also when the power fails. */
function writeMark(file: string, moment: number): void {
  writeFileSync(`${file}.new`, `${moment}\n`, { flush: true });
  renameSync(`${file}.new`, file);
}
