/** What a reconcile does about a key: ordering rules 6 and 7, on what is stored at this moment. */
import type { DocumentSource, ObjectDocument, ObjectState, PresentState } from '../documents/document.ts';
import { documentOf } from '../documents/document.ts';
import { clockOfMs } from '../ordering/clock.ts';
import { MARGIN_MS } from '../ordering/constants.ts';
import { hintOfTie } from '../ordering/hint.ts';
import type { ObservedWrite } from '../ordering/observation.ts';
import { planObservedWrite } from '../ordering/observation.ts';
import type { ComparedDocument, Comparison, ComparedField } from './compare.ts';
import { compareObject } from './compare.ts';

/** What is decided by: a document as it is stored, tombstones included. */
export type StoredDocument = ComparedDocument & Pick<ObjectDocument, 'clock' | 'deleted'>;

export type ListedDecision =
  /** Neither has it: gone since it was scanned. */
  | { readonly kind: 'gone' }
  /** They agree. `isInexact`: but the listing knows the true LastModified. `isNewer`: and may not say so. */
  | {
      readonly kind: 'equal' | 'incomplete';
      readonly fields: readonly ComparedField[];
      readonly isInexact: boolean;
      readonly isNewer: boolean;
    }
  /** To be written from the listing, at its clock. */
  | { readonly kind: 'missing' }
  | { readonly kind: 'stale'; readonly fields: readonly ComparedField[] }
  /** To be confirmed by a HEAD. */
  | { readonly kind: 'phantom' }
  /** They differ, but the document is as new as the listing: only a HEAD can tell. */
  | { readonly kind: 'inFlight'; readonly fields: readonly ComparedField[] };

/** The clock that a listing page of this D writes at (rule 6). */
export function clockOfListing(observedAtMs: number): number {
  return clockOfMs(observedAtMs - MARGIN_MS);
}

/** What the listing of D (as `clock`: D − M) means for a key. `listed` undefined: a page that covers the key lacks it. */
export function decideListed(listed: PresentState | undefined, stored: StoredDocument | undefined, clock: number): ListedDecision {
  const live = stored === undefined || stored.deleted ? undefined : stored;
  const isNewer = stored !== undefined && stored.clock >= clock;
  if (listed === undefined) {
    if (live === undefined) return { kind: 'gone' };
    return isNewer ? { kind: 'inFlight', fields: [] } : { kind: 'phantom' };
  }
  if (live === undefined) return isNewer ? { kind: 'inFlight', fields: [] } : { kind: 'missing' };
  return decideCompared(compareObject(listed, live), isNewer);
}

function decideCompared({ kind, fields, isInexact }: Comparison, isNewer: boolean): ListedDecision {
  if (kind === 'stale') return { kind: isNewer ? 'inFlight' : 'stale', fields };
  return { kind, fields, isInexact, isNewer };
}

export type SeenDecision = { readonly kind: 'agrees' } | { readonly kind: 'write'; readonly plan: ObservedWrite };

/**
 * What a HEAD means for a key that listing and index do not agree on: an observation (rule 4) with T = the stored
 * document's clock. A key with nothing stored has nothing to be newer than.
 */
export function decideSeen(seen: ObjectState, stored: StoredDocument | undefined, observedAtMs: number): SeenDecision {
  if (agrees(seen, stored)) return { kind: 'agrees' };
  return { kind: 'write', plan: planObservedWrite([hintOfTie(stored?.clock ?? 0)], observedAtMs) };
}

function agrees(seen: ObjectState, stored: StoredDocument | undefined): boolean {
  if (stored === undefined || stored.deleted) return !seen.present;
  return seen.present && compareObject(seen, stored).kind !== 'stale';
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
 * The document that says what a listing or a HEAD says. Of the very same object (etag, size and LastModified do not
 * differ) it keeps what neither tells: version, content type, user metadata, tags, expiry, and the event that it came by.
 * Of another object all of that is unknown, and so absent.
 */
export function rewrittenDocument(facts: RewriteFacts): ObjectDocument {
  const { stored, observedAtMs } = facts;
  const document = documentOf({ ...facts, cause: {}, stateAtMs: observedAtMs });
  return stored !== undefined && isSameObject(facts.state, stored) ? { ...stored, ...document } : document;
}

function isSameObject(state: ObjectState, stored: ObjectDocument): boolean {
  if (!state.present || stored.deleted) return false;
  const { kind, fields } = compareObject(state, stored);
  return kind !== 'stale' || fields.every((field) => field === 'storage_class');
}
