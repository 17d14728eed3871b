/** Looks at documents again as at an observe hint of their own clock (rules 4 and 12): by the live path's own observer. */
import type { BucketRecord } from '../../domain/bucket.ts';
import type { ObjectDocument } from '../../domain/documents/document.ts';
import { FaultError, scopeOf } from '../../domain/fault.ts';
import { hintOfTie } from '../../domain/ordering/hint.ts';
import type { Observe } from '../looks/observer.ts';

/**
 * Asks S3 for each key and writes what it says, unless something newer is there by then. What fails for one object alone
 * is left to the next sweep; throws the fault that concerns the bucket or everything. Holds all documents at once: a
 * page of them.
 */
export type LookAgain = (bucket: BucketRecord, documents: readonly ObjectDocument[]) => Promise<void>;

/** Creates the step over an observer, which bounds how many are asked for at once. */
export function createLookAgain(observe: Observe): LookAgain {
  return async function lookAgain(bucket, documents) {
    const answers = await Promise.all(
      documents.map(({ key, clock, event_name, event_time }) =>
        observe({
          bucket,
          key,
          // T is the document's clock: what is written at D − M is as new as this look, and settled if it is late enough
          hint: hintOfTie(clock),
          cause: {
            ...(event_name !== undefined && { eventName: event_name }),
            ...(event_time !== undefined && { eventTimeMs: Date.parse(event_time) }),
          },
          source: 'check',
        }),
      ),
    );
    for (const answer of answers) {
      if (answer.kind === 'fault' && scopeOf(answer.fault.code) !== 'own') throw new FaultError(answer.fault.code, answer.fault.reason);
    }
  };
}
