/**
 * The feed of a bucket's index: what it says, in the order in which it was written. A follower applies each item by its clock, and ends
 * equal to the index.
 *
 *   cursor ──► is the position still in the index's history? ──► a page from there ──► was anything purged that it had not seen? ──► items, cursor
 *                              no: reset                                                   yes: reset
 *
 * The cursor is a position, and each page asks again what its reader may read. Tombstones are purged only up to a mark that is stored
 * before (repair/sweeps.ts), so who stands at or behind the mark has seen every deletion; and a follower who began after the mark was set
 * needs none of those before it (`floor`).
 */
import { createHash } from 'node:crypto';
import { decodeCursor, encodeCursor } from '../base/cursor.ts';
import { RequestError } from '../base/request-error.ts';
import { requireReadable } from '../observing/buckets.ts';
import type { ObjectDocument } from '../ordering/document.ts';
import { isBehind, positionSchema, type Position } from '../records/position.ts';
import { overlapping, type BucketPart, type Readable } from '../store/readable.rules.ts';
import type { ObjectIndex, WithPorts } from '../store/store.ts';

interface ChangesRequest {
  readonly bucket: string;
  readonly prefix?: string;
  readonly after?: string;
  readonly newest?: 'true' | 'false';
  readonly limit: number;
}

interface ChangesAnswer {
  readonly items: readonly ObjectDocument[];
  readonly cursor: string;
  readonly more: boolean;
  readonly reset?: true;
}

interface ChangesParts extends WithPorts<'state'> {
  readonly objects: Pick<ObjectIndex, 'changes' | 'latest' | 'position'>;
}

/** One page of the feed, or the newest changes. Throws `bucket.not-connected`, `request.invalid` for a cursor of another feed, and the store's faults. */
export async function listChanges(
  { state, objects }: ChangesParts,
  { bucket, prefix = '', after, newest, limit }: ChangesRequest,
  readable: Readable,
  signal?: AbortSignal,
): Promise<ChangesAnswer> {
  const mark = async (): Promise<Position> => (await requireReadable(state, { bucket, readable }, signal)).purge?.upTo ?? {};
  const floor = await mark();
  const within = readable === 'everything' ? undefined : overlapping(readable, { bucket, prefix });
  const feed = { bucket, prefix: digestOf(prefix), rights: rightsOf(within) };
  const page = { prefix, limit, ...(within !== undefined && { within }) };
  const beginAgain = (): ChangesAnswer => ({ items: [], cursor: cursorOf(feed, { position: {}, floor }), more: true, reset: true });

  if (newest === 'true') {
    if (after !== undefined) throw new RequestError('request.invalid', 'after: cannot be combined with newest; leave one out');
    const position = await objects.position(bucket, signal);
    return { items: await objects.latest(bucket, page, signal), cursor: cursorOf(feed, { position, floor }), more: false };
  }

  const from = after === undefined ? { position: {}, floor } : placeOf(after, feed);
  if (from === 'other-rights') return beginAgain();
  const found = await objects.changes(bucket, { ...page, after: from.position }, signal);
  if (found === 'lost') return beginAgain();
  // read after the page: a purge that the page could have missed had stored its mark before
  if (isBehind(furthest(from.position, from.floor), await mark())) return beginAgain();
  const { documents, position, more } = found;
  return { items: documents, cursor: cursorOf(feed, { position, floor: from.floor }), more };
}

interface Feed {
  readonly bucket: string;
  /** Its digest: the longest prefix would leave too little of a cursor to the places of many shards. */
  readonly prefix: string;
  readonly rights: string;
}

interface Place {
  readonly position: Position;
  /** The mark of the purge when the follower began. */
  readonly floor: Position;
}

/** What the reader may read of the feed: with other rights, a follower may lack what was written before, or have what it must not. */
function rightsOf(within: readonly BucketPart[] | undefined): string {
  return within === undefined ? '' : digestOf(JSON.stringify(within.map(({ prefix }) => prefix)));
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 16);
}

function cursorOf({ bucket, prefix, rights }: Feed, { position, floor }: Place): string {
  return encodeCursor([bucket, prefix, rights, JSON.stringify(position), JSON.stringify(floor)]);
}

function placeOf(cursor: string, feed: Feed): Place | 'other-rights' {
  const [bucket, prefix, rights, ...places] = partsIn(cursor);
  const [position, floor] = places.map(positionIn);
  if (position === undefined || floor === undefined || bucket !== feed.bucket || prefix !== feed.prefix)
    throw new RequestError('request.invalid', 'after: must be the `cursor` of an earlier page of this bucket and prefix');
  return rights === feed.rights ? { position, floor } : 'other-rights';
}

/** Empty if the text isn't a cursor. */
function partsIn(cursor: string): readonly string[] {
  try {
    return decodeCursor(cursor, 5);
  } catch {
    return [];
  }
}

function positionIn(text: string): Position | undefined {
  try {
    return positionSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** The position, or the floor where that is further on. Who has no position yet may have applied the first page, and have been killed. */
function furthest(position: Position, floor: Position): Position {
  const ahead = Object.entries(floor).filter(([shard, { history, at }]) => {
    const own = position[shard];
    return own === undefined || (own.history === history && own.at < at);
  });
  return { ...position, ...Object.fromEntries(ahead) };
}
