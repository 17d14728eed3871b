/**
 * One turn of a reconcile on one part of a job: it compares the listing with the scan, slice by slice, in bounded memory.
 *
 *   listing pages ─┐
 *                  ├─► slices ─► settled, a few at a time ─► committed in key order: the cursor advances
 *   scan pages ────┘
 *
 * A slice is committed when all of its compared keys have ended. The next turn repeats what a turn has not committed, and finds
 * it equal. Nothing is concluded about keys that no listing page covers.
 */
import type { BucketRecord } from '../../domain/bucket.ts';
import { faultOf, type Fault } from '../../domain/fault.ts';
import type { JobMode } from '../../domain/reindex/job.ts';
import type { ListingPlace } from '../../domain/reindex/passed-pages.ts';
import type { TurnEnd, TurnProgress } from '../../domain/reindex/parts.ts';
import { withPlainFallbacks } from '../observing/enricher.ts';
import type { ObjectIndex, ObjectScan } from '../ports/object-index.ts';
import type { BucketListing, ObjectStorage } from '../ports/storage.ts';
import type { Circuits } from '../serving/circuits.ts';
import type { WriteAll } from './background-writer.ts';
import { createHeads } from './heads.ts';
import { createNextSlice, nearerEnd, type ComparedSlice } from './next-slice.ts';
import { createListingFeed, createScanFeed, LISTING_PAGE, type EmptyPage, type FeedPage, type ScanFeed } from './page-feeds.ts';
import { createSettleSlice, type SettleSlice, type SliceEnd } from './settle-slice.ts';
import { createTurnProgress, type SliceSides } from './turn-progress.ts';
import type { WithPorts } from '../ports/ports.ts';

export interface TurnRequest {
  readonly bucket: BucketRecord;
  readonly prefix: string;
  /** The part's cursor: exclusive. */
  readonly after: string;
  /** Where the listing after the cursor continues: an earlier turn of the same job has passed pages without keys. Another job's may be older than this one's floor. */
  readonly place?: ListingPlace;
  /** Whether the last turn has written keys after the cursor. All keys are read before they are written then: those are counted, and the scan may not show them yet. */
  readonly readsFirst?: boolean;
  /** Inclusive; absent: to the end. */
  readonly upTo?: string;
  /** `report` writes nothing. */
  readonly mode: JobMode;
  /** Whether to write documents that only lack a field which the listing contains, or the enrichment of their bucket. */
  readonly fill: boolean;
  /** Whether to read the tags of every object, where the bucket's documents have tags. */
  readonly tags: boolean;
}

export interface TurnControls {
  /** Reserves up to `count` (1 to 500) tombstones of the job; resolves with how many were granted. Fewer: the deletion limit holds. */
  readonly reserve: (count: number) => Promise<number>;
  /** Whether the tombstones that the last call of reserve did not grant are held back, so that the turn continues without them. Default: the turn ends, and the slice is compared again. */
  readonly holdsBack?: () => boolean;
  /** Called between slices, with the key up to which the turn will have compared if it ends there. True ends it: a pause, a stop or a lost lease. */
  readonly shouldEnd: (through: string) => boolean;
  /** The end of the part, read for each slice, since a cut may shorten the part. */
  readonly upTo: () => string | undefined;
  /** The most listing pages that the turn compares, or passes because they have no keys. */
  readonly pagesMax: number;
  readonly durationMaxMs: number;
  /** Called after each slice, each page without keys and each write with what the turn has done so far. Any of these may be stored. */
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
  /** The number of HEADs that run at the same time over all turns of the process. Default 48: fewer than the live path's default. */
  readonly headConcurrency?: number;
}

const HEADS_MAX = 48;
/**
 * The number of slices that all turns settle at the same time, so that pages are compared while bulk requests are in flight.
 * Each holds a listing page in memory and its documents: one and a half times the default number of bulk requests, so that the
 * next one is ready when one is answered. The turns share them: four turns or more have one each, and a single one has enough to
 * keep the index busy. Of slices with HEADs a turn settles two,
 * so that few HEADs are sent before the tombstones are reserved.
 */
const SETTLING = { ofAll: 6, ofTurn: 6, withHeads: 2 };
/**
 * The number of slices of a report that are settled at the same time: one with a difference waits five seconds, so that a part
 * in which every page has one is compared at 3,200 keys a second.
 */
