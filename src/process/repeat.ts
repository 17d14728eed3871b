import { faultOf } from '../base/fault.ts';
import type { Clock } from './clock.ts';
import type { Telemetry } from './telemetry.ts';

export interface Repetition {
  /** What the work does, for the log line of a failure. */
  readonly name: string;
  readonly intervalMs: number;
  /** Whether it begins at once. Default: after one interval. */
  readonly isAtOnce?: boolean;
  readonly signal: AbortSignal;
}

/** Runs `work` again and again until the signal is aborted, with this interval between an end and the next start. A failure is only reported. */
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
    // only the abort of the signal ends the loop; every other end must be reported
    if (!signal.aborted) telemetry.warn('a repeated task ended unexpectedly', { name, reason: faultOf(error).reason });
  });
}
