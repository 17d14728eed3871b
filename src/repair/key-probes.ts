/** Cuts keys into parts by probing the bucket's listing, for whose requests S3 charges. */
import { detached } from '../ordering/detached.ts';
import type { BucketListing, BucketLocation, ListingPage } from '../aws/storage.ts';
import { compareKeys } from '../base/key-order.ts';

/** How many keys a part must have left to be cut: one page. */
export const CUT_KEYS_MIN = 1_000;

interface ListingProbeOptions {
  readonly listing: BucketListing;
  readonly location: BucketLocation;
  readonly prefix: string;
  /** How many keys must be left for a cut to be worth it; at most 1,000. */
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

/**
 * Cuts a range of keys into up to `parts` parts by halving all of them, round after round; in the last round, only as many as needed, the
 * first ones in key order. Resolves with the parts' ends in key order, without the last one's.
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
  // a copy, because the boundary outlives the page from whose key it was made
  const boundary = detached(found);
  return [
    { cursor: segment.cursor, to: boundary },
    { ...segment, cursor: boundary },
  ];
}

// ── where to cut an unknown set of keys. A listing shows only which key follows a given text, so boundaries are guessed at positions
// where keys differ, and kept if a key follows.
//
// The search begins at the depth (position in the key) at which the next thousand keys begin to differ, and climbs to smaller depths:
// the keys that follow all keys with that common prefix differ from them at a smaller depth. At the smallest depth, all remaining keys
// differ. There the cut is at the code point half way up, or at the next nearer one that a key follows.

/** Reads keys within the caller's prefix. */
export interface KeyProbe {
  /** The first key after this one. */
  readonly next: (after: string) => Promise<string | undefined>;
  /** The first and last key of one page after this one; undefined if the page contains all remaining keys. */
  readonly page: (after: string) => Promise<{ readonly first: string; readonly last: string } | undefined>;
}

/** Each probe is a request. A cut far from the middle is acceptable, because large parts are cut again later. */
const PROBES_MAX = 16;

/** Most keys are ASCII, so the middle of ASCII is a good first guess. */
const ASCII_END = 0x80;
const CODE_POINT_END = 0x11_00_00;
const LAST_CHARACTER = '\u{10ffff}';

/** The part to cut: keys after the cursor, up to `to` (inclusive; absent: to the end). */
export interface Uncut {
  readonly cursor: string;
  readonly to?: string | undefined;
}

/**
 * Finds a boundary with at least one key of the part on each side; undefined if there is none, or at most one page is left. Rejects with
 * the probe's error.
 */
export async function findBoundary({ cursor, to }: Uncut, probe: KeyProbe): Promise<string | undefined> {
  const page = await probe.page(cursor);
  if (page === undefined || !isUpTo(to, page.last)) return undefined;
  const { first } = page;
  let probesLeft = PROBES_MAX;

  /** The first key of the part after this text. */
  async function next(after: string): Promise<string | undefined> {
    if (probesLeft === 0 || !isUpTo(to, after)) return undefined;
    probesLeft -= 1;
    const key = await probe.next(after);
    return key !== undefined && isUpTo(to, key) ? key : undefined;
  }

  /** Depths at which keys differ, the smallest first. */
  async function climb(depths: readonly [number, ...number[]]): Promise<readonly number[]> {
    const [depth] = depths;
    const outside = depth === 0 ? undefined : await next(first.slice(0, depth) + LAST_CHARACTER);
    const shared = outside === undefined ? depth : commonLength(first, outside);
    return shared < depth ? climb([shared, ...depths]) : depths;
  }

  async function cutAt(depth: number): Promise<string | undefined> {
    const middles = middlesOf(first.codePointAt(depth) ?? 0, upperAt(depth, first, to));
    const boundaries = middles.map((middle) => first.slice(0, depth) + String.fromCodePoint(middle));
    // all at once, because nothing of the part is compared until it has been cut
    const following = await Promise.all(boundaries.map(next));
    return boundaries.find((_, index) => following[index] !== undefined);
  }

  for (const depth of await climb([commonLength(first, page.last)])) {
    const boundary = await cutAt(depth);
    if (boundary !== undefined) return boundary;
  }
  return undefined;
}

function isUpTo(to: string | undefined, key: string): boolean {
  return to === undefined || compareKeys(key, to) <= 0;
}

/** The length of the common prefix in UTF-16 units, never ending within a surrogate pair. */
function commonLength(a: string, b: string): number {
  let length = 0;
  while (length < a.length && length < b.length && a.charCodeAt(length) === b.charCodeAt(length)) length += 1;
  const last = a.charCodeAt(length - 1);
  return last >= 0xd8_00 && last < 0xdc_00 ? length - 1 : length;
}

/** The code point at this depth below which boundaries must stay. */
function upperAt(depth: number, first: string, to: string | undefined): number {
  if (to !== undefined && to.length > depth && to.startsWith(first.slice(0, depth))) return (to.codePointAt(depth) ?? 0) + 1;
  return (first.codePointAt(depth) ?? 0) < ASCII_END - 1 ? ASCII_END : CODE_POINT_END;
}

/** The code point half way between the two, both excluded, then the one half way below it, and so on. */
function middlesOf(lower: number, upper: number): readonly number[] {
  const half = Math.floor((lower + upper) / 2);
  // surrogates are not characters
  const middle = half >= 0xd8_00 && half < 0xe0_00 ? 0xd7_ff : half;
  return middle > lower && middle < upper ? [middle, ...middlesOf(lower, middle)] : [];
}
