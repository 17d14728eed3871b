/** What a slice reads from S3 besides the listing, because documents of its bucket contain more than a listing does. */
import type { ObjectDocument, ObjectState } from '../../domain/documents/document.ts';
import { lackingEnrichment, type EnrichmentField } from '../../domain/enrichment.ts';
import { compareStored } from '../../domain/reindex/compare.ts';
import type { TagsNeed } from './heads.ts';
import type { SliceWork } from './settle-slice.ts';

type Wishes = Pick<SliceWork, 'bucket' | 'mode' | 'tags' | 'fill'>;

/** Whether new and changed objects are written from a HEAD: in buckets whose documents contain more than a listing does. */
export function writesFromHead({ bucket, mode }: Pick<Wishes, 'bucket' | 'mode'>): boolean {
  return mode === 'apply' && bucket.enrich !== 'none';
}

/**
 * Whether the tags of every object are read, also of those that agree with their documents. A job that fills in reads them
 * too: tags that a document has may be of a time before its bucket asked for tags again.
 */
export function readsTags({ bucket, mode, tags, fill }: Wishes): boolean {
  return mode === 'apply' && (tags || fill) && bucket.enrich === 'tags';
}

/** Whether a HEAD is sent for each object whose document lacks enrichment. */
export function fillsEnrichment({ bucket, mode, fill }: Pick<Wishes, 'bucket' | 'mode' | 'fill'>): boolean {
  return mode === 'apply' && fill && bucket.enrich !== 'none';
}

/** How much the tags of an object are needed: they may be the reason for its HEAD. */
export function needOfTags(work: Wishes): TagsNeed {
  if (!readsTags(work)) return 'optional';
  return work.tags ? 'required' : 'wanted';
}

/** What the stored document lacks of the enrichment of its bucket; nothing if there is no live document. */
export function lackingOf({ bucket }: Pick<Wishes, 'bucket'>, stored: ObjectDocument | undefined): readonly EnrichmentField[] {
  return stored === undefined || stored.deleted ? [] : lackingEnrichment(bucket.enrich, stored);
}

/** Whether what was seen adds what the stored document lacks, of its enrichment or of its other fields, and that the work is to fill in. */
export function fillsIn(work: Wishes, seen: ObjectState, stored: ObjectDocument | undefined): boolean {
  if (!fillsEnrichment(work) || !seen.present || stored === undefined || stored.deleted) return false;
  const { userMetadata, tags } = seen;
  const read = { user_metadata: userMetadata, tags };
  return lackingOf(work, stored).some((field) => read[field] !== undefined) || compareStored(seen, stored).kind === 'incomplete';
}
