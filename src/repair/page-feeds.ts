/** The two sides of a reconcile, read page by page. The next page is requested while the current one is compared. */
import { ANSWER_LIFE_MS } from '../ordering/constants.ts';
import type { ObjectScan, ScannedDocument } from '../store/store.ts';
import type { BucketListing, BucketLocation, ListedObject } from '../aws/storage.ts';
import type { Clock } from '../process/clock.ts';

export interface FeedPage {
  readonly objects: readonly ListedObject[];
  /** The listing's time (D), by S3's clock. */
  readonly observedAtMs: number;
  /** Monotonic: from this moment on nothing of the page may be written (rule 9). Counted from before the request. */
  readonly expiresAtMs: number;
  /** The page covers all keys up to this one, inclusive; undefined: to the end of the listing. */
  readonly through: string | undefined;
}

/** Resolves with the next page; undefined after the last. Throws as {@link BucketListing.page} does. */
export type NextPage = () => Promise<FeedPage | undefined>;

interface ListingFeedOptions {
  readonly listing: BucketListing;
  readonly location: BucketLocation;
  readonly prefix: string;
  readonly after: string;
  /** Whether the part contains no key after this one. */
  readonly isPartEnd: (through: string) => boolean;
  readonly clock: Clock;
  /** Called with the number of requests that were sent. */
  readonly onRequests: (count: number) => void;
  readonly signal: AbortSignal;
}

/** The most keys that S3 returns in one page. */
export const LISTING_PAGE = 1_000;
/** How long a re-index follows pages without keys. At 100 ms each they pass over nine million deleted versions in a row. */
export const FOLLOW_MS_MAX = 900_000;

/** Lists page after page. The first page is requested at once, and each further one when the page before it is taken. */
export function createListingFeed(options: ListingFeedOptions): NextPage {
  const { listing, location, prefix, isPartEnd, clock, onRequests, signal } = options;
  let requested: Promise<FeedPage> | undefined = request(options.after);

  function request(after: string): Promise<FeedPage> {
    onRequests(1);
    const startedMs = clock.monotonicMs();
    const page = listing
      .page(location, { prefix, after, limit: LISTING_PAGE, followMsMax: FOLLOW_MS_MAX }, signal)
      .then(({ objects, observedAtMs, isTruncated, requests = 1, sentMs = startedMs }) => {
        onRequests(requests - 1);
        // of the last request alone: however many pages without keys came before it, they contain nothing to be written
        return { objects, observedAtMs, expiresAtMs: sentMs + ANSWER_LIFE_MS, through: isTruncated ? objects.at(-1)?.key : undefined };
      });
    // it may fail before anyone awaits it
    page.catch(() => undefined);
    return page;
  }

  return async function nextPage() {
    if (requested === undefined) return undefined;
    const page = await requested;
    requested = page.through === undefined || isPartEnd(page.through) ? undefined : request(page.through);
    return page;
  };
}

export interface ScanFeed {
  /** The documents of the current page, in key order; those before `at` have been compared. */
  readonly documents: readonly ScannedDocument[];
  at: number;
  /** Whether no documents follow after the current page. */
  readonly isEnd: boolean;
  /** Fetches the next page if all documents of the current one have been compared. Throws the store's fault. */
  fill(): Promise<void>;
}

interface ScanFeedOptions {
  readonly scan: ObjectScan;
  readonly bucket: string;
  readonly prefix: string;
  readonly after: string;
  readonly upTo: string | undefined;
  readonly signal: AbortSignal;
}

/**
 * Eight parts hold two pages each in memory. Measured: a worker took 354 MiB with pages of 5,000 documents, 292 MiB with
 * 2,500, and 269 MiB with 1,250, which was 8 % slower.
 */
const SCAN_PAGE = 1_500;

/** Scans page after page. The next page is requested once half of the current one has been compared. */
export function createScanFeed({ scan, bucket, prefix, upTo, after, signal }: ScanFeedOptions): ScanFeed {
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
