/** Sums over the objects of a bucket. The conventions of object-index.ts hold. */
import type { usageBy } from '../../api/usage.ts';
import type { FacetName, FacetSum } from '../../domain/search/facets.ts';
import type { ObjectFilter } from './object-index.ts';

/** What objects are grouped by: the next folder below the prefix, the storage class, the extension, or how long ago they were modified. */
export type UsageGroup = (typeof usageBy)[number];

export interface UsageQuery extends ObjectFilter {
  readonly bucket: string;
  /** Any prefix; by folder, the folder: empty, or it ends in a slash and has at most seven of them. */
  readonly prefix: string;
  readonly by: UsageGroup;
  /** Ages are counted from here; a store can have the sums of a whole bucket for the start of an hour. */
  readonly nowMs: number;
  /** Only groups after this name, in UTF-8 byte order; ages are never paged. */
  readonly after?: string;
  /** 1 to 1,001. */
  readonly limit: number;
  /** How long the store may take. */
  readonly timeLimitMs: number;
  /** The rows need no `oldestMs` and `newestMs`, which a store can leave out. */
  readonly withoutTimes?: boolean;
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

export interface FacetsQuery extends ObjectFilter {
  /** Ages are counted from here; a store can have the sums of a whole bucket for the start of an hour. */
  readonly nowMs: number;
  /** The groups of each facet, 1 to 100; those of sizes and ages are never left out. */
  readonly groupsMax: number;
  /** How long the store may take. */
  readonly timeLimitMs: number;
}

export interface FacetSums {
  readonly objects: number;
  readonly bytes: number;
  /** Sizes and ages in their own order, each that has objects and objects without one last; of the others those with the most objects, then in the order of their names. */
  readonly facets: Readonly<Record<FacetName, readonly FacetSum[]>>;
}

export interface ObjectUsage {
  /**
   * Groups live objects, in the order of the groups' names. Of folders, the group with the empty name holds the objects of
   * the folder itself. Answers `too-slow` if that takes longer than the time limit, never a part. At most one refresh behind.
   */
  usage(query: UsageQuery, signal?: AbortSignal): Promise<readonly UsageRow[] | 'too-slow'>;
  /** Sums the live objects that match in the groups of each facet. Answers `too-slow` as usage() does. At most one refresh behind. */
  facets(query: FacetsQuery, signal?: AbortSignal): Promise<FacetSums | 'too-slow'>;
}
