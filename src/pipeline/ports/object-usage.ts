/** Sums over the objects of a bucket. The conventions of object-index.ts hold. */
import type { usageBy } from '../../api/usage.ts';
import type { ObjectFilter } from './object-index.ts';

/** What objects are grouped by: the next folder below the prefix, the storage class, the extension, or how long ago they were modified. */
export type UsageGroup = (typeof usageBy)[number];

/** The ages by which objects are grouped, the youngest first; each contains what is younger than its days and in no earlier one. */
export const usageAges = [
  { name: '1d', days: 1 },
  { name: '7d', days: 7 },
  { name: '30d', days: 30 },
  { name: '90d', days: 90 },
  { name: '365d', days: 365 },
  { name: 'older', days: Infinity },
] as const;

export interface UsageQuery extends ObjectFilter {
  readonly bucket: string;
  /** Any prefix; by folder, the folder: empty, or it ends in a slash and has at most seven of them. */
  readonly prefix: string;
  readonly by: UsageGroup;
  /** Ages are counted from here. */
  readonly nowMs: number;
  /** Only groups after this name, in UTF-8 byte order; ages are never paged. */
  readonly after?: string;
  /** 1 to 1,001. */
  readonly limit: number;
  /** How long the store may take. */
  readonly timeLimitMs: number;
}

export interface UsageSum {
  readonly objects: number;
  /** Of the objects whose size is known. */
  readonly bytes: number;
  /** When the objects were last modified, as far as that is known, in milliseconds. */
  readonly oldestMs?: number;
  readonly newestMs?: number;
}

/** `name`: a whole prefix, a class, an extension or an age; empty for objects that have none, which are first. */
export interface UsageRow extends UsageSum {
  readonly name: string;
}

export interface ObjectUsage {
  /**
   * Groups live objects, in the order of the groups' names. Of folders, the group with the empty name holds the objects of
   * the folder itself. Answers `too-slow` if that takes longer than the time limit, never a part. At most one refresh behind.
   */
  usage(query: UsageQuery, signal?: AbortSignal): Promise<readonly UsageRow[] | 'too-slow'>;
}
