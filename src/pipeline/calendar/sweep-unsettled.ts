/**
 * Looks again at documents that are long unsettled (rule 4): the message that was to settle them was lost, or they were
 * written by a check that came too early to be final.
 */
import { clockOfMs } from '../../domain/ordering/clock.ts';
import type { ObjectMaintenance } from '../ports/object-index.ts';
import type { Clock } from '../ports/clock.ts';
import type { LookAgain } from './look-again.ts';
import type { Visit } from './sweep.ts';

/** A settle is due 43 s after its event, and a message is deferred for 15 min at most: what is older is usually orphaned. */
const UNSETTLED_AGE_MS = 600_000;
const PAGE_DOCUMENTS = 100;
/** Of one bucket in one run: at 60 ms and eight at once less than ten seconds, of the five minutes between runs. */
const LOOKS_MAX = 1_000;
/** Buckets whose place is remembered: what is forgotten begins anew. */
const PLACES_MAX = 1_000;

interface UnsettledDependencies {
  readonly maintenance: Pick<ObjectMaintenance, 'unsettled'>;
  readonly lookAgain: LookAgain;
  readonly clock: Clock;
}

/** Creates the visit to one bucket: at most 1,000 looks, of which the next visit of this process goes on. */
export function createVisitUnsettled({ maintenance, lookAgain, clock }: UnsettledDependencies): Visit {
  /** Where a visit stopped at its bound: objects that can never be read must not keep the others from their turn. */
  const places = new Map<string, string>();

  return async function visitUnsettled(bucket, signal) {
    const clockBelow = clockOfMs(clock.nowMs() - UNSETTLED_AGE_MS);
    let after = places.get(bucket.bucket) ?? '';
    places.delete(bucket.bucket);
    let looks = 0;
    while (looks < LOOKS_MAX) {
      const documents = await maintenance.unsettled(bucket.bucket, { clockBelow, after, limit: PAGE_DOCUMENTS }, signal);
      await lookAgain(bucket, documents);
      looks += documents.length;
      const last = documents.length < PAGE_DOCUMENTS ? undefined : documents.at(-1)?.key;
      if (last === undefined) return looks;
      signal.throwIfAborted();
      after = last;
    }
    if (places.size >= PLACES_MAX) places.clear();
    places.set(bucket.bucket, after);
    return looks;
  };
}
