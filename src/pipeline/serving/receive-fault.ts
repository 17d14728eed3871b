/** Why a role cannot receive, for its readiness. */
import type { Fault, FaultError } from '../../domain/fault.ts';
import type { Telemetry } from '../ports/telemetry.ts';

export interface ReceiveFault {
  /** SQS answered a receive. */
  readonly polled: () => void;
  /** A receive failed. Reported once for each reason in a row, since every poller fails for the same one. */
  readonly failed: (fault: FaultError) => void;
  /** Why the last receive failed; undefined if it did not. */
  readonly current: () => Fault | undefined;
}

/** Creates the memory of a role that has received nothing yet. `operation` names the receives in the log. */
export function createReceiveFault(operation: string, telemetry: Pick<Telemetry, 'requestFailed'>): ReceiveFault {
  let last: Fault | undefined;
  return {
    polled() {
      last = undefined;
    },
    failed({ code, reason }) {
      if (last?.reason !== reason) telemetry.requestFailed(operation, code, reason);
      last = { code, reason };
    },
    current: () => last,
  };
}
