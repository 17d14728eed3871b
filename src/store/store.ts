/**
 * What a store provides. There are two, OpenSearch and SQLite, and both keep one contract (test/contracts/store-contract.ts):
 *
 *   objects       documents, written at their clocks: an older write never replaces a newer document. Reads and searches
 *   scan          a range of keys in order, for a comparison with a listing of S3
 *   usage         sums over what a search finds
 *   maintenance   what the calendar does: documents that have expired or are not settled, purges of tombstones
 *   state         Tally's own records, by compare-and-swap
 *   audit         who did what
 *
 * The conventions of object-index.ts hold.
 */
import type { AuditStore } from './audit.ts';
import type { ObjectIndex, ObjectMaintenance, ObjectScan } from './object-index.ts';
import type { SumUsage } from './object-usage.ts';
import type { StateStore } from './state.ts';

export interface Store {
  readonly objects: ObjectIndex;
  readonly scan: ObjectScan;
  readonly state: StateStore;
  readonly audit: AuditStore;
  readonly setup: {
    /**
     * Makes what is missing of the store (state index, file); `ingest` is ready only afterwards. Throws
     * `index.older` or `index.newer` for the store of another version, which stays as it is. Idempotent, and safe to run from many workers at
     * the same time.
     */
    prepare(signal?: AbortSignal): Promise<void>;
  };
  readonly maintenance: ObjectMaintenance;
  readonly usage: SumUsage;
  /** `opensearch` or `sqlite`, for logs. */
  readonly product: 'opensearch' | 'sqlite';
  close(): Promise<void>;
}
