/**
 * Pages without keys. S3 may answer a LIST with a page that has no key and says that more follow, as often as it likes: it
 * does so where it passes over deleted versions. Only the page's token leads on, because there is no key to continue after.
 */
import { z } from 'zod';

/** Where a listing continues behind pages without keys. */
export const listingPlaceSchema = z.object({
  /** S3's continuation token. It is opaque, and S3 does not say that it expires. A listing whose token is refused starts over. */
  token: z.string(),
  /** The time of the first of these pages (D): what they did not contain was absent then. */
  observedAtMs: z.number(),
  /** How many pages have been passed. */
  pages: z.number(),
  /** The token of an earlier page, by which a listing that goes in a circle is found. */
  mark: z.string(),
});
export type ListingPlace = z.infer<typeof listingPlaceSchema>;

/** What is stored of pages without keys, so that any worker continues behind them. */
export const passedPagesSchema = z.object({
  /** The pages follow this key. They count only while the comparison is there. */
  after: z.string(),
  /** Absent: S3 refused the token, and the listing starts over. */
  place: listingPlaceSchema.exactOptional(),
  /** The most pages that have been passed after this key. Only passing more is progress. Otherwise a listing whose tokens are refused would never end. */
  pagesMax: z.number(),
});
type PassedPages = z.infer<typeof passedPagesSchema>;

/**
 * The place behind one more page without keys. `circle`: this token has been there before. The mark is moved to the newest
 * token whenever the number of pages has doubled (Brent), so a circle of any length is found with one token in memory, after
 * at most about three times as many pages as it has.
 */
export function placeBehind(page: Pick<ListingPlace, 'token' | 'observedAtMs'>, before: ListingPlace | undefined): ListingPlace | 'circle' {
  const { token, observedAtMs } = page;
  if (before === undefined) return { token, observedAtMs, pages: 1, mark: token };
  if (token === before.token || token === before.mark) return 'circle';
  const pages = before.pages + 1;
  return { token, observedAtMs: before.observedAtMs, pages, mark: isPowerOfTwo(pages) ? token : before.mark };
}

function isPowerOfTwo(count: number): boolean {
  return Number.isInteger(Math.log2(count));
}

/** Where the listing after this key continues; undefined: at its beginning. */
export function placeAfter(passed: PassedPages | undefined, after: string): ListingPlace | undefined {
  return passed?.after === after ? passed.place : undefined;
}

/** Whether more pages have been passed after this key than ever before. */
export function hasPassedMore(passed: PassedPages | undefined, after: string, place: ListingPlace | undefined): boolean {
  return (place?.pages ?? 0) > mostAfter(passed, after);
}

/**
 * What is stored after an attempt that ended at `place`. `isRefused`: a fault of the listing itself ended it. If it passed no
 * page, the fault may be about the token, which is not used again then.
 */
export function passedPages(
  passed: PassedPages | undefined,
  after: string,
  { place, isRefused }: { readonly place: ListingPlace | undefined; readonly isRefused: boolean },
): PassedPages | undefined {
  const hasPassed = place?.token !== placeAfter(passed, after)?.token;
  const kept = isRefused && !hasPassed ? undefined : place;
  const pagesMax = Math.max(mostAfter(passed, after), place?.pages ?? 0);
  return pagesMax === 0 ? undefined : { after, pagesMax, ...(kept !== undefined && { place: kept }) };
}

function mostAfter(passed: PassedPages | undefined, after: string): number {
  return passed?.after === after ? passed.pagesMax : 0;
}
