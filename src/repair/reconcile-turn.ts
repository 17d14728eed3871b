/**
 * One turn of a reconcile on one part of a job: compares the listing with the scan, slice by slice, in bounded memory.
 *
 *   listing pages ─┐
 *                  ├─► slices ─► settled, a few at a time ─► committed in key order: the cursor advances
 *   scan pages ────┘
 *
 * A slice is committed once all of its compared keys have ended. The next turn repeats what a turn has not committed, and finds it
 * equal. Nothing is concluded about keys that no listing page covers.
 */
import { compareKeys } from '../base/key-order.ts';
import { faultOf, type Fault } from '../base/fault.ts';
import { compareSides, type ComparedKey, type Slice } from '../ordering/agreement.ts';
import type { TurnEnd, TurnProgress } from './job.rules.ts';
import { withPlainFallbacks } from '../observing/enricher.ts';
import type { QuestionProof } from './question-proof.ts';
import type { ObjectIndex, ObjectScan, ScannedDocument, WithPorts } from '../store/store.ts';
import type { BucketListing, ObjectStorage, ListedObject } from '../aws/storage.ts';
import type { Circuits } from '../observing/circuits.ts';
import type { WriteAll } from './background-writer.ts';
import { createHeads, fillsEnrichment, readsTags, writesFromHead, type Wishes } from './heads.ts';
import { createSettleSlice, type LeaveKeys, type SettleSlice, type SliceEnd, type Tombstones } from './settle-slice.ts';
import { createTurnProgress, type SliceSides } from './turn-progress.ts';
import { ANSWER_LIFE_MS } from '../ordering/constants.ts';

export interface TurnRequest extends Wishes {
  readonly prefix: string;
  /** The part's cursor: exclusive. */
  readonly after: string;
  /** Whether the last turn has already written, and counted, keys after the cursor. The scan may not show them yet, so all keys are then read before they are written. */
  readonly readsFirst?: boolean;
  /** Inclusive; absent: to the end. */
  readonly upTo?: string;
}

export interface TurnControls {
  readonly tombstones: Tombstones;
  readonly leave: LeaveKeys;
  /** Called between slices. True ends the turn: a pause, a stop or a lost lease. */
  readonly shouldEnd: () => boolean;
  /** Called likewise, but only after a page's first slice was compared. True ends the turn: its time is over, or its part is to be cut. */
  readonly isOver: () => boolean;
  /** Called after each slice and each write with what the turn has done so far. Any of these may be stored. */
  readonly progressed?: (progress: TurnProgress) => void;
}

/** Runs one turn. Rejects only with the signal's reason. */
export type ReconcileTurn = (request: TurnRequest, controls: TurnControls, signal: AbortSignal) => Promise<TurnEnd>;

interface TurnDependencies extends WithPorts<'clock' | 'telemetry'> {
  readonly objects: ObjectIndex;
  readonly scan: ObjectScan;
  readonly listing: BucketListing;
  readonly storage: ObjectStorage;
  readonly writeAll: WriteAll;
  readonly circuits: Circuits;
  /** Absent: no bucket's proof is questioned. */
  readonly questionProof?: QuestionProof;
  /** How many HEADs run at the same time in all turns of the process. Default 48, which is fewer than the live path's. */
  readonly headConcurrency?: number;
}

const HEADS_MAX = 48;
/**
 * How many slices all turns settle at the same time, so that pages are compared while bulk requests are in flight. Each holds a listing
 * page and its documents in memory. There are one and a half times as many as bulk requests, so that the next one is ready when one is
 * answered. The turns share them: four turns or more have one each, and a single one has enough to keep the index busy. A turn settles
 * at most two slices with HEADs, so that few HEADs are sent before the tombstones are reserved.
 */
const SETTLING = { ofAll: 6, withHeads: 2 };
/**
 * How many slices of a report are settled at the same time. A slice with a difference waits five seconds, so a part in which every page
 * has one is compared at 3,200 keys a second.
 */
const SETTLING_MAX_REPORT = 16;
const EXPIRED: Fault = {
  code: 'index.overloaded',
  reason: "the index or S3 was so slow that S3's answers expired before Tally could write them",
};

