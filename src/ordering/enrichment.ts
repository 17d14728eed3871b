/**
 * Enrichment: document fields that events do not carry. The decisions here are pure; observing/enricher.ts sends the requests
 * to S3. An answer is combined with an event only if both are about the same version.
 */
import type { EnrichMode } from '../records/bucket.ts';
import type { ObjectDocument, PresentState } from './document.ts';
import type { FaultCode } from '../base/fault.ts';
import { PLAUSIBLE_MS } from './constants.ts';

/** The enrichment requests: `head` reads content type, user metadata, storage class, LastModified and expiry; `tags` reads the tags. */
export const enrichRequestKinds = ['head', 'tags'] as const;
export type EnrichRequestKind = (typeof enrichRequestKinds)[number];

/**
 * How an enrichment request ended, other than in a fault: `ok`; `gone`: S3 no longer has that version, or it is no longer the
 * current object; `listed`: only a listing could be read; `late`: S3 did not answer in time; `paused`: nothing was sent, because the
 * bucket's previous requests kept failing.
 */
export const enrichResults = ['ok', 'gone', 'listed', 'late', 'paused'] as const;
export type EnrichResult = (typeof enrichResults)[number] | FaultCode;

/** Whether a version id identifies one object permanently. The version `null` is replaced by the next put. */
export function isLastingVersion(versionId: string | undefined): versionId is string {
  return versionId !== undefined && versionId !== 'null';
}

/**
 * The state of an exact event's object with a HEAD's fields added; undefined if the answer is about another object. Without a lasting
 * version id, an object that was put later with identical bytes passes If-Match; its LastModified gives it away.
 */
export function enrichedState(event: PresentState, seen: PresentState): PresentState | undefined {
  if (seen.etag !== event.etag) return undefined;
  const putByMs = (event.lastModifiedMs ?? 0) + PLAUSIBLE_MS;
  if (!isLastingVersion(event.versionId) && (seen.lastModifiedMs ?? 0) > putByMs) return undefined;
  // the event's own values stay, so that the same event without enrichment has the same content (rule 12)
  const { etag: _etag, sizeBytes: _sizeBytes, versionId: _versionId, ...added } = seen;
  return { ...event, ...added, ...(added.lastModifiedMs !== undefined && { lastModifiedExact: true }) };
}

/**
 * Whether two HEAD requests saw the same object, so that tags read between them belong to it. Because LastModified has whole seconds,
 * an object that was put again within the same second with the same bytes cannot be told apart.
 */
export function isSameObject(a: PresentState, b: PresentState): boolean {
  return a.etag === b.etag && a.sizeBytes === b.sizeBytes && a.lastModifiedMs === b.lastModifiedMs && a.versionId === b.versionId;
}

/** The part of an answer that the bucket's documents contain. */
export function asAskedFor(mode: EnrichMode, state: PresentState): PresentState {
  if (mode !== 'none') return state;
  const { contentType: _contentType, userMetadata: _userMetadata, ...rest } = state;
  return rest;
}

/** Whether the document has a field that only enrichment adds. */
export function isEnriched(document: ObjectDocument): boolean {
  return document.user_metadata !== undefined || document.tags !== undefined || document.content_type !== undefined;
}

/** The fields that only enrichment adds, and that it always adds: metadata and tags that were read may be empty, but are never absent. */
export const enrichmentFields = ['user_metadata', 'tags'] as const;
export type EnrichmentField = (typeof enrichmentFields)[number];

const NONE: readonly EnrichmentField[] = [];
const METADATA: readonly EnrichmentField[] = ['user_metadata'];
const TAGS: readonly EnrichmentField[] = ['tags'];

/** What a live document lacks of the enrichment that its bucket asks for. */
export function lackingEnrichment(
  mode: EnrichMode,
  { user_metadata: metadata, tags }: Pick<ObjectDocument, EnrichmentField>,
): readonly EnrichmentField[] {
  const lacksMetadata = mode !== 'none' && metadata === undefined;
  const lacksTags = mode === 'tags' && tags === undefined;
  if (lacksMetadata) return lacksTags ? enrichmentFields : METADATA;
  return lacksTags ? TAGS : NONE;
}

/** The document without the fields that S3's users can write freely, and without the others that enrichment adds. */
export function plainDocument(document: ObjectDocument): ObjectDocument {
  const { content_type: _type, user_metadata: _metadata, tags: _tags, storage_class: _class, expires_at: _expires, ...plain } = document;
  return plain;
}

/** An upper bound, in bytes, of what enrichment adds to a document's size. */
export function enrichedBytes({ content_type: type = '', user_metadata: metadata, tags }: ObjectDocument): number {
  if (metadata === undefined && tags === undefined) return 4 * type.length;
  const texts = [...Object.entries(metadata ?? {}), ...Object.entries(tags ?? {})].flat();
  // at most 4 bytes per character, and 4 for the punctuation of each text
  return texts.reduce((sum, text) => sum + 4 * text.length + 4, 4 * type.length);
}
