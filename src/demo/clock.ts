/**
 * The clock of the embedded AWS. Sequencers, event times, SentTimestamp and Date headers all come from it, so that they
 * agree with each other even if this machine's clock is changed. It never goes back, neither over a restart nor when the
 * machine's clock is set back: then it continues at its own pace until the machine's clock has caught up.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { Clock } from '../process/clock.ts';

const MICROSECONDS_PER_SECOND = 1_000_000;
const FRACTION_UNITS = 4_294_967_296; // 2^32, because the fraction in a sequencer is binary

/** How far ahead moments are reserved on disk, in microseconds. It costs at most one small write per second, and after a crash the clock is at most one second ahead. */
const RESERVED_AHEAD = MICROSECONDS_PER_SECOND;

export interface EmbeddedClock {
  /** The time in ms since the epoch. It is never earlier than a moment that was returned before. */
  nowMs(): number;
  /** A moment in microseconds since the epoch that is later than all returned before, also by earlier processes with the same file. Throws if it cannot be stored on disk. */
  next(): number;
  /** Stores the last moment, so that the next start need not skip the reserved moments. */
  close(): void;
}

/** Opens the clock whose last moment is stored in `file`. Throws if the file exists and does not contain a moment. */
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

function readMark(file: string): number {
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return 0;
    throw error;
  }
  if (!/^\d{1,16}$/.test(text)) throw new Error(`${file} does not contain a moment; remove the file to begin at the present time`);
  return Number(text);
}

/** Writes the file completely or not at all, even if the power fails. */
function writeMark(file: string, moment: number): void {
  writeFileSync(`${file}.new`, `${moment}\n`, { flush: true });
  renameSync(`${file}.new`, file);
}
