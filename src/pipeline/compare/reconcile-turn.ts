/**
 * One turn of a reconcile on one range of keys: the listing against the scan, slice by slice, in flat memory.
 *
 *   listing pages ─┐
 *                  ├─► slices ─► settled, a few at once ─► committed in key order: the cursor moves on
 *   scan pages ────┘
 *
 * A slice is committed when all its findings came to their ends; what a turn has not committed is done again by the next
 * one, which finds it equal. Nothing is concluded about keys that no listing page covers.
 */
import type { BucketRecord } from '../../domain/bucket.ts';
import type { Fault } from '../../domain/fault.ts';
import { faultOf } from '../../domain/fault.ts';
import { compareKeys } from '../../domain/documents/key-order.ts';
import { compareSides, type Finding } from '../../domain/reindex/compare.ts';
import type { DifferenceExamples, ReconcileCounts } from '../../domain/reindex/counts.ts';
import type { JobMode } from '../../domain/reindex/job.ts';
import type { ObjectScan } from '../ports/object-index.ts';
import type { BucketListing } from '../ports/storage.ts';
import type { Clock } from '../ports/clock.ts';
import type { ObjectIndex } from '../ports/object-index.ts';
import type { ObjectStorage } from '../ports/storage.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { BackgroundWriter } from './background-writer.ts';
import { createHeads } from './heads.ts';
import { createListingFeed, createScanFeed, LISTING_PAGE, type FeedPage, type ScanFeed } from './page-feeds.ts';
import { createSettleSlice, looksAtContent, type SettleSlice, type SliceEnd } from './settle-slice.ts';
import { createTurnProgress, type SliceSides } from './turn-progress.ts';

export interface TurnRequest {
  readonly bucket: BucketRecord;
  readonly prefix: string;
  /** The range's cursor: exclusive. */
  readonly after: string;
  /** Inclusive; absent: to the end. */
  readonly upTo?: string;
  /** `report` writes nothing. */
  readonly mode: JobMode;
  /** Documents that lack a field which the listing gives are written too. */
  readonly fill: boolean;
  /** When the job started. */
  readonly startedAtMs?: number;
}

export interface TurnControls {
  /** Reserves up to `count` (1 to 500) tombstones of the job's brake; answers how many were granted (fewer: the brake holds). */
  readonly reserve: (count: number) => Promise<number>;
  /** Asked between slices: true ends the turn there (a split, a pause, a stop, a lost lease). */
  readonly shouldEnd: () => boolean;
  /** The end of the range may have come nearer by a split: asked for each slice. */
  readonly upTo: () => string | undefined;
  /** Listing pages. */
  readonly pagesMax: number;
  readonly durationMaxMs: number;
}

export interface TurnResult {
  /** Keys up to here, inclusive, are compared and every effect is durable. */
  readonly cursor: string;
  /** The end of the range, or of the listing, was reached. */
  readonly done: boolean;
  /** Of this turn. `held` is the brake's to tell. */
  readonly counts: ReconcileCounts;
  readonly examples: DifferenceExamples;
  /** The turn ended early because of it; what the cursor says still holds. */
  readonly fault?: Fault;
  /** The brake holds so many phantoms of one slice back; the cursor is before the first of them. */
  readonly braked?: number;
}

/** Rejects with the signal's reason and nothing else. */
export type ReconcileTurn = (request: TurnRequest, controls: TurnControls, signal: AbortSignal) => Promise<TurnResult>;

interface TurnDependencies {
  readonly objects: ObjectIndex;
  readonly scan: ObjectScan;
  readonly listing: BucketListing;
  readonly storage: ObjectStorage;
  readonly writer: BackgroundWriter;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** HEADs at once, of all turns of the process. Default 16: half of what the live path has by default. */
  readonly headConcurrency?: number;
}

const HEADS_MAX = 16;
/** HEADs of one slice, all done before its listing writes expire: at 100 ms and a share of 2 HEADs at once, 5 s. */
const LOOKS_MAX = 100;
/** A bulk answer is not waited for before the next slice is compared. Each holds a listing page in memory: four of eight ranges were no faster, with 20 % more memory. */
const SETTLING_MAX = 2;
/** A store that lets answers expire again and again within one turn: the range is given back. */
const EXPIRIES_MAX = 3;
const EXPIRED: Fault = { code: 'index.overloaded', reason: 'the store was so slow that listing pages expired again and again' };

/** Creates the turn. One for the process: its turns share the HEADs. */
export function createReconcileTurn(dependencies: TurnDependencies): ReconcileTurn {
  const head = createHeads({ ...dependencies, concurrency: dependencies.headConcurrency ?? HEADS_MAX });
  const settle = createSettleSlice({ ...dependencies, head });

  return async function reconcileTurn(request, controls, signal) {
    signal.throwIfAborted();
    const turn = createTurn({ ...dependencies, settle }, request, { controls, signal });
    let end: PassEnd = { kind: 'expired' };
    for (let pass = 1; end.kind === 'expired' && pass <= EXPIRIES_MAX; pass += 1) end = await turn.pass();
    signal.throwIfAborted();
    return { ...turn.result(), ...resultOf(end) };
  };
}

type PassEnd =
  | { readonly kind: 'done' | 'ended' | 'expired' }
  | { readonly kind: 'braked'; readonly waiting: number }
  | { readonly kind: 'fault'; readonly fault: Fault };

function resultOf(end: PassEnd): Pick<TurnResult, 'done' | 'fault' | 'braked'> {
  switch (end.kind) {
    case 'done':
      return { done: true };
    case 'ended':
      return { done: false };
    case 'expired':
      return { done: false, fault: EXPIRED };
    case 'braked':
      return { done: false, braked: end.waiting };
    case 'fault':
      return { done: false, fault: end.fault };
  }
}