/** Creates the turn function, once for the process: all turns share its HEADs and its number of slices being settled. */
export function createReconcileTurn(dependencies: TurnDependencies): ReconcileTurn {
  const head = createHeads({ ...dependencies, concurrency: dependencies.headConcurrency ?? HEADS_MAX });
  const writeAll = withPlainFallbacks(dependencies.writeAll, dependencies.telemetry);
  const settle = createSettleSlice({ ...dependencies, writeAll, head });

  let turns = 0;
  const settlingMax = (): number => Math.max(1, Math.floor(SETTLING.ofAll / turns));

  return async function reconcileTurn(request, controls, signal) {
    signal.throwIfAborted();
    const turn = createTurn({ ...dependencies, settle, settlingMax }, request, { controls, signal });
    turns += 1;
    const end = await turn.run().finally(() => void (turns -= 1));
    signal.throwIfAborted();
    const result = turn.progress();
    if (typeof end === 'object') return { ...result, done: false, fault: end };
    // a fault if there was no progress, so that the next turn does not begin at once
    if (end === 'expired' && result.cursor === request.after) return { ...result, done: false, fault: EXPIRED };
    return { ...result, done: end === 'done' };
  };
}

/** `expired`: answers of S3 became too old to be written, because the store is slow. */
type Ended = 'done' | 'ended' | 'expired';

/** A slice that is being settled. */
interface Settling extends SliceSides, Pick<ComparedSlice, 'heads'> {
  readonly settled: Promise<SliceEnd>;
  hasEnded: boolean;
}

function createTurn(
  parts: TurnDependencies & { readonly settle: SettleSlice; readonly settlingMax: () => number },
  request: TurnRequest,
  { controls, signal }: { readonly controls: TurnControls; readonly signal: AbortSignal },
) {
  const { settle, settlingMax } = parts;
  const { tombstones, leave } = controls;
  const progress = createTurnProgress(request.after, controls.progressed);

  /** Compares from the cursor on. Slices that are not committed at the end are dropped, and the next turn repeats them. */
  async function run(): Promise<Ended | Fault> {
    const ending = new AbortController();
    const settling: Settling[] = [];
    try {
      return await reconcileFromCursor(settling, AbortSignal.any([signal, ending.signal]));
    } catch (error) {
      return await afterFault(settling, faultOf(error));
    } finally {
      ending.abort(new Error('the turn has ended'));
      await Promise.allSettled(settling.map(({ settled }) => settled));
    }
  }

  async function reconcileFromCursor(settling: Settling[], runSignal: AbortSignal): Promise<Ended> {
    const scan = createScanFeed(parts.scan, request, runSignal);
    for await (const page of listingPages(parts, request, progress.listRequested, runSignal)) {
      const end = await comparePage(page, scan, { settling, runSignal });
      // nothing behind an uncommitted slice is committed
      if (end !== undefined) return end === 'expired' ? end : drained(settling, end);
      if (controls.isOver()) break;
    }
    return drained(settling, 'ended');
  }

  /** Returns undefined if all of the page's slices are being settled or committed, and the part contains more keys. */
  async function comparePage(
    page: FeedPage,
    scan: ScanFeed,
    { settling, runSignal }: { readonly settling: Settling[]; readonly runSignal: AbortSignal },
  ): Promise<Ended | undefined> {
    const { observedAtMs, expiresAtMs } = page;
    for (let listedFrom = 0, isWhole = false; !isWhole;) {
      // a page's first slice is always compared: passing pages without keys may have taken longer than a turn
      if (controls.shouldEnd() || (listedFrom > 0 && controls.isOver())) return 'ended';
      const slice = await nextSlice(request, page, listedFrom, scan);
      const { headRequested, written } = progress;
      const work = {
        ...request,
        tombstones,
        leave,
        headRequested,
        written,
        comparedKeys: slice.comparedKeys,
        observedAtMs,
        expiresAtMs,
        // the scan may not show yet what an earlier turn wrote
        writesUnread: request.readsFirst !== true,
      };
      settling.push(beingSettled(slice, settle(work, runSignal)));
      ({ listedTo: listedFrom, isWhole } = slice);
      const end = await makeRoom(settling);
      if (end !== undefined) return end;
    }
    return isPartEnd(request, page.through) ? 'done' : undefined;
  }

  /** Commits the slices that have ended, so that people see their counts, and further ones until there is room for the next. */
  async function makeRoom(settling: Settling[]): Promise<'expired' | undefined> {
    const max = (): number => (request.mode === 'report' ? SETTLING_MAX_REPORT : roomFor(settling, settlingMax()));
    while (settling.length >= max() || settling[0]?.hasEnded === true) {
      const end = await commitFirst(settling);
      if (end !== undefined) return end;
    }
    return undefined;
  }

  /** Returns undefined once the slice is committed. */
  async function commitFirst(settling: Settling[]): Promise<'expired' | undefined> {
    const [first] = settling;
    if (first === undefined) return undefined;
    const end = await first.settled;
    settling.shift();
    if (end === 'expired') return end;
    progress.commit(first, end);
    return undefined;
  }

  async function drained<End>(settling: Settling[], end: End): Promise<End | 'expired'> {
    while (settling.length > 0) {
      const early = await commitFirst(settling);
      if (early !== undefined) return early;
    }
    return end;
  }

  /** Commits the slices before the fault. */
  async function afterFault(settling: Settling[], fault: Fault): Promise<'expired' | Fault> {
    return drained(settling, fault).catch(faultOf);
  }

  return { run, progress: progress.sofar };
}

