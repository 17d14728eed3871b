/**
 * A turn that makes the requests of the product's turn and compares nothing: a page is a number of keys. It takes the place of
 * reconcile-turn.ts where the keys of a hundred million objects would take hours of real time; what is measured then are jobs,
 * parts and requests. The product's own turn makes the same requests, which a test asserts.
 */
import { noCounts } from '../../../src/domain/reindex/counts.ts';
import type { TurnEnd } from '../../../src/domain/reindex/parts.ts';
import { compareKeys } from '../../../src/domain/documents/key-order.ts';
import { settlingMaxOf, type ReconcileTurn, type TurnControls, type TurnRequest } from '../../../src/pipeline/compare/reconcile-turn.ts';
import { createListingFeed, LISTING_PAGE, type FeedPage } from '../../../src/pipeline/compare/page-feeds.ts';
import type { BucketListing } from '../../../src/pipeline/ports/storage.ts';
import type { HollowIndex, Shared } from './servers.ts';

/** As in the product's turn. */
const EXPIRIES_MAX = 3;
const SCAN_PAGE = 1_500;
/** As the worker's settings have it. */
const BULKS_MAX = 4;

interface HollowParts {
  readonly shared: Shared;
  /** Whole pages have their last object only. */
  readonly listing: BucketListing;
  readonly index: HollowIndex;
  readonly isFull: boolean;
}

type Ended = 'done' | 'ended' | 'expired';

/** A page that is being settled, from one number to another. */
interface Settling {
  readonly from: number;
  readonly to: number;
  readonly settled: Promise<Ended>;
}

/** Creates the turns of one worker. */
export function createHollowTurn(parts: HollowParts): ReconcileTurn {
  const bulks = createTurnstile(BULKS_MAX);
  let turns = 0;
  return async function hollowTurn(request, controls, signal) {
    const turn = createTurn({ ...parts, bulks, settlingMax: () => settlingMaxOf(turns) }, request, { controls, signal });
    let end: Ended = 'expired';
    turns += 1;
    try {
      for (let pass = 1; end === 'expired' && pass <= EXPIRIES_MAX; pass += 1) end = await turn.pass();
    } finally {
      turns -= 1;
    }
    signal.throwIfAborted();
    return turn.result(end);
  };
}

function createTurn(
  { shared, listing, index, isFull, bulks, settlingMax }: HollowParts & { readonly bulks: Turnstile; readonly settlingMax: () => number },
  { bucket, prefix, after, upTo }: TurnRequest,
  { controls, signal }: { readonly controls: TurnControls; readonly signal: AbortSignal },
) {
  const { clock, objects } = shared;
  const deadlineMs = clock.monotonicMs() + controls.durationMaxMs;
  let cursor = objects.firstAfter(after);
  let pagesLeft = controls.pagesMax;
  let listRequests = 0;
  let listed = 0;

  const partEnd = (): number => {
    const end = controls.upTo() ?? upTo;
    return end === undefined ? objects.count : objects.firstAfter(end);
  };
  const isPartEnd = (through: string | undefined): boolean => {
    const end = controls.upTo() ?? upTo;
    return through === undefined || (end !== undefined && compareKeys(through, end) >= 0);
  };

  async function pass(): Promise<Ended> {
    const ending = new AbortController();
    const passSignal = AbortSignal.any([signal, ending.signal]);
    const settling: Settling[] = [];
    try {
      return await fromCursor(settling, passSignal);
    } finally {
      ending.abort(new Error('the turn has ended'));
      await Promise.allSettled(settling.map(({ settled }) => settled));
    }
  }

  async function fromCursor(settling: Settling[], passSignal: AbortSignal): Promise<Ended> {
    const onRequests = (count: number): void => void (listRequests += count);
    const pages = { listing, location: bucket, prefix, after: cursor === 0 ? '' : objects.keyAt(cursor - 1) };
    const nextPage = createListingFeed({ ...pages, pagesMax: pagesLeft, isPartEnd, clock, onRequests, signal: passSignal });
    const scanTo = createScan(passSignal);
    let from = cursor;
    for (let page = await nextPage(); page !== undefined; page = await nextPage()) {
      if (controls.shouldEnd(from === 0 ? '' : objects.keyAt(from - 1)) || clock.monotonicMs() >= deadlineMs)
        return drained(settling, 'ended');
      const to = Math.min(partEnd(), page.through === undefined ? objects.count : objects.firstAfter(page.through));
      await scanTo(from, to);
      settling.push({ from, to, settled: settle(from, to, page) });
      from = to;
      if (settling.length >= settlingMax() && (await commitFirst(settling)) === 'expired') return 'expired';
      if (isPartEnd(page.through)) return drained(settling, 'done');
      pagesLeft -= 1;
    }
    return drained(settling, 'ended');
  }

  /** Scans as far as a page needs it, one scan page ahead. */
  function createScan(passSignal: AbortSignal): (from: number, to: number) => Promise<void> {
    let requested: Promise<void> | undefined;
    let scannedTo = cursor;
    const request = (): Promise<void> => {
      const documents = isFull ? Math.max(0, Math.min(SCAN_PAGE, pagesLeft * LISTING_PAGE, partEnd() - scannedTo)) : 0;
      scannedTo = isFull ? scannedTo + documents : objects.count;
      const page = index.scan(documents, passSignal);
      page.catch(() => undefined);
      return page;
    };
    return async (_, to) => {
      if (requested === undefined) requested = request();
      while (requested !== undefined) {
        await requested;
        if (scannedTo >= to) {
          return;
        }
        requested = request();
      }
    };
  }

  async function settle(from: number, to: number, { expiresAtMs }: FeedPage): Promise<Ended> {
    if (isFull || from === to) return 'done';
    return bulks.pass(async () => {
      if (clock.monotonicMs() >= expiresAtMs) return 'expired';
      await index.write(from, to - from);
      return 'done';
    });
  }

  async function commitFirst(settling: Settling[]): Promise<Ended> {
    const [first] = settling;
    if (first === undefined) return 'done';
    const end = await first.settled;
    settling.shift();
    if (end === 'expired') return end;
    cursor = first.to;
    listed += first.to - first.from;
    return 'done';
  }

  async function drained(settling: Settling[], end: Ended): Promise<Ended> {
    while (settling.length > 0) if ((await commitFirst(settling)) === 'expired') return 'expired';
    return end;
  }

  function result(end: Ended): TurnEnd {
    const compared = isFull ? { scanned: listed } : { differed: listed, missing: listed, written: listed };
    return {
      cursor: cursor === 0 ? '' : objects.keyAt(cursor - 1),
      done: end === 'done',
      counts: { ...noCounts, ...compared, listed, listRequests },
      examples: {},
      ...(end === 'expired' && { fault: { code: 'index.overloaded', reason: 'the listing pages expired' } }),
    };
  }

  return { pass, result };
}

interface Turnstile {
  /** Runs the work once fewer than the most run. */
  pass<Result>(work: () => Promise<Result>): Promise<Result>;
}

function createTurnstile(most: number): Turnstile {
  const waiting: (() => void)[] = [];
  let running = 0;
  return {
    async pass(work) {
      if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve));
      else running += 1;
      try {
        return await work();
      } finally {
        const next = waiting.shift();
        if (next === undefined) running -= 1;
        else next();
      }
    },
  };
}
