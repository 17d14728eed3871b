/** What a reconcile does with a key, given the document that is stored now: ordering rules 6 and 7. */
import { type DocumentSource, type ObjectDocument, type ObjectState, type PresentState, documentOf } from '../ordering/document.ts';
import { clockOfMs } from '../ordering/clock.ts';
import { MARGIN_MS } from '../ordering/constants.ts';
import { hintOfTie } from '../ordering/hint.ts';
import { type ObservedWrite, planObservedWrite } from '../ordering/observation.ts';
import { type ComparedDocument, type ComparedField, compareStored, isAgreement } from '../ordering/agreement.ts';

/** The fields of the stored document, which may be a tombstone, that decide. */
export type StoredDocument = ComparedDocument & Pick<ObjectDocument, 'clock' | 'deleted'>;

export type ListedDecision =
  /** Neither side has the key: its document was deleted after the scan. */
  | { readonly kind: 'gone' }
  /** Both agree. `isInexact`: the listing has the true LastModified. `isNewer`: the document is as new as the listing, so it must not be corrected. */
  | {
      readonly kind: 'equal' | 'incomplete';
      readonly fields: readonly ComparedField[];
      readonly isInexact: boolean;
      readonly isNewer: boolean;
    }
  /**
   * `missing`, `stale`: the object must be written as listed, at the listing's clock. `phantom`: a HEAD must confirm that the
   * object does not exist. `inFlight`: both differ, but the document is as new as the listing, so only a HEAD can decide.
   */
  | { readonly kind: 'missing' | 'stale' | 'phantom' | 'inFlight'; readonly fields: readonly ComparedField[] };

/** The clock of writes that come from a listing page with this D (rule 6). */
export function clockOfListing(observedAtMs: number): number {
  return clockOfMs(observedAtMs - MARGIN_MS);
}

const ABSENT = { present: false } as const;

/** The decision for a key of a listing whose D − M is `clock`. `listed` is undefined when the page covers the key but lacks it. */
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
      return { kind: isNewer ? 'inFlight' : kind, fields };
  }
}

export type SeenDecision = { readonly kind: 'agrees' } | { readonly kind: 'write'; readonly plan: ObservedWrite };

/**
 * The decision after a HEAD of a key on which listing and index differ. It is an observation (rule 4) with T = the stored
 * document's clock, or T = 0 when no document is stored. `fills`: what was seen is written although nothing differs, because
 * it adds what the document lacks.
 */
export function decideSeen(seen: ObjectState, stored: StoredDocument | undefined, observedAtMs: number, fills = false): SeenDecision {
  if (!fills && isAgreement(compareStored(seen, stored))) return { kind: 'agrees' };
  return { kind: 'write', plan: planObservedWrite([hintOfTie(stored?.clock ?? 0)], observedAtMs) };
}

/**
 * What a HEAD said, with the storage class of the listing if it is about the same object: a listing names every class, and a
 * HEAD leaves out that of most objects.
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
 * The document for the state that a listing or a HEAD returned. If the stored document is about the same object (etag, size
 * and LastModified do not differ), fields that the state lacks are kept: version, content type, user metadata, tags, expiry,
 * and the event that it came from. For another object these fields are unknown, and so absent.
 */
export function rewrittenDocument(facts: RewriteFacts): ObjectDocument {
  const { bucket, key, state, stored, clock, settled, source, observedAtMs, nowMs } = facts;
  const document = documentOf({ bucket, key, state, clock, settled, source, cause: {}, stateAtMs: observedAtMs, nowMs });
  return stored !== undefined && describesObject(facts.state, stored) ? { ...stored, ...document } : document;
}

/** Whether the stored document is about this object: of the compared fields, at most those differ that change without a new object. */
export function describesObject(state: ObjectState, stored: ObjectDocument): boolean {
  const { kind, fields } = compareStored(state, stored);
  if (kind !== 'stale') return state.present && kind !== 'missing';
  return fields.every((field) => field === 'storage_class' || field === 'tags');
}
