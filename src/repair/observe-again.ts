/** Observes the keys of documents again, through the live path's observer, as observe hints at the documents' own clocks (rules 4 and 12). */
import type { BucketRecord } from '../records/bucket.ts';
import type { ObjectDocument } from '../ordering/document.ts';
import { jobAnswerOf, FaultError, type Fault, type FaultCode } from '../base/fault.ts';
import { hintOfTie } from '../ordering/hint.ts';
import type { ObserveAnswer, Observe } from '../observing/observer.ts';

/**
 * Sends a HEAD for each key and writes the answer, unless something newer is stored by then. All documents are held in memory,
 * so callers pass a page. Ends early when `isOver` returns true; resolves with how many documents were observed, from the first
 * one on. A fault of one object is left to the next sweep; throws a fault of the bucket or of all buckets.
 */
export type ObserveAgain = (bucket: BucketRecord, documents: readonly ObjectDocument[], isOver?: () => boolean) => Promise<number>;

/** Twice as many as the HEADs that run at the same time, since the others wait for their writes. After a fault of the bucket, or at the end of a visit, no more than these have to end. */
const OBSERVATIONS_AT_ONCE = 16;

/** Creates the function over an observer, which bounds the HEADs at once. */
export function createObserveAgain(observe: Observe): ObserveAgain {
  function observeDocument(bucket: BucketRecord, { key, clock, deleted, event_name, event_time }: ObjectDocument): Promise<ObserveAnswer> {
    return observe({
      bucket,
      key,
      // T is the document's clock, so the write at D − M is as new as this HEAD, and settled if it comes late enough
      hint: hintOfTie(clock),
      cause: {
        ...(event_name !== undefined && { eventName: event_name }),
        ...(event_time !== undefined && { eventTimeMs: Date.parse(event_time) }),
      },
      source: 'check',
      // a tombstone that is observed again can lose nothing
      reportsDeletion: deleted,
    });
  }

  return async function observeAgain(bucket, documents, isOver = () => false) {
    let next = 0;
    let fault: Fault | undefined;
    async function observeNext(): Promise<void> {
      for (let document = documents[next]; document !== undefined && fault === undefined && !isOver(); document = documents[next]) {
        next += 1;
        const answer = await observeDocument(bucket, document);
        if (answer.kind === 'fault' && endsVisit(answer.fault.code)) fault = answer.fault;
      }
    }
    await Promise.all(Array.from({ length: OBSERVATIONS_AT_ONCE }, observeNext));
    if (fault !== undefined) throw new FaultError(fault.code, fault.reason);
    return next;
  };
}

/** Whether other objects of the bucket would fail as well. */
function endsVisit(code: FaultCode): boolean {
  switch (jobAnswerOf(code)) {
    case 'stop':
    case 'wait':
    case 'fail':
      return true;
    case 'skip':
    case 'retry':
      return false;
  }
}
