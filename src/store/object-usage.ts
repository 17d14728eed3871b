/** Sums over the objects that a search finds. The conventions of object-index.ts hold. */
import type { UsageBy } from './groups.rules.ts';
import type { ObjectFilter } from './object-index.ts';

export interface UsageQuery extends ObjectFilter {
  /** Each once. By folder: the next folder below the prefix, which is empty or ends in a slash, and has at most seven of them. */
  readonly by: readonly UsageBy[];
  /** Ages are counted from here. */
  readonly nowMs: number;
  /** The most groups of one kind, 1 to 1,000. */
  readonly limit: number;
  /** How long the store may take. */
  readonly timeLimitMs: number;
}

export interface UsageSum {
  readonly objects: number;
  /** Of the objects whose size is known. */
  readonly bytes: number;
}

/** `name`: the whole prefix of a folder, an extension, a class, a size, an age or a bucket; empty for objects that have none. */
export interface UsageGroup extends UsageSum {
  readonly name: string;
}

export interface UsageSums extends UsageSum {
  /**
   * The groups of each kind, in the order of `by`, those with the most objects first, then in the order of their names; sizes and ages in
   * their own order. What a store gives is exact; a group that it cannot count exactly is left out.
   */
  readonly groups: readonly (readonly UsageGroup[])[];
}

/**
 * Sums the live objects that match, and those of each group. By folder, the group with the empty name holds the objects of the folder
 * itself. Answers `too-slow` if that takes longer than the time limit, never a part. At most one refresh behind.
 */
export type SumUsage = (query: UsageQuery, signal?: AbortSignal) => Promise<UsageSums | 'too-slow'>;