const SETTLING_MAX_REPORT = 16;
/** Passes of one turn whose answers may expire because the store is slow; after that the turn ends with a fault. */
const EXPIRIES_MAX = 3;
const EXPIRED: Fault = {
  code: 'index.overloaded',
  reason: 'the index or S3 was so slow that the answers of S3 expired before they could be written',
};

/** How many slices each turn settles at the same time, when this many turns run. */
export function settlingMaxOf(turns: number): number {
  return Math.max(1, Math.min(SETTLING.ofTurn, Math.floor(SETTLING.ofAll / turns)));
}

/** Creates the turn function, once for the process: all turns share its HEAD concurrency and the number of slices being settled. */
export function createReconcileTurn(dependencies: TurnDependencies): ReconcileTurn {
  const head = createHeads({ ...dependencies, concurrency: dependencies.headConcurrency ?? HEADS_MAX });
  const writeAll = withPlainFallbacks(dependencies.writeAll, dependencies.telemetry);
  const settle = createSettleSlice({ ...dependencies, writeAll, head });

  let turns = 0;
  const settlingMax = (): number => settlingMaxOf(turns);

  return async function reconcileTurn(request, controls, signal) {
    signal.throwIfAborted();
    const turn = createTurn({ ...dependencies, settle, settlingMax }, request, { controls, signal });
    let end: PassEnd = { kind: 'expired' };
    turns += 1;
    try {
      for (let pass = 1; end.kind === 'expired' && pass <= EXPIRIES_MAX; pass += 1) end = await turn.pass();
    } finally {
      turns -= 1;
    }
    signal.throwIfAborted();
    const result = turn.progress();
    // without progress, which the next turn must not try for at once
    const hasMoved = result.cursor !== request.after || result.place?.token !== request.place?.token;
    if (end.kind === 'outOfTime' && !hasMoved) end = { kind: 'expired' };
    return { ...result, ...resultOf(end) };
  };
}

type PassEnd =
  | { readonly kind: 'done' | 'ended' | 'outOfTime' | 'refused' | 'expired' }
  | { readonly kind: 'fault'; readonly fault: Fault };

