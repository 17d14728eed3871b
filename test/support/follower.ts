/** A follower of a bucket's feed as a user would write one: it applies each item by its clock, and begins again when it is told to. */
import type { ObjectDocument } from '../../src/ordering/document.ts';

export interface FeedPage<Cursor> {
  readonly items: readonly Pick<ObjectDocument, 'key' | 'clock' | 'deleted'>[];
  readonly cursor: Cursor;
  readonly more: boolean;
  readonly reset?: boolean;
}

/** What it keeps: the copy and the cursor are stored one after the other, so a kill in between repeats a page. */
export interface Follower<Cursor> {
  readonly resets: () => number;
  /** Reads one page. `dies`: after the items were applied, before the cursor was stored. Resolves with whether there is more. */
  read(page: (after: Cursor | undefined) => Promise<FeedPage<Cursor>>, dies?: boolean): Promise<boolean>;
  /** The live keys of its copy, with their clocks. */
  live(): ReadonlyMap<string, number>;
}

export function createFollower<Cursor>(): Follower<Cursor> {
  let copy = new Map<string, { readonly clock: number; readonly deleted: boolean }>();
  let cursor: Cursor | undefined;
  let resets = 0;
  return {
    resets: () => resets,
    async read(page, dies = false) {
      const read = await page(cursor);
      if (read.reset === true) {
        copy = new Map();
        resets += 1;
      }
      for (const { key, clock, deleted } of read.items) if (clock >= (copy.get(key)?.clock ?? 0)) copy.set(key, { clock, deleted });
      if (!dies) ({ cursor } = read);
      return read.more;
    },
    live: () => new Map([...copy].filter(([, { deleted }]) => !deleted).map(([key, { clock }]) => [key, clock])),
  };
}
