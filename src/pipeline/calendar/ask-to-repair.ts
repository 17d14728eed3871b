/**
 * Asks whether a bucket can be re-indexed now, before a job is begun for its gaps: S3 for one key of its listing, and its index
 * for a write that stores nothing. A job that begins and cannot do anything would occupy the bucket and fail again and again.
 */
import type { BucketRecord } from '../../domain/bucket.ts';
import { FaultError, faultOf, type Fault } from '../../domain/fault.ts';
import type { Clock } from '../ports/clock.ts';
import type { ObjectIndex } from '../ports/object-index.ts';
import type { BucketListing } from '../ports/storage.ts';
import { withDeadline } from '../serving/async.ts';

/** What does not answer within this time refuses: one bucket must not delay the gaps of the others. */
const ANSWER_MAX_MS = 10_000;

/** Resolves with the fault that keeps a re-index under the prefix from beginning, or undefined. Rejects with the signal's reason. */
export type AskToRepair = (bucket: BucketRecord, prefix: string, signal: AbortSignal) => Promise<Fault | undefined>;

interface AskDependencies {
  readonly listing: BucketListing;
  readonly objects: Pick<ObjectIndex, 'probeBucket'>;
  readonly clock: Clock;
}

/** Creates the question. */
export function createAskToRepair({ listing, objects, clock }: AskDependencies): AskToRepair {
  return async function askToRepair(bucket, prefix, signal) {
    const late = (): Error => new FaultError('s3.unavailable', `${bucket.bucket}: no answer within ${ANSWER_MAX_MS / 1_000} s`);
    const ask = async (either: AbortSignal): Promise<void> => {
      // one request: that it is answered suffices, whether the page has a key or not
      await listing.page(bucket, { prefix, after: '', limit: 1, from: 'start' }, either);
      await objects.probeBucket(bucket.bucket, either);
    };
    try {
      await withDeadline(clock, { maxMs: ANSWER_MAX_MS, late }, ask, signal);
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      return faultOf(error);
    }
  };
}
