import { faultOf } from '../../domain/fault.ts';
import type { Clock } from '../ports/clock.ts';
import type { Telemetry } from '../ports/telemetry.ts';

export interface Repetition {
  /** What it does, for the log line of a failure. */
  readonly name: string;
  readonly intervalMs: number;
  readonly signal: AbortSignal;
}

/** Runs `work` every interval (counted from its end) until the signal is aborted. A failure is told and changes nothing else. */
export function repeat(
  { clock, telemetry }: { readonly clock: Clock; readonly telemetry: Telemetry },
  { name, intervalMs, signal }: Repetition,
  work: (signal: AbortSignal) => Promise<void>,
): void {
  const loop = async (): Promise<void> => {
    while (!signal.aborted) {
      await clock.sleep(intervalMs, signal);
      await work(signal).catch((error: unknown) => {
        if (signal.aborted) return;
        const fault = faultOf(error);
        telemetry.requestFailed(name, fault.code, fault.reason);
      });
    }
  };
  loop().catch((error: unknown) => {
    // the sleep ends by the stop; anything else must be seen
    if (!signal.aborted) telemetry.warn('a repeated task ended', { name, reason: faultOf(error).reason });
  });
}
