/** The slices of a listing page: as much of it as is settled together. */
import { compareKeys } from '../../domain/documents/key-order.ts';
import { compareSides, type ComparedKey, type Slice } from '../../domain/reindex/compare.ts';
import { fillsEnrichment, writesFromHead, readsTags } from './content-reads.ts';
import type { FeedPage, ScanFeed } from './page-feeds.ts';
import type { SliceWork } from './settle-slice.ts';
import type { SliceSides } from './turn-progress.ts';

/** What decides which compared keys need a HEAD. */
type SliceRequest = Pick<SliceWork, 'bucket' | 'mode' | 'fill' | 'tags'>;

/** A slice that has been compared. */
export interface ComparedSlice extends SliceSides, Pick<Slice, 'comparedKeys' | 'listedTo' | 'isWhole'> {
  /** How many of its compared keys may need a HEAD. */
  readonly heads: number;
}

/** Compares a listing page from its object number `listedFrom` on, up to its end or to as many HEADs as one slice may need. Throws the store's fault. */
type NextSlice = (page: FeedPage, listedFrom: number, scan: ScanFeed) => Promise<ComparedSlice>;

/** HEADs of one slice, which must end before its listing writes expire: at 100 ms each and 2 at a time, they take 5 s. */
const HEADS_MAX = 100;

/** Creates the function. `partEnd` is the last key of the part, read again each time; undefined: the end of all keys. */
export function createNextSlice(request: SliceRequest, partEnd: () => string | undefined): NextSlice {
  const findsEqual = readsTags(request);
  const needsHead = (comparedKey: ComparedKey): boolean => mayNeedHead(comparedKey, request);

  /** Compares as much of the page as the current page of the scan shows. */
  async function comparePart(page: FeedPage, rest: { readonly listedFrom: number; readonly headsMax: number }, scan: ScanFeed) {
    await scan.fill();
    const through = nearerEnd(page.through, partEnd());
    const { documents, at: documentsFrom, isEnd: isDocumentsEnd } = scan;
    const sides = { ...rest, listed: page.objects, documents, documentsFrom, isDocumentsEnd, through };
    const slice = compareSides({ ...sides, findsEqual, enrich: request.bucket.enrich, needsHead });
    scan.at = slice.documentsTo;
    return {
      ...slice,
      listed: page.objects.slice(rest.listedFrom, slice.listedTo),
      scanned: documents.slice(documentsFrom, slice.documentsTo),
      through: slice.isWhole ? (through ?? slice.lastKey) : slice.lastKey,
      heads: slice.comparedKeys.filter(needsHead).length,
    };
  }

  return async function nextSlice(page, listedFrom, scan) {
    let slice: ComparedSlice = await comparePart(page, { listedFrom, headsMax: HEADS_MAX }, scan);
    // what two pages of the scan show of one page of the listing is one slice: each with a difference costs a read and a bulk request
    while (!slice.isWhole && slice.heads < HEADS_MAX) {
      const rest = { listedFrom: slice.listedTo, headsMax: HEADS_MAX - slice.heads };
      slice = joined(slice, await comparePart(page, rest, scan));
    }
    return slice;
  };
}

/** Two slices as one; the second continues where the first ends. */
function joined(first: ComparedSlice, second: ComparedSlice): ComparedSlice {
  return {
    listed: [...first.listed, ...second.listed],
    scanned: [...first.scanned, ...second.scanned],
    comparedKeys: [...first.comparedKeys, ...second.comparedKeys],
    heads: first.heads + second.heads,
    through: second.through ?? first.through,
    listedTo: second.listedTo,
    isWhole: second.isWhole,
  };
}

/** Whether the compared key may need a HEAD. */
function mayNeedHead({ kind, unenriched }: ComparedKey, request: SliceRequest): boolean {
  if (readsTags(request) || kind === 'phantom') return true;
  if (kind === 'missing' || kind === 'stale') return writesFromHead(request);
  return unenriched !== undefined && fillsEnrichment(request);
}

/** The end that comes first; undefined is the end of all keys. */
export function nearerEnd(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return compareKeys(a, b) <= 0 ? a : b;
}
