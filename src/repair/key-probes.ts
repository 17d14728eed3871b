/** Probes of a bucket's keys: through its documents in the index, or through its listing, whose requests S3 charges. */
import { detached } from '../ordering/detached.ts';
import { findBoundary, type KeyProbe, type Uncut } from './boundary.rules.ts';
import type { ObjectScan } from '../store/store.ts';
import type { BucketListing, BucketLocation, ListingPage } from '../aws/storage.ts';

/** The smallest sizes of parts. */
export interface PartLimits {
  /** Documents in a part that is cut in advance, approximately. */
  readonly partDocumentsMin: number;
  /** Keys that a part must have left to be cut; at most 1,000. */
  readonly cutKeysMin: number;
}

/** One listing compares 10,000 documents in about a second, so a smaller part is not worth its overhead; 1,000 keys are one page. */
export const PART_LIMITS: PartLimits = { partDocumentsMin: 10_000, cutKeysMin: 1_000 };

interface ListingProbeOptions {
  readonly listing: BucketListing;
  readonly location: BucketLocation;
  readonly prefix: string;
  /** The keys that must be left for a cut to be worth it; at most 1,000. */
  readonly keysMin: number;
  /** Called before each request: false ends the probing. */
  readonly isWanted: () => boolean;
}

/** Creates the probe of a listing. `requests` counts its LIST requests. */
export function probeListing(
  { listing, location, prefix, keysMin, isWanted }: ListingProbeOptions,
  signal: AbortSignal,
): KeyProbe & { readonly requests: () => number } {
  let requests = 0;

  async function list(after: string, limit: number): Promise<ListingPage> {
    requests += 1;
    const page = await listing.page(location, { prefix, after, limit }, signal);
    requests += (page.requests ?? 1) - 1;
    return page;
  }

  return {
    next: async (after) => (isWanted() ? (await list(after, 1)).objects[0]?.key : undefined),
    async page(after) {
      if (!isWanted()) return undefined;
      const { objects, isTruncated } = await list(after, keysMin);
      const [first, last] = [objects[0]?.key, objects.at(-1)?.key];
      return isTruncated && first !== undefined && last !== undefined ? { first, last } : undefined;
    },
    requests: () => requests,
  };
}

/** Creates the probe of a bucket's documents. `keysMin`: the documents that must be left for a cut to be worth it. */
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
 * Cuts a part of the key space into up to `parts` parts by halving all of them, round after round. If not all may be halved,
 * the first ones in key order are. Resolves with the ends of the parts in key order, without the last one's.
 */
export async function cutKeys(whole: Uncut, parts: number, probe: KeyProbe): Promise<readonly string[]> {
  let segments: readonly Uncut[] = [whole];
  let count = 0;
  while (segments.length < parts && segments.length > count) {
    count = segments.length;
    const more = parts - count;
    const halves = segments.map(async (segment, index) => (index < more ? halved(segment, probe) : [segment]));
    segments = (await Promise.all(halves)).flat();
  }
  return segments.slice(0, -1).flatMap(({ to }) => to ?? []);
}

async function halved(segment: Uncut, probe: KeyProbe): Promise<readonly Uncut[]> {
  const found = await findBoundary(segment, probe);
  if (found === undefined) return [segment];
  // it is kept for as long as its part, and begins with a part of a key of a page
  const boundary = detached(found);
  return [
    { cursor: segment.cursor, to: boundary },
    { ...segment, cursor: boundary },
  ];
}
