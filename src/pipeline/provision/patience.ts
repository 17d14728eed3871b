/**
 * What follows a write that failed. Nothing sends it again as it was: a document that was refused with "another change is under
 * way" is old, and one whose answer was lost may be stored already. The caller that gets such a refusal waits, reads AWS again, makes a
 * new plan of what is there then, and so finds out what is left to write.
 */
import { FaultError, type FaultCode } from '../../domain/fault.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { Clock } from '../ports/clock.ts';

/** What keeps AWS from taking a write for the moment is over within seconds. */
const RETRY_MS = 2_000;
/** S3 validates a destination by the policies that it knows, which may be a minute old. */
const POLICY_MS = 60_000;
/** As often as the SDK asks. What lasts longer is reported. */
const FAULTS_MAX = 3;
/** No answer, or one that asks for a later try. */
const PASSING: ReadonlySet<FaultCode> = new Set(['s3.unavailable', 's3.throttled', 'connect.unavailable']);

/**
 * Waits until the write may be planned again. False: the pass is too short for that. Throws the error if waiting does not help.
 * `policyChangedAtMs`: when a policy of the destination was last changed.
 */
export type Outwait = (error: unknown, policyChangedAtMs?: number) => Promise<boolean>;

/** Creates the function for one pass. */
export function createOutwait(
  clock: Clock,
  { endsMs, signal }: { readonly endsMs: number; readonly signal?: AbortSignal | undefined },
): Outwait {
  let faults = 0;
  return async function outwait(error, policyChangedAtMs = -Infinity) {
    signal?.throwIfAborted();
    const isFault = error instanceof FaultError && PASSING.has(error.code);
    if (isFault) faults += 1;
    if (isFault ? faults >= FAULTS_MAX : !isRefusal(error, clock.nowMs() - policyChangedAtMs)) throw error;
    if (clock.monotonicMs() + RETRY_MS > endsMs) {
      if (isFault) throw error;
      return false;
    }
    await clock.sleep(RETRY_MS, signal);
    return true;
  };
}

/** Whether AWS has understood the write and takes it later. */
function isRefusal(error: unknown, policyAgeMs: number): boolean {
  if (!(error instanceof RequestError)) return false;
  return error.code === 'connect.busy' || (error.code === 'connect.destination' && policyAgeMs <= POLICY_MS);
}
