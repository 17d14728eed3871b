/** What a reconcile does about a key, given its stored document: ordering rules 6 and 7. */
import {
  type DocumentSource,
  type ObjectDocument,
  type ObjectState,
  type PresentState,
  documentOf,
  clockOfMs,
} from '../ordering/document.ts';
import { MARGIN_MS } from '../ordering/constants.ts';
import { hintOfTie } from '../ordering/hint.ts';
import { type ObservedWrite, planObservedWrite } from '../ordering/observation.ts';
import { type ComparedDocument, type ComparedField, compareStored, isAgreement } from '../ordering/agreement.ts';

/** The fields that decide of the stored document, which may be a tombstone. */
export type StoredDocument = ComparedDocument & Pick<ObjectDocument, 'clock' | 'deleted'>;

export type ListedDecision =
  /** Neither side has the key: its document was deleted after the scan. */
  | { readonly kind: 'gone' }
  /** Both agree. `isInexact`: only the listing has the true LastModified. `isNewer`: the document is at least as new as the listing, so it must not be corrected. */
  | {
      readonly kind: 'equal' | 'incomplete';
      readonly fields: readonly ComparedField[];
      readonly isInexact: boolean;
      readonly isNewer: boolean;
    }
  /**
   * `missing`, `stale`: write the object as listed, at the listing's clock. `phantom`: a HEAD must confirm that the object does not
   * exist. `in_flight`: both differ, but the document is at least as new as the listing, so only a HEAD can decide.
   */
  | { readonly kind: 'missing' | 'stale' | 'phantom' | 'in_flight'; readonly fields: readonly ComparedField[] };

/** The clock of writes from a listing page with this D (rule 6). */
export function clockOfListing(observedAtMs: number): number {
  return clockOfMs(observedAtMs - MARGIN_MS);
}

const ABSENT = { present: false } as const;

/** Decides about a key of a listing whose D − M is `clock`. `listed` is undefined if the page covers the key but lacks it. */
export function decideListed(listed: PresentState | undefined, stored: StoredDocument | undefined, clock: number): ListedDecision {
  if (listed === undefined && (stored === undefined || stored.deleted)) return { kind: 'gone' };
  const isNewer = stored !== undefined && stored.clock >= clock;
  const { kind, fields, isInexact } = compareStored(listed ?? ABSENT, stored);
  switch (kind) {
    case 'equal':
    case 'incomplete':
      return { kind, fields, isInexact, isNewer };
    case 'stale':
    case 'missing':
    case 'phantom':
      return { kind: isNewer ? 'in_flight' : kind, fields };
  }
}

export type SeenDecision = { readonly kind: 'agrees' } | { readonly kind: 'write'; readonly plan: ObservedWrite };

/**
 * Decides after a HEAD of a key about which listing and index differ. It is an observation (rule 4) with T = the stored document's
 * clock, or T = 0 if no document is stored. `fills`: write the answer although nothing differs, because it adds what the document
 * lacks.
 */
export function decideSeen(seen: ObjectState, stored: StoredDocument | undefined, observedAtMs: number, fills = false): SeenDecision {
  if (!fills && isAgreement(compareStored(seen, stored))) return { kind: 'agrees' };
  return { kind: 'write', plan: planObservedWrite([hintOfTie(stored?.clock ?? 0)], observedAtMs) };
}

/**
 * A HEAD's answer with the listing's storage class, if both are about the same object: a listing names every class, and a HEAD leaves
 * out most objects'.
 */
export function withListedClass<Seen extends { readonly state: ObjectState }>(seen: Seen, listed: PresentState | undefined): Seen {
  const { state } = seen;
  if (!state.present || listed?.storageClass === undefined || state.storageClass === listed.storageClass) return seen;
  const isSame = state.etag === listed.etag && state.sizeBytes === listed.sizeBytes && state.lastModifiedMs === listed.lastModifiedMs;
  return isSame ? { ...seen, state: { ...state, storageClass: listed.storageClass } } : seen;
}

export interface RewriteFacts {
  readonly bucket: string;
  readonly key: string;
  readonly state: ObjectState;
  readonly stored: ObjectDocument | undefined;
  readonly clock: number;
  readonly settled: boolean;
  readonly source: DocumentSource;
  readonly observedAtMs: number;
  readonly nowMs: number;
}

/**
 * The document for a listing's or a HEAD's state. If the stored document is about the same object (etag, size and LastModified do not
 * differ), fields that the state lacks are kept: version, content type, user metadata, tags, expiry, and the event. For another object
 * these fields are unknown, and so absent.
 */
export function rewrittenDocument(facts: RewriteFacts): ObjectDocument {
  const { bucket, key, state, stored, clock, settled, source, observedAtMs, nowMs } = facts;
  const document = documentOf({ bucket, key, state, clock, settled, source, cause: {}, stateAtMs: observedAtMs, nowMs });
  return stored !== undefined && describesObject(facts.state, stored) ? { ...stored, ...document } : document;
}

/** Whether the stored document is about this object: only fields that may change without a new object differ. */
export function describesObject(state: ObjectState, stored: ObjectDocument): boolean {
  const { kind, fields } = compareStored(state, stored);
  if (kind !== 'stale') return state.present && kind !== 'missing';
  return fields.every((field) => field === 'storage_class' || field === 'tags');
}
