/**
 * Where to cut a key space that nobody knows. All that a listing tells is which key comes after a boundary; so boundaries
 * are guessed where the next keys differ from each other, and one is kept if a key follows it.
 *
 * One walk: begin at the depth at which the next thousand keys begin to differ; try the code point half way up, and nearer
 * ones while nothing follows; where a key follows that shares less with them, climb to where it differs: nearer the middle.
 */
import { compareKeys } from '../key-order.ts';

/** Which keys there are, within the caller's prefix. */
export interface KeyProbe {
  /** The first key after this one. */
  readonly next: (after: string) => Promise<string | undefined>;
  /** The first and the last of the keys that one request tells; undefined where these are all that is left. */
  readonly page: (after: string) => Promise<{ readonly first: string; readonly last: string } | undefined>;
}

/** Each is a request; a cut that is not in the middle is cut again later. */
const PROBES_MAX = 10;

/** Most keys are ASCII, of which half is a good guess. */
const ASCII_END = 0x80;
const CODE_POINT_END = 0x11_00_00;

/**
 * A boundary after the cursor with at least one key on either side, the upper one at most `to` (absent: the end). Undefined
 * where none was found or too little is left. Rejects with what the probe throws.
 */
export async function findBoundary(
  { cursor, to }: { readonly cursor: string; readonly to?: string | undefined },
  probe: KeyProbe,
): Promise<string | undefined> {
  const isWithin = (key: string | undefined): key is string => key !== undefined && (to === undefined || compareKeys(key, to) <= 0);
  const page = await probe.page(cursor);
  if (page === undefined || !isWithin(page.last)) return undefined;
  const { first } = page;
  let depth = commonLength(first, page.last);
  let upper = upperAt(depth, first, to);
  let best: string | undefined;
  for (let probes = 1; probes <= PROBES_MAX; probes += 1) {
    const middle = middleOf(first.codePointAt(depth) ?? 0, upper);
    if (middle === undefined) break;
    const boundary = first.slice(0, depth) + String.fromCodePoint(middle);
    const key = isWithin(boundary) ? await probe.next(boundary) : undefined;
    if (isWithin(key)) {
      best = boundary;
      const shared = commonLength(first, key);
      if (shared >= depth) break;
      depth = shared;
      upper = upperAt(depth, first, to);
    } else {
      upper = middle;
    }
  }
  return best;
}

/** How many units the two begin with in common, never half a character. */
function commonLength(a: string, b: string): number {
  let length = 0;
  while (length < a.length && length < b.length && a.charCodeAt(length) === b.charCodeAt(length)) length += 1;
  const last = a.charCodeAt(length - 1);
  return last >= 0xd8_00 && last < 0xdc_00 ? length - 1 : length;
}

/** The code point at this depth that boundaries stay below. */
function upperAt(depth: number, first: string, to: string | undefined): number {
  if (to !== undefined && to.length > depth && to.startsWith(first.slice(0, depth))) return (to.codePointAt(depth) ?? 0) + 1;
  return (first.codePointAt(depth) ?? 0) < ASCII_END - 1 ? ASCII_END : CODE_POINT_END;
}

/** The code point half way between, both excluded. */
function middleOf(lower: number, upper: number): number | undefined {
  const half = Math.floor((lower + upper) / 2);
  // halves of characters are no characters
  const middle = half >= 0xd8_00 && half < 0xe0_00 ? 0xd7_ff : half;
  return middle > lower && middle < upper ? middle : undefined;
}