/** How many slices an apply job may settle at the same time. */
function roomFor(settling: readonly Settling[], settlingMax: number): number {
  return settling.some(({ heads }) => heads > 0) ? Math.min(SETTLING.withHeads, settlingMax) : settlingMax;
}

function beingSettled(compared: ComparedSlice, settled: Promise<SliceEnd>): Settling {
  const { listed, scanned, through, heads } = compared;
  const entry: Settling = { listed, scanned, through, heads, settled, hasEnded: false };
  const hasEnded = (): void => void (entry.hasEnded = true);
  // slices are awaited in key order, and an earlier one may end the turn before this one is awaited
  settled.then(hasEnded, hasEnded);
  return entry;
}

// ── a listing page's slices: as much of it as is settled together ─────────────────────────────────────────────────────

/** A slice that has been compared. */
interface ComparedSlice extends SliceSides, Pick<Slice, 'comparedKeys' | 'listedTo' | 'isWhole'> {
  /** How many of its compared keys may need a HEAD. */
  readonly heads: number;
}

/** How many HEADs one slice may need. They must end before its listing writes expire: at 100 ms each and two at a time, they take 5 s. */
const SLICE_HEADS_MAX = 100;

/** A listing page's objects from this number on, and how many HEADs the slice may still need. */
interface Rest {
  readonly page: FeedPage;
  readonly listedFrom: number;
  readonly headsMax: number;
}

/** Compares a listing page from object number `listedFrom` on, up to its end or as many HEADs as one slice may need. Throws the store's fault. */
async function nextSlice(request: TurnRequest, page: FeedPage, listedFrom: number, scan: ScanFeed): Promise<ComparedSlice> {
  let slice = await comparePart(request, { page, listedFrom, headsMax: SLICE_HEADS_MAX }, scan);
  // two scan pages for one listing page make one slice, because each slice with a difference costs a read and a bulk request
  while (!slice.isWhole && slice.heads < SLICE_HEADS_MAX) {
    const rest = { page, listedFrom: slice.listedTo, headsMax: SLICE_HEADS_MAX - slice.heads };
    slice = joined(slice, await comparePart(request, rest, scan));
  }
  return slice;
}

