/** Explain: one key, in the index and in S3, looked at now. */
import { z } from 'zod';
import type { BucketRecord } from '../../domain/bucket.ts';
import { explanationOf, type StorageAnswer } from '../../domain/documents/explanation.ts';
import { FaultError, faults } from '../../domain/fault.ts';
import type { Control, Explanation } from './control.ts';
import { requireBucket } from '../buckets/list.ts';
import { keyTextSchema, parseRequest } from '../records/pages.ts';
import type { ObjectIndex } from '../ports/object-index.ts';
import type { StateStore } from '../ports/state.ts';
import type { ObjectStorage } from '../ports/storage.ts';

interface ExplainDependencies {
  readonly state: StateStore;
  readonly objects: ObjectIndex;
  readonly storage: ObjectStorage;
}

const requestSchema = z.object({ key: keyTextSchema.min(1, 'must not be empty') });

/** Creates explain. A fault of S3 is part of the answer; those of the index are thrown, and `bucket.not-connected`. */
export function createExplain({ state, objects, storage }: ExplainDependencies): Control['explain'] {
  return async function explain(bucket, key, signal) {
    parseRequest(requestSchema, { key });
    const record = await requireBucket(state, bucket, signal);
    const [[document], answer] = await Promise.all([objects.getMany(bucket, [key], signal), observe(record, key, signal)]);
    const { agrees, sentence, observationClock } = explanationOf({ bucket: record, document, storage: answer });
    return {
      bucket,
      key,
      ...(document !== undefined && { index: document }),
      storage: shown(answer),
      clocks: {
        ...(document !== undefined && { document: document.clock }),
        floor: record.floor,
        ...(observationClock !== undefined && { observation: observationClock }),
      },
      agrees,
      sentence,
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

function shown(answer: StorageAnswer): Explanation['storage'] {
  if ('fault' in answer) return { fault: answer.fault, advice: faults[answer.fault.code].advice };
  return { state: answer.state, observedAt: new Date(answer.observedAtMs).toISOString() };
}
