/**
 * Pages without keys. S3 may answer a LIST with a page that has no keys but says that more follow, any number of times: it does
 * this while skipping deleted versions. Only the page's token leads on, because there is no key to continue after.
 */

/** Where a listing continues behind pages without keys. */
export interface ListingPlace {
  /** S3's continuation token. It is opaque, and S3 does not say that it expires. A listing whose token is refused starts over. */
  readonly token: string;
  /** The time of the first of these pages (D): what they did not contain was absent then. */
  readonly observedAtMs: number;
  /** How many pages have been passed. */
  readonly pages: number;
  /** The token of an earlier page, by which a listing that goes in a circle is found. */
  readonly mark: string;
}

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