/** Compares as much of the page as the scan's current page covers. */
async function comparePart(request: TurnRequest, { page, ...rest }: Rest, scan: ScanFeed): Promise<ComparedSlice> {
  await scan.fill();
  const needsHead = (comparedKey: ComparedKey): boolean => mayNeedHead(comparedKey, request);
  const through = nearerEnd(page.through, request.upTo);
  const { documents, at: documentsFrom, isEnd: isDocumentsEnd } = scan;
  const sides = { ...rest, listed: page.objects, documents, documentsFrom, isDocumentsEnd, through };
  const slice = compareSides({ ...sides, findsEqual: readsTags(request), enrich: request.bucket.enrich, needsHead });
  scan.at = slice.documentsTo;
  return {
    ...slice,
    listed: page.objects.slice(rest.listedFrom, slice.listedTo),
    scanned: documents.slice(documentsFrom, slice.documentsTo),
    through: slice.isWhole ? (through ?? slice.lastKey) : slice.lastKey,
    heads: slice.comparedKeys.filter(needsHead).length,
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
function mayNeedHead({ kind, unenriched }: ComparedKey, request: Wishes): boolean {
  if (readsTags(request) || kind === 'phantom') return true;
  if (kind === 'missing' || kind === 'stale') return writesFromHead(request);
  return unenriched !== undefined && fillsEnrichment(request);
}

/** Whether the part contains no key after this one; undefined means the end of the listing. */
function isPartEnd({ upTo }: TurnRequest, through: string | undefined): boolean {
  return nearerEnd(through, upTo) === upTo;
}

/** The end that comes first; undefined means the end of all keys. */
function nearerEnd(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return compareKeys(a, b) <= 0 ? a : b;
}

// ── the two sides, read page by page. The next page is requested while the current one is compared ──────────────────────

interface FeedPage {
  readonly objects: readonly ListedObject[];
  /** The listing's time (D), by S3's clock. */
  readonly observedAtMs: number;
  /** From this moment (monotonic) on, nothing of the page may be written (rule 9). Counted from before the request. */
  readonly expiresAtMs: number;
  /** The page covers all keys up to and including this one; undefined: to the end of the listing. */
  readonly through: string | undefined;
}

/** The most keys that S3 returns in one page. */
export const LISTING_PAGE = 1_000;
/** How long a re-index follows pages without keys: at 100 ms each, it passes over nine million deleted versions in a row. */
export const FOLLOW_MS_MAX = 900_000;

/**
 * Lists the part page after page. Each further page is requested when the one before it is taken. `onRequests` is called with the number
 * of requests that were sent. Throws as {@link BucketListing.page} does.
 */
async function* listingPages(
  { listing, clock }: Pick<TurnDependencies, 'listing' | 'clock'>,
  part: TurnRequest,
  onRequests: (count: number) => void,
  signal: AbortSignal,
): AsyncGenerator<FeedPage> {
  const { bucket, prefix } = part;

  function request(after: string): Promise<FeedPage> {
    onRequests(1);
    const startedMs = clock.monotonicMs();
    const page = listing
      .page(bucket, { prefix, after, limit: LISTING_PAGE, followMsMax: FOLLOW_MS_MAX }, signal)
      .then(({ objects, observedAtMs, isTruncated, requests = 1, sentMs = startedMs }) => {
        onRequests(requests - 1);
        // counted for the last request alone, because earlier pages had no keys, and so nothing to write
        return { objects, observedAtMs, expiresAtMs: sentMs + ANSWER_LIFE_MS, through: isTruncated ? objects.at(-1)?.key : undefined };
      });
    // the request may fail before anyone awaits it
    page.catch(() => undefined);
    return page;
  }

  let requested: Promise<FeedPage> | undefined = request(part.after);
  while (requested !== undefined) {
    const page: FeedPage = await requested;
    requested = page.through === undefined || isPartEnd(part, page.through) ? undefined : request(page.through);
    yield page;
  }
}

interface ScanFeed {
  /** The documents of the current page, in key order; those before `at` have been compared. */
  readonly documents: readonly ScannedDocument[];
  at: number;
  /** Whether no documents follow after the current page. */
  readonly isEnd: boolean;
  /** Fetches the next page if all documents of the current one have been compared. Throws the store's fault. */
  fill(): Promise<void>;
}

/**
 * Eight parts hold two pages each in memory. A worker took 354 MiB with pages of 5,000 documents, 292 MiB with 2,500, and 269 MiB with
 * 1,250, which was 8 % slower (measured).
 */
const SCAN_PAGE = 1_500;

/** Scans page after page. The next page is requested once half of the current one has been compared. */
function createScanFeed(scan: ObjectScan, { bucket: { bucket }, prefix, upTo, after }: TurnRequest, signal: AbortSignal): ScanFeed {
  let documents: readonly ScannedDocument[] = [];
  let position = 0;
  let lastKey = after;
  let isEnd = false;
  /** Whether the page requested last is the last one. */
  let isLastRequested = false;
  let requested: Promise<readonly ScannedDocument[]> | undefined;

  async function request(): Promise<readonly ScannedDocument[]> {
    const page = await scan.scan(bucket, { prefix, after: lastKey, limit: SCAN_PAGE, ...(upTo !== undefined && { upTo }) }, signal);
    if (page.length < SCAN_PAGE) isLastRequested = true;
    return page;
  }

  function prefetch(): void {
    if (requested !== undefined || isLastRequested || isEnd) return;
    requested = request();
    requested.catch(() => undefined);
  }

  return {
    get documents() {
      return documents;
    },
    get at() {
      return position;
    },
    set at(value: number) {
      position = value;
      if (position * 2 >= documents.length) prefetch();
    },
    get isEnd() {
      return isEnd;
    },
    async fill() {
      if (isEnd || position < documents.length) return;
      prefetch();
      documents = (await requested) ?? [];
      requested = undefined;
      position = 0;
      lastKey = documents.at(-1)?.key ?? lastKey;
      isEnd = isLastRequested;
    },
  };
}
