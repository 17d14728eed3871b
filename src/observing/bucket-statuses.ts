/** Reads what is known about buckets, and says how far each one's index can be relied on. */
import { touches, type Readable } from '../store/readable.rules.ts';
import type { BucketRecord } from '../records/bucket.ts';
import { bucketStatus, statusForReaders, type BucketStatus } from '../records/bucket-status.ts';
import type { DirtyMark } from '../records/dirty.ts';
import type { Trouble } from '../records/process-record.ts';
import { allGaps, gapsOf } from './gaps.ts';
import { troublesOf, type Processes } from './processes.ts';
import type { WithPorts } from '../store/store.ts';

interface Known {
  readonly troubles: readonly Trouble[];
  readonly gaps: readonly DirtyMark[];
  readonly nowMs: number;
  readonly compareIntervalMs: number;
}

/** The status of each bucket, in the order of the records, from what was read before. */
export function statusesOf(records: readonly BucketRecord[], { troubles, gaps, nowMs, compareIntervalMs }: Known): readonly BucketStatus[] {
  const byBucket = Map.groupBy(gaps, ({ bucket }) => bucket);
  return records.map((record) =>
    bucketStatus({
      record,
      ...troublesOf(troubles, record, nowMs),
      gaps: byBucket.get(record.bucket) ?? [],
      nowMs,
      compareIntervalMs,
    }),
  );
}

/** The status as shown to a caller who may read this. */
export function shownTo(readable: Readable, status: BucketStatus): BucketStatus {
  return readable === 'everything' ? status : statusForReaders(status);
}

export interface BucketStatuses {
  /** Returns the bucket's status, judged only by the parts that the caller may read. Throws the store's fault. */
  of(record: BucketRecord, readable: Readable, signal?: AbortSignal): Promise<BucketStatus>;
  /** Returns the status of each, in the order of the records. Throws the store's fault. */
  ofAll(records: readonly BucketRecord[], readable: Readable): Promise<readonly BucketStatus[]>;
}

interface StatusDependencies extends WithPorts<'state' | 'clock'> {
  readonly processes: Pick<Processes, 'troubles'>;
  readonly compareIntervalMs: number;
}

export function createBucketStatuses({ state, clock, processes, compareIntervalMs }: StatusDependencies): BucketStatuses {
  const known = async (stored: Promise<readonly DirtyMark[]>, readable: Readable): Promise<Known> => {
    const nowMs = clock.nowMs();
    const gaps = (await stored).filter((gap) => touches(readable, gap));
    return { gaps, troubles: await processes.troubles(), nowMs, compareIntervalMs };
  };
  return {
    async of(record, readable, signal) {
      const { gaps, troubles, ...rest } = await known(gapsOf(state, record.bucket, signal), readable);
      return shownTo(readable, bucketStatus({ record, gaps, ...troublesOf(troubles, record, rest.nowMs), ...rest }));
    },
    ofAll: async (records, readable) =>
      statusesOf(records, await known(allGaps(state), readable)).map((status) => shownTo(readable, status)),
  };
}
