/**
 * Enrichment: what documents say beyond what their events say. Pure decisions; who asks S3 is pipeline/enrich/.
 * An answer is only ever joined to an event whose very version it is about.
 */
import type { EnrichMode } from '../bucket.ts';
import type { ObjectDocument, PresentState } from './document.ts';
import type { FaultCode } from '../fault.ts';
import { PLAUSIBLE_MS } from '../ordering/constants.ts';

/** What is asked for: `head` content type, user metadata, storage class, LastModified, expiry; `tags` the tags. */
export const enrichSteps = ['head', 'tags'] as const;
export type EnrichStep = (typeof enrichSteps)[number];

/**
 * How a step went, when not by a fault: `ok`; `gone`, S3 has that version no longer, or not as the present object; `listed`,
 * only a listing could be read; `late`, not in time; `paused`, not asked, since this bucket's requests failed one after another.
 */
export const enrichResults = ['ok', 'gone', 'listed', 'late', 'paused'] as const;
export type EnrichResult = (typeof enrichResults)[number] | FaultCode;

/** Whether a version id names one object for ever. `null` is the one that the next put replaces. */
export function isLastingVersion(versionId: string | undefined): versionId is string {
  return versionId !== undefined && versionId !== 'null';
}

/**
 * What an exact event's object is with what a HEAD said of it; undefined when the answer is about another object. Where no
 * lasting version was named, one that was put later with the very same bytes passes If-Match: its LastModified tells.
 */
export function enrichedState(event: PresentState, seen: PresentState): PresentState | undefined {
  if (seen.etag !== event.etag) return undefined;
  const putByMs = (event.lastModifiedMs ?? 0) + PLAUSIBLE_MS;
  if (!isLastingVersion(event.versionId) && (seen.lastModifiedMs ?? 0) > putByMs) return undefined;
  // what the event stated stays as it was stated: written again plain, it is the same content (rule 12)
  const { etag: _etag, sizeBytes: _sizeBytes, versionId: _versionId, ...said } = seen;
  return { ...event, ...said, ...(said.lastModifiedMs !== undefined && { lastModifiedExact: true }) };
}

/** Whether two looks saw one object, so that what was read in between is about it. LastModified has whole seconds: one that was put in the same second with the same bytes is not told apart, nor need it be. */
export function isSameObject(a: PresentState, b: PresentState): boolean {
  return a.etag === b.etag && a.sizeBytes === b.sizeBytes && a.lastModifiedMs === b.lastModifiedMs && a.versionId === b.versionId;
}

/** What of a HEAD's answer the bucket's documents are to say. */
export function asAskedFor(mode: EnrichMode, state: PresentState): PresentState {
  if (mode !== 'none') return state;
  const { contentType: _contentType, userMetadata: _userMetadata, ...rest } = state;
  return rest;
}

/** Whether the document says what only enrichment asks for. */
export function isEnriched(document: ObjectDocument): boolean {
  return document.user_metadata !== undefined || document.tags !== undefined || document.content_type !== undefined;
}

/** The document without what S3's users can write anything into, and without what came with it. */
export function plainDocument(document: ObjectDocument): ObjectDocument {
  const { content_type: _type, user_metadata: _metadata, tags: _tags, storage_class: _class, expires_at: _expires, ...plain } = document;
  return plain;
}

/** What enrichment adds to a document's size, in bytes at most. */
export function enrichedBytes({ content_type: type = '', user_metadata: metadata, tags }: ObjectDocument): number {
  if (metadata === undefined && tags === undefined) return 4 * type.length;
  const texts = [...Object.entries(metadata ?? {}), ...Object.entries(tags ?? {})].flat();
  // 4 bytes a character at most, and the punctuation of each entry
  return texts.reduce((sum, text) => sum + 4 * text.length + 4, 4 * type.length);
}
