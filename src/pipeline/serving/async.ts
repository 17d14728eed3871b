/** Waits that end before the work does. The work itself is never stopped by them. */
import type { Clock } from '../ports/clock.ts';

/** Resolves or rejects as `work` does, or rejects with the signal's reason when it is aborted first. */
export async function inTime<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

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
