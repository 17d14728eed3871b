/**
 * Deletions that wait for a person: what the deletion limit of a job held back, for each prefix of a job. They are stored before the
 * job stops or ends, so nothing that becomes of the job can hide them; and removed by a later job only, which compares those keys and
 * holds nothing back. Meanwhile no job of those keys deletes more than a person allows.
 *
 * A job that is stopped may have held back none yet, and its limit is the consent to one job's deletions, not to those of each job that
 * follows: its keys wait as well, without a number until a job that compares them says how many there are.
 *
 *   held back ──allowed──► a new job with that limit ──it holds nothing back──► removed
 *      ▲  └────declined, also later: that job is cancelled──► the index is known to differ
 *      └── another job holds deletions of these keys back ──┘
 */
import type { WaitingDeletes as All } from './bucket.ts';
import type { JobRecord } from './job.ts';

export type WaitingDeletes = All[number];

/** Prefixes of a bucket that are kept apart. More than these become the whole bucket's, about which no job of theirs can ask. */
const PREFIXES_MAX = 100;

/** Whether the keys with the one prefix may be among those with the other. */
export function keysOverlap(a: string, b: string): boolean {
  return a.startsWith(b) || b.startsWith(a);
}

/** What a job holds back, as far as it knows. */
export interface HeldBack {
  readonly held: number;
  /** It has compared everything. If not, it was stopped, and what was known before may be more. */
  readonly isWhole: boolean;
  readonly nowMs: number;
  /** The latest beginning of a job of the bucket. */
  readonly lastOrder: number;
}

/** What waits once the job holds this back. Returns the same array if nothing has changed. */
export function withHeld(
  waiting: readonly WaitingDeletes[],
  { id: jobId, prefix, beginOrder, now }: Pick<JobRecord, 'id' | 'prefix' | 'beginOrder' | 'now'>,
  { held, isWhole, nowMs, lastOrder }: HeldBack,
): readonly WaitingDeletes[] {
  // one that does not wait for late events has no place among the beginnings: whatever begins later comes after it
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

/** They wait since they were first known, until a job settles them that began after all that counted them. */
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

/** How many there are at least. */
export function countOf(waiting: readonly WaitingDeletes[]): number {
  return outermost(waiting).reduce((sum, { count = 0 }) => sum + count, 0);
}

/**
 * Those with deletions that no prefix of another one contains: they are among those of that one. A job that was stopped may not have come
 * as far; then those within its prefix are more, and stand for it.
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
