/**
 * The first page of a job's listing that has keys: it says whether the bucket is empty, and whether its listing must be cut.
 *
 *   request ─► a key, or the end of the listing ──────────────────────────► the job begins
 *     ▲  └───► no key, and more follow ─► 10 s are over: the place is stored, the job is due again ─┐
 *     └────────────────────────────────────────────────────────────────────────────────────────────┘
 */
import { faultOf } from '../../domain/fault.ts';
import type { BucketRecord } from '../../domain/bucket.ts';
import { hasEnded, type JobRecord } from '../../domain/reindex/job.ts';
import { hasPassedMore, passedPages, placeAfter, type ListingPlace } from '../../domain/reindex/passed-pages.ts';
import { answerTo } from '../../domain/reindex/range-transitions.ts';
import { LISTING_PAGE } from '../compare/page-feeds.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import type { BucketListing, ListingPage } from '../ports/storage.ts';
import { refs, updateRecord } from '../records/stored.ts';

/** How long one step follows pages without keys: a crash repeats no more, and other work gets the worker's slot. */
const FOLLOWED_MS_MAX = 10_000;
/** Until the next attempt, if this one has passed no more pages than an earlier one. */
const RETRY_MS = 10_000;

/** When the job is due again, if the page was not found yet. */
interface Later {
  readonly againMs: number;
}

/** The first page, and the number of requests that this attempt took. */
interface FirstPage {
  readonly first: ListingPage;
  readonly requests: number;
}

interface Wanted {
  readonly job: JobRecord;
  readonly bucket: BucketRecord;
  /** Until this time, by S3's clock, the job does not begin. */
  readonly waitUntilMs: number;
}

interface FirstPageDependencies {
  readonly state: StateStore;
  readonly listing: BucketListing;
  readonly clock: Clock;
}

/** The first page of the job's listing, as one request. */
export function firstOf({ prefix }: Pick<JobRecord, 'prefix'>, place?: ListingPlace): Parameters<BucketListing['page']>[1] {
  return { prefix, after: '', limit: LISTING_PAGE, from: place ?? 'start' };
}

/** Creates the function. It resolves with the page, or with when to look again. It throws the faults of S3 and of the store. */
export function createFirstPage({ state, listing, clock }: FirstPageDependencies) {
  return async function firstPage({ job, bucket, waitUntilMs }: Wanted, signal: AbortSignal): Promise<FirstPage | Later> {
    const startedMs = clock.monotonicMs();
    let place = placeAfter(job.passed, '');
    let requests = 0;
    try {
      while (requests === 0 || clock.monotonicMs() - startedMs < FOLLOWED_MS_MAX) {
        requests += 1;
        const first = await listing.page(bucket, firstOf(job, place), signal);
        const leftMs = waitUntilMs - first.observedAtMs;
        if (leftMs > 0 && place === undefined) return { againMs: leftMs };
        if (first.place === undefined) return { first, requests };
        ({ place } = first);
      }
    } catch (error) {
      // so that the next attempt continues there, or at the beginning if the place is what was refused
      await keep(job, { place, requests, isRefused: !signal.aborted && answerTo(faultOf(error).code) === 'retry' });
      throw error;
    }
    await keep(job, { place, requests, isRefused: false });
    return { againMs: hasPassedMore(job.passed, '', place) ? 0 : RETRY_MS };
  };

  /** Stores the place in the job, unless it has begun or ended meanwhile. */
  async function keep(
    { id }: JobRecord,
    { requests, ...at }: { readonly place: ListingPlace | undefined; readonly requests: number; readonly isRefused: boolean },
  ): Promise<void> {
    await updateRecord(state, refs.job(id), (current) => {
      if (current === undefined || hasEnded(current) || current.comparingAtMs !== undefined) return undefined;
      const { passed: before, ...rest } = current;
      const passed = passedPages(before, '', at);
      const listRequestsAtStart = (current.listRequestsAtStart ?? 0) + requests;
      return { ...rest, listRequestsAtStart, ...(passed !== undefined && { passed }) };
    });
  }
}