function resultOf(end: PassEnd): Pick<TurnEnd, 'done' | 'fault'> {
  switch (end.kind) {
    case 'done':
      return { done: true };
    case 'ended':
    case 'outOfTime':
    case 'refused':
      return { done: false };
    case 'expired':
      return { done: false, fault: EXPIRED };
    case 'fault':
      return { done: false, fault: end.fault };
  }
}

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
  const { clock, settle, settlingMax } = parts;
  const progress = createTurnProgress(request, controls);
  const deadlineMs = clock.monotonicMs() + controls.durationMaxMs;
  let pagesLeft = controls.pagesMax;
  let passes = 0;
  const nextSlice = createNextSlice(request, partEnd);

  /** Compares from the cursor on. Slices that are not committed at its end are dropped, and the next pass repeats them. */
  async function pass(): Promise<PassEnd> {
    const ending = new AbortController();
    const settling: Settling[] = [];
    passes += 1;
    try {
      return await reconcileFromCursor(settling, AbortSignal.any([signal, ending.signal]));
    } catch (error) {
      return await afterFault(settling, faultOf(error));
    } finally {
      ending.abort(new Error('the turn has ended'));
      await Promise.allSettled(settling.map(({ settled }) => settled));
    }
  }

  async function reconcileFromCursor(settling: Settling[], passSignal: AbortSignal): Promise<PassEnd> {
    const { bucket, prefix } = request;
    const after = progress.cursor;
    const pages = { pagesMax: pagesLeft, isPartEnd, place: progress.place };
    const onRequest = progress.listRequested;
    const nextPage = createListingFeed({ ...parts, ...pages, location: bucket, prefix, after, onRequest, signal: passSignal });
    const upTo = controls.upTo() ?? request.upTo;
    const wanted = (): number => pagesLeft * LISTING_PAGE;
    const scan = createScanFeed({ ...parts, bucket: bucket.bucket, prefix, after, upTo, wanted, signal: passSignal });

    for (let page = await nextPage(); page !== undefined; page = await nextPage()) {
      const end = 'place' in page ? passEmpty(page, settling) : await comparePage(page, scan, { settling, passSignal });
      if (end !== undefined) return end.kind === 'refused' || end.kind === 'expired' ? end : drained(settling, end);
      pagesLeft -= 1;
    }
    return drained(settling, { kind: 'ended' });
  }

  /** Nothing is concluded about the keys that the page lacks. */
  function passEmpty(page: EmptyPage, settling: readonly Settling[]): PassEnd | undefined {
    progress.passed(page);
    return endBetween(settling);
  }

  /** Whether the turn ends here, between two slices or pages. */
  function endBetween(settling: readonly Settling[]): PassEnd | undefined {
    if (controls.shouldEnd(settling.at(-1)?.through ?? progress.cursor)) return { kind: 'ended' };
    return clock.monotonicMs() >= deadlineMs ? { kind: 'outOfTime' } : undefined;
  }

  /** Undefined: every slice of the page is being settled or committed, and the part contains more keys. */
  async function comparePage(
    page: FeedPage,
    scan: ScanFeed,
    { settling, passSignal }: { readonly settling: Settling[]; readonly passSignal: AbortSignal },
  ): Promise<PassEnd | undefined> {
    const { observedAtMs, expiresAtMs } = page;
    for (let listedFrom = 0, isWhole = false; !isWhole;) {
      const early = endBetween(settling);
      if (early !== undefined) return early;
      const slice = await nextSlice(page, listedFrom, scan);
      const earlier = [...settling];
      const { tombstones, headRequested, written } = progress;
      const work = {
        ...request,
        tombstones,
        headRequested,
        written,
        comparedKeys: slice.comparedKeys,
        observedAtMs,
        expiresAtMs,
        // a later pass or turn may find what an earlier one wrote, before the scan shows it
        writesUnread: passes === 1 && request.readsFirst !== true,
        earlierEnded: () => allEnded(earlier),
      };
      settling.push(beingSettled(slice, settle(work, passSignal)));
      ({ listedTo: listedFrom, isWhole } = slice);
      const end = await makeRoom(settling);
      if (end !== undefined) return end;
    }
    return isPartEnd(page.through) ? { kind: 'done' } : undefined;
  }

  /** Commits the slices that have ended, so that people see what is counted, and further ones until there is room for the next. */
  async function makeRoom(settling: Settling[]): Promise<PassEnd | undefined> {
    const max = (): number => (request.mode === 'report' ? SETTLING_MAX_REPORT : roomFor(settling, settlingMax()));
    while (settling.length >= max() || settling[0]?.hasEnded === true) {
      const end = await commitFirst(settling);
      if (end !== undefined) return end;
    }
    return undefined;
  }

  /** Whether the part contains no key after this one; undefined is the end of the listing. */
  function isPartEnd(through: string | undefined): boolean {
    return nearerEnd(through, partEnd()) === partEnd();
  }

  function partEnd(): string | undefined {
    return controls.upTo() ?? request.upTo;
  }

  /** Undefined: the slice is committed. */
  async function commitFirst(settling: Settling[]): Promise<PassEnd | undefined> {
    const [first] = settling;
    if (first === undefined) return undefined;
    const end = await first.settled;
    settling.shift();
    if (end.kind !== 'ended') return end;
    progress.commit(first, end.endings);
    return undefined;
  }

  async function drained(settling: Settling[], end: PassEnd): Promise<PassEnd> {
    while (settling.length > 0) {
      const early = await commitFirst(settling);
      if (early !== undefined) return early;
    }
    return end;
  }

  /** Commits the slices before the fault. */
  async function afterFault(settling: Settling[], fault: Fault): Promise<PassEnd> {
    try {
      return await drained(settling, { kind: 'fault', fault });
    } catch (error) {
      return { kind: 'fault', fault: faultOf(error) };
    }
  }

  return { pass, progress: progress.sofar };
}

/** How many slices of a job that writes may be settled at the same time. */
function roomFor(settling: readonly Settling[], settlingMax: number): number {
  return settling.some(({ heads }) => heads > 0) ? Math.min(SETTLING.withHeads, settlingMax) : settlingMax;
}

function beingSettled(compared: ComparedSlice, settled: Promise<SliceEnd>): Settling {
  const { listed, scanned, through, heads } = compared;
  const entry: Settling = { listed, scanned, through, heads, settled, hasEnded: false };
  const hasEnded = (): void => void (entry.hasEnded = true);
  // awaited in key order: by then an earlier slice may have ended the pass
  settled.then(hasEnded, hasEnded);
  return entry;
}

/** Resolves when all of these slices have ended; rejects when one of them did not end. */
async function allEnded(settling: readonly Settling[]): Promise<void> {
  for (const { settled } of settling) if ((await settled).kind !== 'ended') throw new Error('an earlier slice did not end');
}
