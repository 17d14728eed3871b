/** The part of the catalogue of faults (fault.ts) that is about the index store: its cluster, the index of one bucket, and single documents. */
import type { FaultEntry } from './fault-entry.ts';

export const indexFaults = {
  /** No connection, a time-out, or 502/503/504 of the whole request. */
  'index.unreachable': {
    circuit: 'cluster',
    background: 'stop',
    advice: 'Check that the index store at TALLY_INDEX_URL is up and can be reached from here.',
  },
  /** 401 or 403 for the credentials in use (not a block). */
  'index.denied': {
    circuit: 'cluster',
    background: 'stop',
    advice: 'Check the credentials in TALLY_INDEX_URL and the role that they map to.',
  },
  /** OpenSearch pushed a whole request back (429), or another process holds the write lock of the SQLite file. */
  'index.overloaded': {
    circuit: 'cluster',
    background: 'stop',
    advice: 'Wait: this usually passes. If it lasts, add data nodes or lower TALLY_BULK_CONCURRENCY.',
  },
  /** A cluster-wide write block, a block on the state index, or a full disk under SQLite. */
  'index.blocked': {
    circuit: 'cluster',
    opensAtOnce: true,
    background: 'stop',
    advice: 'Free disk space in the cluster, or remove its write block.',
  },
  /** The state index is missing. */
  'index.state-missing': {
    circuit: 'cluster',
    opensAtOnce: true,
    background: 'stop',
    advice:
      'Start `tally serve` once: it creates what is missing. If it has run before, check TALLY_INDEX_URL and TALLY_INDEX_PREFIX. If it runs elsewhere, use --registry with its address, or `tally login https://HOST`.',
  },
  /** The state index takes no records because of its configuration: a pipeline, its alias or its mapping. */
  'index.misconfigured': {
    circuit: 'cluster',
    opensAtOnce: true,
    background: 'stop',
    advice:
      'Read the reason, then remove what was added to the state index: a pipeline, a second index behind its alias, or other mappings.',
  },
  /** A node of TALLY_INDEX_URL belongs to another cluster than the other nodes. */
  'index.foreign-node': {
    circuit: 'cluster',
    opensAtOnce: true,
    background: 'stop',
    advice: 'Correct TALLY_INDEX_URL: all of its nodes must belong to one cluster. Nothing is written until they do.',
  },
  /** The SQLite file or its log was removed or replaced while this process had it open. */
  'index.replaced': {
    circuit: 'cluster',
    opensAtOnce: true,
    background: 'stop',
    advice:
      'Stop Tally before you move, restore or remove its index file. Put the file back, or restart Tally to begin a new one; then re-index every bucket, because the file at this path may lack the latest writes.',
  },
  /** The SQLite file is corrupt, or it is not an index of Tally. */
  'index.damaged': {
    circuit: 'cluster',
    opensAtOnce: true,
    background: 'stop',
    advice: 'Check TALLY_INDEX_URL. Restore a damaged index file from a backup, or move it away and build a new index with a re-index.',
  },
  /** A newer version of Tally has prepared the store. */
  'index.newer': {
    circuit: 'cluster',
    opensAtOnce: true,
    background: 'stop',
    advice: 'Run the newest version of Tally that has used this index store, or a later one.',
  },
  /** Other workers changed the same stored record ten times in a row. The store answers, so nothing else waits. */
  'record.contended': {
    circuit: 'object',
    background: 'retry',
    advice: 'Wait: this usually passes. If it lasts, many workers store the same record at the same time; report it as a bug.',
  },
  /** A stored record cannot be read: a newer version of Tally wrote it, or it is damaged. */
  'record.newer': {
    circuit: 'index',
    opensAtOnce: true,
    background: 'wait',
    advice:
      'A newer version of Tally wrote this record, or it is damaged. Update this worker. The records of the bucket wait until then; other buckets are not affected.',
  },
  /** One index has a write block or is closed. The flood stage of a disk is such a block, on each index with a shard there. */
  'bucket.index-blocked': {
    circuit: 'index',
    background: 'wait',
    advice:
      'Remove the write block from the index that the reason names (PUT INDEX/_settings with {"index.blocks.write": null}), or open it again (POST INDEX/_open). If the reason names the flood stage, free disk space on the data nodes. The records of the bucket wait until then.',
  },
  /** 401 or 403 for one index (not a block). */
  'bucket.index-denied': {
    circuit: 'index',
    background: 'wait',
    advice: 'Allow the role of the credentials in TALLY_INDEX_URL to read and write the index of this bucket.',
  },
  /** OpenSearch pushed writes to one index back (429) for as long as they could wait. */
  'bucket.index-overloaded': {
    circuit: 'index',
    background: 'wait',
    advice: 'Wait: this usually passes. If it lasts, move shards of the index of this bucket to data nodes with less load.',
  },
  /** The index of one bucket refuses or drops every document because of its configuration. */
  'bucket.index-misconfigured': {
    circuit: 'index',
    background: 'wait',
    advice:
      'Read the reason, then mend the index of this bucket: its pipelines, its alias (which must lead to this index alone) or its mappings. The records of the bucket wait until then.',
  },
  /** The index or alias of a connected bucket is missing. */
  'bucket.index-missing': {
    circuit: 'index',
    background: 'wait',
    advice: 'Connect the bucket again with `tally bucket add NAME`: this creates the missing index. A re-index follows by itself.',
  },
  /** The cluster has as many shards as it may have (cluster.max_shards_per_node), so that no index can be created. */
  'bucket.index-limit': {
    circuit: 'index',
    background: 'wait',
    advice:
      'Each bucket has one index, with a shard for each of TALLY_INDEX_SHARDS and its replicas. Add a data node, raise cluster.max_shards_per_node, or lower TALLY_INDEX_REPLICAS; <docs/operate/sizing-cost.md#number-of-buckets> says what a bucket costs.',
  },
  /** The primary shard of one index is not active. */
  'bucket.index-unavailable': { circuit: 'index', background: 'wait', advice: 'Check the shard allocation of the index of this bucket.' },
  /** The store will never take this document: an error about the document itself, while its index accepts others. */
  'index.rejected': {
    circuit: 'never',
    background: 'fail',
    advice: 'Report this as a bug: the index store refused a document that Tally built. The original message is in the dead-letter queue.',
  },
} as const satisfies Record<string, FaultEntry>;
