/** The names of everything that one installation (one prefix) has in OpenSearch. */
import { bucketSlug } from '../../domain/bucket.ts';

export interface IndexNames {
  /** The index that holds a bucket's documents. Documents are written and read through its alias only. */
  objectsIndex(bucket: string): string;
  /** The alias of one bucket's index: with `require_alias` a write can never create an index by accident. */
  objectsAlias(bucket: string): string;
  /** The live documents of all buckets: an alias with the filter `deleted: false`. */
  readonly liveAlias: string;
  /** Matches the object indices of this prefix and, since prefixes may not contain `-objects`, of no other. */
  readonly objectsPattern: string;
  readonly objectsTemplate: string;
  /** What state is read and written by: an alias, for the sake of `require_alias`. */
  readonly state: string;
  readonly stateIndex: string;
}

export function indexNames(prefix: string): IndexNames {
  return {
    objectsIndex: (bucket) => `${prefix}-objects-${bucketSlug(bucket)}`,
    objectsAlias: (bucket) => `${prefix}-write-${bucketSlug(bucket)}`,
    liveAlias: `${prefix}-objects`,
    objectsPattern: `${prefix}-objects-*`,
    objectsTemplate: `${prefix}-objects`,
    state: `${prefix}-state`,
    stateIndex: `${prefix}-state-1`,
  };
}
