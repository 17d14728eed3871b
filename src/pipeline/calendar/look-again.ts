/** Checks documents again, through the live path's observer, as observe hints at the documents' own clocks (rules 4 and 12). */
import type { BucketRecord } from '../../domain/bucket.ts';
import type { ObjectDocument } from '../../domain/documents/document.ts';
import { backgroundOf, FaultError, type FaultCode } from '../../domain/fault.ts';
import { hintOfTie } from '../../domain/ordering/hint.ts';
import type { Observe } from '../looks/observer.ts';

/**
 * Sends a HEAD for each key and writes the answer, unless something newer is stored by then. All documents are held in memory,
 * so callers pass a page. A fault of one object is left to the next sweep; throws a fault of the bucket or of all buckets.
 */
export type LookAgain = (bucket: BucketRecord, documents: readonly ObjectDocument[]) => Promise<void>;

/** Creates the function over an observer, which bounds the HEADs at once. */
export function createLookAgain(observe: Observe): LookAgain {
  return async function lookAgain(bucket, documents) {
    const answers = await Promise.all(
      documents.map(({ key, clock, deleted, event_name, event_time }) =>
        observe({
          bucket,
          key,
          // T is the document's clock, so the write at D − M is as new as this HEAD, and settled if it comes late enough
          hint: hintOfTie(clock),
          cause: {
            ...(event_name !== undefined && { eventName: event_name }),
            ...(event_time !== undefined && { eventTimeMs: Date.parse(event_time) }),
          },
          source: 'check',
          // a tombstone that is looked at again can lose nothing
          reportsDeletion: deleted,
        }),
      ),
    );
    for (const answer of answers) {
      if (answer.kind === 'fault' && endsVisit(answer.fault.code)) throw new FaultError(answer.fault.code, answer.fault.reason);
    }
  };
}

/** Whether other objects of the bucket would fail as well. */
function endsVisit(code: FaultCode): boolean {
  switch (backgroundOf(code)) {
    case 'stop':
    case 'wait':
    case 'fail':
      return true;
    case 'skip':
    case 'retry':
      return false;
  }
}
