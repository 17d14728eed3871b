/** Waits that may end before the work does, and work on many things at a time. */
import { inTime } from '../base/in-time.ts';
import type { Clock } from './clock.ts';
import { faultOf } from '../base/fault.ts';
import type { Telemetry } from './telemetry.ts';

/** The reason for aborting a sleep that nobody waits for any more. It is made once, because nobody reads its stack. */
const ENDED = new Error('the wait has ended');

/** Returns whether `work` ended before the signal was aborted. Rejects if the work rejects first. */
export function endedBy(work: Promise<void>, signal: AbortSignal): Promise<boolean> {
  return inTime(
    work.then(() => true),
    signal,
  ).catch((error: unknown) => {
    if (signal.aborted && error === signal.reason) return false;
    throw error;
  });
}

/** Returns whether `work` ended within `delayMs`. Rejects if the work rejects first. */
export async function endedWithin(clock: Pick<Clock, 'sleep'>, delayMs: number, work: Promise<void>): Promise<boolean> {
  const ended = new AbortController();
  try {
    return await Promise.race([work.then(() => true), clock.sleep(delayMs, ended.signal).then(() => false)]);
  } finally {
    ended.abort(ENDED);
  }
}

/** How long work may take, and the error to reject with when it takes longer. */
interface Deadline {
  readonly maxMs: number;
  readonly late: () => Error;
}

/**
 * Settles like `work`, unless the deadline passes or the signal aborts first: then it rejects with the deadline's error or the
 * signal's reason, and the signal that `work` was given aborts. It does not wait for work that ignores that signal.
 */
export async function withDeadline<Result>(
  clock: Pick<Clock, 'sleep'>,
  { maxMs, late }: Deadline,
  work: (signal: AbortSignal) => Promise<Result>,
  signal?: AbortSignal,
): Promise<Result> {
  const overdue = new AbortController();
  const ended = new AbortController();
  clock.sleep(maxMs, ended.signal).then(
    () => overdue.abort(late()),
    () => undefined,
  );
  const either = signal === undefined ? overdue.signal : AbortSignal.any([signal, overdue.signal]);
  try {
    return await inTime(work(either), either);
  } finally {
    ended.abort(ENDED);
  }
}

/** Visits each item, `atOnce` at a time. Rejects with what a visit throws. */
export async function sideBySide<Item>(items: readonly Item[], atOnce: number, visit: (item: Item) => Promise<void>): Promise<void> {
  const left = items.values();
  async function visitNext(): Promise<void> {
    for (const item of left) await visit(item);
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, visitNext));
}

// ── work that is repeated ──────────────────────────────────────────────────────────────────────────────────────────

interface Repetition {
  /** What the work does, for the log line of a failure. */
  readonly name: string;
  readonly intervalMs: number;
  /** Whether the first run begins at once. Default: it begins after one interval. */
  readonly isAtOnce?: boolean;
  readonly signal: AbortSignal;
}

/** Runs `work` repeatedly until the signal is aborted, and waits for the interval between the end of a run and the next start. A failed run is reported and does not stop the repetition. */
export function repeat(
  { clock, telemetry }: { readonly clock: Clock; readonly telemetry: Telemetry },
  { name, intervalMs, isAtOnce = false, signal }: Repetition,
  work: (signal: AbortSignal) => Promise<void>,
): void {
  const loop = async (): Promise<void> => {
    for (let isFirst = isAtOnce; !signal.aborted; isFirst = false) {
      if (!isFirst) await clock.sleep(intervalMs, signal);
      await work(signal).catch((error: unknown) => {
        if (!signal.aborted) telemetry.requestFailed(name, error);
      });
    }
  };
  loop().catch((error: unknown) => {
    // the loop should end only when the signal is aborted, so any other end is reported
    if (!signal.aborted) telemetry.warn('a repeated task ended unexpectedly', { name, reason: faultOf(error).reason });
  });
}
