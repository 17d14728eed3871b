/** What of a bucket's keys is known: by its listing, which is asked for money, or by its documents, which are asked first. */
import { findBoundary, type KeyProbe } from '../../domain/reindex/boundary.ts';
import type { BucketListing, BucketPlace, ObjectScan } from '../ports-reindex.ts';

/** Probes a listing, and counts its requests. Less than `keysMin` keys (at most 1,000) are not worth a page. */
export function probeListing(
  {
    listing,
    place,
    prefix,
    keysMin,
  }: { readonly listing: BucketListing; readonly place: BucketPlace; readonly prefix: string; readonly keysMin: number },
  signal: AbortSignal,
): KeyProbe & { readonly requests: () => number } {
  let requests = 0;

  async function page(after: string, limit: number) {
    requests += 1;
    return listing.page(place, { prefix, after, limit }, signal);
  }

  return {
    next: async (after) => (await page(after, 1)).objects[0]?.key,
    async page(after) {
      const { objects, isTruncated } = await page(after, keysMin);
      const [first, last] = [objects[0]?.key, objects.at(-1)?.key];
      return isTruncated && first !== undefined && last !== undefined ? { first, last } : undefined;
    },
    requests: () => requests,
  };
}

/** Probes the documents of a bucket. Less than `keysMin` are not worth a page. */
export function probeIndex(
  {
    scan,
    bucket,
    prefix,
    keysMin,
  }: { readonly scan: ObjectScan; readonly bucket: string; readonly prefix: string; readonly keysMin: number },
  signal: AbortSignal,
): KeyProbe {
  return {
    next: async (after) => (await scan.scan(bucket, { prefix, after, limit: 1 }, signal))[0]?.key,
    async page(after) {
      const documents = await scan.scan(bucket, { prefix, after, limit: keysMin }, signal);
      const [first, last] = [documents[0]?.key, documents.at(-1)?.key];
      return documents.length === keysMin && first !== undefined && last !== undefined ? { first, last } : undefined;
    },
  };
}

/**
 * Cuts the whole key space into up to `parts` ranges: each is halved in turn, the earlier ones first. Resolves with
 * where they end, the last one excepted, in order.
 */
export async function cutKeys(parts: number, probe: KeyProbe): Promise<readonly string[]> {
  let segments: readonly Segment[] = [{ cursor: '' }];
  let count = 0;
  while (segments.length < parts && segments.length > count) {
    count = segments.length;
    segments = await halveAll(segments, { parts, probe });
  }
  return segments.flatMap(({ to }) => to ?? []);
}

interface Segment {
  readonly cursor: string;
  readonly to?: string;
}

async function halveAll(
  segments: readonly Segment[],
  { parts, probe }: { readonly parts: number; readonly probe: KeyProbe },
): Promise<readonly Segment[]> {
  const halves: Segment[] = [];
  for (const [index, segment] of segments.entries()) {
    const total = halves.length + segments.length - index;
    const boundary = total < parts ? await findBoundary(segment, probe) : undefined;
    if (boundary === undefined) halves.push(segment);
    else halves.push({ cursor: segment.cursor, to: boundary }, { ...segment, cursor: boundary });
  }
  return halves;
}
