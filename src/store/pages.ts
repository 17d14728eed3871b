/** Pages of lists: one item more than the page has is read, to know whether there is a next page. */
import { decodeCursor, encodeCursor } from '../base/cursor.ts';
import type { StateKind } from '../records/state-kind.ts';
import type { StateEntry, StateStore } from './state.ts';

/** One page of a list; `next` is absent on the last page. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly next?: string;
}

/** The most items of one list request to a port. */
const LIMIT_MAX = 1_000;

interface PageSource<Item, Position> {
  readonly limit: number;
  /** The position that the request's cursor names. */
  readonly after: Position | undefined;
  /** Returns up to `limit` (1 to 1,000) items after a position, in order. */
  readonly fetch: (limit: number, after: Position | undefined) => Promise<readonly Item[]>;
  readonly positionOf: (item: Item) => Position;
}

/** Reads one page. It has a `next` only if another item follows. */
export async function readPage<Item, Position extends readonly string[]>(source: PageSource<Item, Position>): Promise<Page<Item>> {
  const { limit, fetch, positionOf } = source;
  const fetched = await fetch(Math.min(limit + 1, LIMIT_MAX), source.after);
  const items = fetched.slice(0, limit);
  const last = items.at(-1);
  if (last === undefined || items.length < limit) return { items };
  // a page of the largest size leaves no room to fetch one item more
  const hasMore = fetched.length > limit || (limit === LIMIT_MAX && (await fetch(1, positionOf(last))).length > 0);
  return hasMore ? { items, next: encodeCursor(positionOf(last)) } : { items };
}

/** Reads one page of the stored records of a kind, in the order of their ids. Throws `request.invalid` for a cursor that no page returned. */
export function readEntries(
  state: Pick<StateStore, 'list'>,
  kind: StateKind,
  { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
  signal?: AbortSignal,
): Promise<Page<StateEntry>> {
  return readPage({
    limit,
    after: decodeCursor(cursor, 1),
    fetch: (count, position) => state.list(kind, { limit: count, after: position?.[0] }, signal),
    positionOf: ({ id }) => [id],
  });
}
