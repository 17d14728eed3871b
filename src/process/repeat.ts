import { faultOf } from '../base/fault.ts';
import type { Clock } from './clock.ts';
import type { Telemetry } from './telemetry.ts';

export interface Repetition {
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
