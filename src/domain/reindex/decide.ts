/** What a reconcile does with a key, given the document that is stored now: ordering rules 6 and 7. */
import type { DocumentSource, ObjectDocument, ObjectState, PresentState } from '../documents/document.ts';
import { documentOf } from '../documents/document.ts';
import { clockOfMs } from '../ordering/clock.ts';
import { MARGIN_MS } from '../ordering/constants.ts';
import { hintOfTie } from '../ordering/hint.ts';
import type { ObservedWrite } from '../ordering/observation.ts';
import { planObservedWrite } from '../ordering/observation.ts';
import type { ComparedDocument, Comparison, ComparedField } from './compare.ts';
import { compareObject } from './compare.ts';

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
  /** The object must be written as listed, at the listing's clock. So must `stale` ones. */
  | { readonly kind: 'missing' }
  | { readonly kind: 'stale'; readonly fields: readonly ComparedField[] }
  /** A HEAD must confirm that the object does not exist. */
  | { readonly kind: 'phantom' }
  /** Both differ, but the document is as new as the listing: only a HEAD can decide. */
  | { readonly kind: 'inFlight'; readonly fields: readonly ComparedField[] };

/** The clock of writes that come from a listing page with this D (rule 6). */
export function clockOfListing(observedAtMs: number): number {
  return clockOfMs(observedAtMs - MARGIN_MS);
}

/** The decision for a key of a listing whose D − M is `clock`. `listed` is undefined when the page covers the key but lacks it. */
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
 * The decision after a HEAD of a key on which listing and index differ. It is an observation (rule 4) with T = the stored
 * document's clock, or T = 0 when no document is stored. `areTagsSame`: false if the tags were read and the document has others.
 */
export function decideSeen(seen: ObjectState, stored: StoredDocument | undefined, observedAtMs: number, areTagsSame = true): SeenDecision {
  if (areTagsSame && agrees(seen, stored)) return { kind: 'agrees' };
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

/** How the tags that S3 has compare with those of the document: it may lack them, if they could not be read when it was written. */
export function compareTags(seen: ObjectState, stored: Pick<ObjectDocument, 'deleted' | 'tags'> | undefined): 'same' | 'lacks' | 'differs' {
  if (!seen.present || seen.tags === undefined || stored === undefined || stored.deleted) return 'same';
  if (stored.tags === undefined) return 'lacks';
  const [read, known] = [Object.entries(seen.tags), new Map(Object.entries(stored.tags))];
  return read.length === known.size && read.every(([name, value]) => known.get(name) === value) ? 'same' : 'differs';
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
 * The document for the state that a listing or a HEAD returned. If the stored document is about the same object (etag, size
 * and LastModified do not differ), fields that the state lacks are kept: version, content type, user metadata, tags, expiry,
 * and the event that it came from. For another object these fields are unknown, and so absent.
 */
export function rewrittenDocument(facts: RewriteFacts): ObjectDocument {
  const { bucket, key, state, stored, clock, settled, source, observedAtMs, nowMs } = facts;
  const document = documentOf({ bucket, key, state, clock, settled, source, cause: {}, stateAtMs: observedAtMs, nowMs });
  return stored !== undefined && describesObject(facts.state, stored) ? { ...stored, ...document } : document;
}

/** Whether the stored document is about this object: of the compared fields, at most the storage class differs. */
export function describesObject(state: ObjectState, stored: ObjectDocument): boolean {
  if (!state.present || stored.deleted) return false;
  const { kind, fields } = compareObject(state, stored);
  return kind !== 'stale' || fields.every((field) => field === 'storage_class');
}
