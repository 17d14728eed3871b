/** All that a store adapter provides. The conventions of object-index.ts hold. */
import type { ObjectIndex, ObjectMaintenance, ObjectScan } from './object-index.ts';
import type { StateStore } from './state.ts';

/** Prepares the store for this version before `ingest` is ready: templates, state index, additive mapping upgrades, under a lock. Idempotent and safe to run from many workers at once. */
export interface IndexSetup {
  prepare(signal?: AbortSignal): Promise<void>;
}

/** All that a store adapter provides. */
export interface Store {
  readonly objects: ObjectIndex;
  readonly scan: ObjectScan;
  readonly state: StateStore;
  readonly setup: IndexSetup;
  readonly maintenance: ObjectMaintenance;
  /** `opensearch` or `sqlite`, for logs. */
  readonly product: 'opensearch' | 'sqlite';
  close(): Promise<void>;
}
