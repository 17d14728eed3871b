/**
 * Observes documents again that have been unsettled for long (rule 4): the message that should have settled them was lost, or
 * an observation was too early to be final.
 */
import { LRUCache } from 'lru-cache';
import type { BucketRecord } from '../records/bucket.ts';
import { clockOfMs } from '../ordering/clock.ts';
import { isAnyHeld } from '../observing/stored-gaps.ts';
import type { ObjectMaintenance, WithPorts } from '../store/store.ts';
import type { Clock } from '../process/clock.ts';
import type { ObserveAgain } from './observe-again.ts';
import type { DueOf, Visit } from '../observing/sweep.ts';

/** A settle is due 43 s after its event, and a message is deferred by 15 min at most: an older document has usually lost its message. */
const UNSETTLED_AGE_MS = 600_000;
const PAGE_DOCUMENTS = 100;
/** Observations of one bucket in one run. At 60 ms each and eight at once they take less than 10 s of the five minutes between runs. */
const OBSERVATIONS_MAX = 1_000;
/** How long a visit may take when S3 is slow. A run has four minutes for all buckets. */
const VISIT_MAX_MS = 60_000;
/** Buckets whose position is remembered. A forgotten bucket starts from its first key. */
const POSITIONS_MAX = 1_000;

/** Creates the function that decides, by one request for all, which buckets are visited. Where that says nothing, each one is. */
export function createUnsettledDue({
  maintenance,
  clock,
}: {
  readonly maintenance: Pick<ObjectMaintenance, 'unsettledBuckets'>;
  readonly clock: Pick<Clock, 'nowMs'>;
}): DueOf {
  return async (signal) => {
    const found = await maintenance.unsettledBuckets(clockOfMs(clock.nowMs() - UNSETTLED_AGE_MS), signal).catch(() => {
      signal.throwIfAborted();
      // a bucket whose own request fails as well reports it
      return undefined;
    });
    return ({ bucket }) => found?.has(bucket) ?? true;
  };
}

/**
 * Creates the visit of one bucket: at most 1,000 observations, and one minute; the next visit by this process continues after them.
 * Nothing is observed while deletions of the bucket wait for a person.
 */
export function createVisitUnsettled({
  state,
  maintenance,
  observeAgain,
  clock,
}: WithPorts<'state' | 'clock'> & {
  readonly maintenance: Pick<ObjectMaintenance, 'unsettled'>;
  readonly observeAgain: ObserveAgain;
}): Visit {
  /** The key after which a visit stopped at a bound, so that objects which can never be read, or slowly, do not keep others from being observed. */
  const positions = new LRUCache<string, string>({ max: POSITIONS_MAX });

  async function pageOf({ bucket }: BucketRecord, page: Parameters<typeof maintenance.unsettled>[1], signal: AbortSignal) {
    const documents = await maintenance.unsettled(bucket, page, signal);
    // they may be among those that a person decides about: re-indexes compare the others
    return documents.length > 0 && (await isAnyHeld(state, { bucket })) ? [] : documents;
  }

  return async function visitUnsettled(bucket, signal) {
    const clockBelow = clockOfMs(clock.nowMs() - UNSETTLED_AGE_MS);
    const untilMs = clock.monotonicMs() + VISIT_MAX_MS;
    const isOver = (): boolean => signal.aborted || clock.monotonicMs() >= untilMs;
    let after = positions.get(bucket.bucket) ?? '';
    positions.delete(bucket.bucket);
    let observed = 0;
    while (observed < OBSERVATIONS_MAX && !isOver()) {
      const documents = await pageOf(bucket, { clockBelow, after, limit: PAGE_DOCUMENTS }, signal);
      const count = await observeAgain(bucket, documents, isOver);
      observed += count;
      if (count === documents.length && documents.length < PAGE_DOCUMENTS) return observed;
      after = documents[count - 1]?.key ?? after;
    }
    positions.set(bucket.bucket, after);
    signal.throwIfAborted();
    return observed;
  };
}