/** A slice on its way to its end. */
interface Settling extends SliceSides {
  readonly settled: Promise<SliceEnd>;
}

interface TurnParts extends TurnDependencies {
  readonly settle: SettleSlice;
}

interface TurnContext {
  readonly controls: TurnControls;
  readonly signal: AbortSignal;
}

function createTurn(parts: TurnParts, request: TurnRequest, { controls, signal }: TurnContext) {
  const { clock, settle } = parts;
  const progress = createTurnProgress(request.after, controls.reserve);
  const deadlineMs = clock.monotonicMs() + controls.durationMaxMs;
  let pagesLeft = controls.pagesMax;
  const isLook = ({ kind }: Finding): boolean =>
    kind === 'phantom' || (looksAtContent(request) && (kind === 'missing' || kind === 'stale'));

  /** From the cursor on, until something ends it. What is on its way then is dropped: the next pass does it again. */
  async function pass(): Promise<PassEnd> {
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

  async function reconcileFromCursor(settling: Settling[], passSignal: AbortSignal): Promise<PassEnd> {
    const { bucket, prefix } = request;
    const after = progress.cursor;
    const asked = progress.listRequested;
    const pages = { pagesMax: pagesLeft, isRangeEnd };
    const listing = createListingFeed({ ...parts, ...pages, place: bucket, prefix, after, asked, signal: passSignal });
    const upTo = controls.upTo() ?? request.upTo;
    const wanted = (): number => pagesLeft * LISTING_PAGE;
    const scan = createScanFeed({ ...parts, bucket: bucket.bucket, prefix, after, upTo, wanted, signal: passSignal });

    for (let page = await listing.next(); page !== undefined; page = await listing.next()) {
      const end = await comparePage(page, scan, { settling, passSignal });
      if (end !== undefined) return end.kind === 'stopped' ? drained(settling, { kind: 'ended' }) : end;
      if (isRangeEnd(page.through)) return drained(settling, { kind: 'done' });
      pagesLeft -= 1;
    }
    return drained(settling, { kind: 'ended' });
  }

  /** Undefined: the whole page is on its way. */
  async function comparePage(
    { objects, observedAtMs, expiresAtMs, through: listedThrough }: FeedPage,
    scan: ScanFeed,
    { settling, passSignal }: { readonly settling: Settling[]; readonly passSignal: AbortSignal },
  ): Promise<PassEnd | { readonly kind: 'stopped' } | undefined> {
    for (let listedFrom = 0, isWhole = false; !isWhole;) {
      if (controls.shouldEnd() || clock.monotonicMs() >= deadlineMs) return { kind: 'stopped' };
      await scan.fill();
      const through = nearer(listedThrough, rangeEnd());
      const { documents, at: documentsFrom, isEnd: isDocumentsEnd } = scan;
      const sides = { listed: objects, listedFrom, documents, documentsFrom, isDocumentsEnd, through };
      const slice = compareSides({ ...sides, looksMax: LOOKS_MAX, isLook });
      const work = {
        ...request,
        ...progress.work,
        isReport: request.mode === 'report',
        findings: slice.findings,
        observedAtMs,
        expiresAtMs,
      };
      const earlier = [...settling];
      const settled = settle({ ...work, turn: () => allEnded(earlier) }, passSignal);
      // read when its time comes; by then an earlier one may have ended the pass
      settled.catch(() => undefined);
      settling.push({
        settled,
        listed: objects.slice(listedFrom, slice.listedTo),
        scanned: documents.slice(documentsFrom, slice.documentsTo),
        equal: slice.equal,
        through: slice.isWhole ? (through ?? slice.lastKey) : slice.lastKey,
      });
      ({ listedTo: listedFrom, isWhole } = slice);
      scan.at = slice.documentsTo;
      const end = settling.length < SETTLING_MAX ? undefined : await commitFirst(settling);
      if (end !== undefined) return end;
    }
    return undefined;
  }

  /** Whether nothing of the range comes after this key; undefined is the listing's end. */
  function isRangeEnd(through: string | undefined): boolean {
    return nearer(through, rangeEnd()) === rangeEnd();
  }

  function rangeEnd(): string | undefined {
    return controls.upTo() ?? request.upTo;
  }

  /** Undefined: it is committed. */
  async function commitFirst(settling: Settling[]): Promise<PassEnd | undefined> {
    const [first] = settling;
    if (first === undefined) return undefined;
    const end = await first.settled;
    settling.shift();
    if (end.kind === 'expired') return end;
    progress.commit(first, end);
    return end.kind === 'braked' ? end : undefined;
  }

  async function drained(settling: Settling[], end: PassEnd): Promise<PassEnd> {
    while (settling.length > 0) {
      const early = await commitFirst(settling);
      if (early !== undefined) return early;
    }
    return end;
  }

  /** Slices before the fault still come to their ends. */
  async function afterFault(settling: Settling[], fault: Fault): Promise<PassEnd> {
    try {
      return await drained(settling, { kind: 'fault', fault });
    } catch (error) {
      return { kind: 'fault', fault: faultOf(error) };
    }
  }

  return { pass, result: progress.result };
}

/** Resolves when every slice so far came to its end; rejects when one did not. */
async function allEnded(settling: readonly Settling[]): Promise<void> {
  for (const { settled } of settling) if ((await settled).kind !== 'ended') throw new Error('an earlier slice did not end');
}

/** Of two ends of a range the one that comes first; undefined is the end of all keys. */
function nearer(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return compareKeys(a, b) <= 0 ? a : b;
}
