/** Explains one key: reads it from the index and from S3 now, and compares the two. */
import { statusView } from '../../api/buckets.ts';
import { storageViewOf, type Explanation } from '../../api/objects.ts';
import type { BucketRecord } from '../../domain/bucket.ts';
import { explanationOf, type StorageAnswer } from '../../domain/explanation.ts';
import { FaultError } from '../../domain/fault.ts';
import { requireBucket } from '../buckets/list.ts';
import type { BucketStatuses } from '../buckets/statuses.ts';
import type { ObjectIndex } from '../ports/object-index.ts';
import type { StateStore } from '../ports/state.ts';
import type { ObjectStorage } from '../ports/storage.ts';

interface ExplainDependencies {
  readonly state: StateStore;
  readonly objects: ObjectIndex;
  readonly storage: ObjectStorage;
  readonly statuses: Pick<BucketStatuses, 'of'>;
}

type Explain = (bucket: string, key: string, signal?: AbortSignal) => Promise<Explanation>;

/** Creates the function. A fault of S3 is part of the answer. Throws the index's faults and `bucket.not-connected`. */
export function createExplain({ state, objects, storage, statuses }: ExplainDependencies): Explain {
  return async function explain(bucket, key, signal) {
    const record = await requireBucket(state, bucket, signal);
    const [[document], answer, status] = await Promise.all([
      objects.getMany(bucket, [key], signal),
      observe(record, key, signal),
      statuses.of(record, signal),
    ]);
    const { agrees, sentence, observationClock } = explanationOf({ bucket: record, status, document, storage: answer });
    return {
      bucket,
      key,
      ...(document !== undefined && { index: document }),
      storage: storageViewOf(answer),
      clocks: {
        ...(document !== undefined && { document: document.clock }),
        floor: record.floor,
        ...(observationClock !== undefined && { observation: observationClock }),
      },
      agrees,
      sentence,
      bucket_status: statusView(status, bucket),
    };
  };

  async function observe(record: BucketRecord, key: string, signal: AbortSignal | undefined): Promise<StorageAnswer> {
    try {
      return await storage.observe(record, key, signal);
    } catch (error) {
      if (error instanceof FaultError) return { fault: { code: error.code, reason: error.reason } };
      throw error;
    }
  }
}
