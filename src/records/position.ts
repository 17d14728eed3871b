/**
 * A place in the order in which the documents of a bucket's index were written. Everything that follows the index stands at one: a
 * follower of the feed, and the purge of tombstones, which must not pass the followers.
 *
 * Each shard counts its own writes, so a position has one entry a shard (SQLite is one shard). `history` names the shard's line of
 * writes. It changes when the index is recreated or restored, and positions of different histories can't be compared.
 */
import { z } from 'zod';

export const positionSchema = z.record(
  z.string(),
  z.object({
    history: z.string(),
    /** The number of the last write before this place; −1: none. */
    at: z.int(),
    /** SQLite: the last process that had written to the file. A restored file lacks it, or ends it earlier. */
    start: z.string().exactOptional(),
  }),
);
export type Position = z.infer<typeof positionSchema>;

/** Whether one of the mark's shards stands before it, or nowhere. Those that have another history don't count. */
export function isBehind(position: Position, mark: Position): boolean {
  return Object.entries(mark).some(([shard, { history, at }]) => {
    const own = position[shard];
    return own === undefined || (own.history === history && own.at < at);
  });
}

/** Tombstones that were written up to `upTo` may be purged: it was the place of `next` once, for as long as a tombstone must live. */
export const purgeMarksSchema = z.object({
  upTo: positionSchema.optional(),
  next: z.object({ position: positionSchema, atMs: z.number() }),
});
export type PurgeMarks = z.infer<typeof purgeMarksSchema>;

/**
 * The marks after a look at this moment: `next` becomes the mark once it is as old as a tombstone must be, and the present position
 * is next. So tombstones are kept for one to two such lives.
 */
export function movedMarks(
  marks: PurgeMarks | undefined,
  { position, atMs, lifeMs }: { readonly position: Position; readonly atMs: number; readonly lifeMs: number },
): PurgeMarks {
  if (marks === undefined) return { next: { position, atMs } };
  // a clock that was set back must not stop the purge permanently
  if (atMs < marks.next.atMs) return { ...marks, next: { ...marks.next, atMs } };
  if (atMs - marks.next.atMs < lifeMs) return marks;
  // a position lacks a shard that had no primary then, of which tombstones were purged all the same
  return { upTo: { ...marks.upTo, ...marks.next.position }, next: { position, atMs } };
}
