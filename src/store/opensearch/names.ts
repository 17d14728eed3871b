/** The names of all indices and aliases of one installation (one prefix) in OpenSearch. */
import { bucketSlug } from '../../records/bucket.ts';
import { cachingLatest } from '../../base/latest.ts';

export interface IndexNames {
  /** The index that contains a bucket's documents. Documents are written and read only through its alias. */
  objectsIndex(bucket: string): string;
  /** The alias of one bucket's index: with `require_alias` a write can never create an index by accident. */
  objectsAlias(bucket: string): string;
  /** The live documents of all buckets: an alias with the filter `deleted: false`. */
  readonly liveAlias: string;
  /** The aliases of all buckets. An index that Tally did not create, such as a copy or a restore, has none. A prefix may not contain `-write`. */
  readonly bucketAliases: string;
  /** The alias through which state is read and written, so that `require_alias` works. */
  readonly state: string;
  readonly stateIndex: string;
  /** The index of the audit of one month (`2026.11`). */
  auditIndex(month: string): string;
  /** The alias through which its records are written, so that `require_alias` works. */
  auditAlias(month: string): string;
  /** Matches the indices of the audit of this prefix only, because a prefix may not contain `-audit`. */
  readonly auditPattern: string;
}

export function indexNames(prefix: string): IndexNames {
  return {
    objectsIndex: (bucket) => `${prefix}-objects-${bucketSlug(bucket)}`,
    objectsAlias: cachingLatest((bucket: string) => `${prefix}-write-${bucketSlug(bucket)}`),
    liveAlias: `${prefix}-objects`,
    bucketAliases: `${prefix}-write-*`,
    state: `${prefix}-state`,
    stateIndex: `${prefix}-state-1`,
    auditIndex: (month) => `${prefix}-audit-${month}`,
    auditAlias: (month) => `${prefix}-audit-write-${month}`,
    auditPattern: `${prefix}-audit-*`,
  };
}
