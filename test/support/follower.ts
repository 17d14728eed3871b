/** A follower of a bucket's feed as a user would write one: it applies each item by its clock, and begins again when it is told to. */
import { setTimeout as delay } from 'node:timers/promises';
import type { ObjectDocument } from '../../src/ordering/document.ts';
import type { Daemon } from './servers/daemon.ts';

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
      if (cursor === undefined) copy = new Map();
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

/** Follows the feed of a daemon, whatever it answers meanwhile, until it is ended; then to its end. */
export function followFeed(daemon: Pick<Daemon, 'request'>, bucket: string) {
  const ending = new AbortController();
  const follower = createFollower<string>();
  const page = async (after: string | undefined): Promise<FeedPage<string>> => {
    const query = new URLSearchParams({ bucket, limit: '50', ...(after !== undefined && { after }) });
    const { status, body } = await daemon.request('GET', `/v1/changes?${query.toString()}`);
    if (status !== 200) throw new Error(`${status}: ${JSON.stringify(body)}`);
    return body as FeedPage<string>;
  };
  async function follow(): Promise<void> {
    while (!ending.signal.aborted) if (!(await follower.read(page).catch(() => false))) await delay(500);
  }
  const following = follow();
  return {
    async end(): Promise<{ readonly copy: ReadonlyMap<string, number>; readonly resets: number }> {
      ending.abort();
      await following;
      while (await follower.read(page));
      return { copy: follower.live(), resets: follower.resets() };
    },
  };
}
