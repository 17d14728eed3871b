/** The limits of a registry for operations that a process calls itself, for a program that may ask for much at the same moment. */
import { operationsOf, type AnyOperation, type Operations, type VerbName } from '../api/contract.ts';
import type { Clock } from '../pipeline/ports/clock.ts';
import { withDeadline } from '../pipeline/serving/async.ts';
import { createRunVerb, tooSlow, VERB_TIMEOUT_MS } from './searches.ts';

/** The operations, a few searches at a time and none longer than at a registry. */
export function withinLimits(operations: Operations, clock: Pick<Clock, 'sleep'>): Operations {
  const runVerb = createRunVerb();
  const byName: Readonly<Record<VerbName, AnyOperation>> = operations;
  const deadline = { maxMs: VERB_TIMEOUT_MS, late: () => tooSlow(VERB_TIMEOUT_MS) };
  return operationsOf(({ operation }) => async (request, { signal, ...context }) => {
    const run = (limit: AbortSignal) => runVerb(operation, () => byName[operation](request, { ...context, signal: limit }), limit);
    return withDeadline(clock, deadline, run, signal);
  });
}
