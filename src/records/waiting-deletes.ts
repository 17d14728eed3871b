/**
 * Deletions that wait for a person: what jobs' deletion limits held back, by the job's prefix. They are stored before the job stops or
 * ends, so nothing that happens to the job can hide them, and only a later job that compares those keys and holds nothing back removes
 * them. Until then, no job of those keys deletes more than a person allows.
 *
 * A job may be stopped before it holds any back. Its limit was consent to this job's deletions, not to those of the jobs that follow, so
 * its keys wait too, without a number until another job counts them.
 *
 *   held back ──allowed──► a new job with that limit ──it holds nothing back──► removed
 *      ▲  └────declined, also later: that job is cancelled──► the index is known to differ
 *      └── another job holds deletions of these keys back ──┘
 */
import type { WaitingDeletes as All } from './bucket.ts';
import type { JobRecord } from './job.ts';

export type WaitingDeletes = All[number];

/** How many of a bucket's prefixes are kept apart. If there are more, they become one entry for the whole bucket, about which none of their jobs can ask. */
const PREFIXES_MAX = 100;

/** Whether keys may have both prefixes. */
export function keysOverlap(a: string, b: string): boolean {
  return a.startsWith(b) || b.startsWith(a);
}

/** What a job knows that it holds back. */
export interface HeldBack {
  readonly held: number;
  /** Whether it has compared everything. If it was stopped, more may have been known before. */
  readonly isWhole: boolean;
  readonly nowMs: number;
  /** The place of the bucket's latest beginning of a job. */
  readonly lastOrder: number;
}

/** The waiting deletions after a job holds this back. Returns the same array if nothing has changed. */
export function withHeld(
  waiting: readonly WaitingDeletes[],
  { id: jobId, prefix, beginOrder, now }: Pick<JobRecord, 'id' | 'prefix' | 'beginOrder' | 'now'>,
  { held, isWhole, nowMs, lastOrder }: HeldBack,
): readonly WaitingDeletes[] {
  // a job that does not wait for late events has no place among the beginnings: all later beginnings come after it
  const order = beginOrder ?? lastOrder + 1;
  const isSettled = (each: WaitingDeletes): boolean =>
    isWhole &&
    each.prefix.startsWith(prefix) &&
    ((now !== true && order >= each.order) || (each.count === undefined && each.jobId === jobId));
  const own = waiting.find((each) => each.prefix === prefix);
  const others = waiting.filter((each) => !isSettled(each));
  if (held === 0 && (isWhole || own !== undefined)) return others.length === waiting.length ? waiting : others;
  const least = own !== undefined && others.includes(own) ? (own.count ?? 0) : 0;
  return bounded([
    ...others.filter((each) => each !== own),
    withKnown(own, { prefix, ...counted(Math.max(held, least)), jobId, order, sinceMs: nowMs }),
  ]);
}

/** Keeps since when they have been known; only a job that began after all those that counted them settles them. */
function withKnown(known: WaitingDeletes | undefined, found: WaitingDeletes): WaitingDeletes {
  return known === undefined ? found : { ...found, order: Math.max(found.order, known.order), sinceMs: known.sinceMs };
}

function bounded(waiting: readonly WaitingDeletes[]): readonly WaitingDeletes[] {
  if (waiting.length <= PREFIXES_MAX) return waiting;
  const order = Math.max(...waiting.map((each) => each.order));
  const sinceMs = Math.min(...waiting.map((each) => each.sinceMs));
  return [{ prefix: '', ...counted(countOf(waiting)), order, sinceMs }];
}

function counted(count: number): Pick<WaitingDeletes, 'count'> {
  return count === 0 ? {} : { count };
}

/** How many deletions wait, at least. */
export function countOf(waiting: readonly WaitingDeletes[]): number {
  return outermost(waiting).reduce((sum, { count = 0 }) => sum + count, 0);
}

/**
 * The entries that no other entry's prefix contains, so that no deletion counts twice. If a job was stopped early, the entries within its
 * prefix may have more; they then stand for it.
 */
export function outermost(waiting: readonly WaitingDeletes[]): readonly WaitingDeletes[] {
  const known = waiting.filter(({ count }) => count !== undefined);
  const within = (inner: WaitingDeletes, outer: WaitingDeletes): boolean => inner !== outer && inner.prefix.startsWith(outer.prefix);
  const outer = known.filter((each) => !known.some((other) => within(each, other)));
  return outer.flatMap((each) => {
    const inner = known.filter((other) => within(other, each));
    return countOf(inner) > (each.count ?? 0) ? outermost(inner) : [each];
  });
}
