/** Waits that can end before the work does. They never stop the work itself. */
import { inTime } from '../base/in-time.ts';
import type { Clock } from './clock.ts';

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
    ended.abort(new Error('the wait has ended'));
  }
}

/** How long work may take, and what it is rejected with after that. */
export interface Deadline {
  readonly maxMs: number;
  readonly late: () => Error;
}

/**
 * Resolves or rejects as `work` does, or rejects with the error of the deadline or the signal's reason when that comes first. The
 * work is given a signal that is aborted then. It is not waited for if it does not listen.
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
    ended.abort(new Error('the work has ended'));
  }
}
