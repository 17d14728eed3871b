/** Pages of lists: one item more is asked for, to know whether there is a next page. */
import { encodeCursor } from '../../domain/cursor.ts';

/** One page of a list; `next` is absent on the last page. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly next?: string;
}

/** The ports list at most this many at once. */
const LIMIT_MAX = 1_000;

interface PageSource<Item, Position> {
  readonly limit: number;
  /** Where the cursor of the request points. */
  readonly after: Position | undefined;
  /** Up to `limit` (1 to 1,000) items after a position, in order. */
  readonly fetch: (limit: number, after: Position | undefined) => Promise<readonly Item[]>;
  readonly positionOf: (item: Item) => Position;
}

/** Reads one page; `next` is there only if another item is. */
export async function readPage<Item, Position extends readonly string[]>(source: PageSource<Item, Position>): Promise<Page<Item>> {
  const { limit, fetch, positionOf } = source;
  const fetched = await fetch(Math.min(limit + 1, LIMIT_MAX), source.after);
  const items = fetched.slice(0, limit);
  const last = items.at(-1);
  if (last === undefined || items.length < limit) return { items };
  // a full page of the largest size leaves no room for one more
  const hasMore = fetched.length > limit || (limit === LIMIT_MAX && (await fetch(1, positionOf(last))).length > 0);
  return hasMore ? { items, next: encodeCursor(positionOf(last)) } : { items };
}
