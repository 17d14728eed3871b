/** A sweep visits each connected bucket once. A fault of one bucket is reported, and the others are visited all the same. */
import { bucketRecordSchema, type BucketRecord } from '../../domain/bucket.ts';
import { faultOf } from '../../domain/fault.ts';
import type { StateStore } from '../ports/state.ts';
import type { Sweep, Telemetry } from '../ports/telemetry.ts';
import { listAllRecords } from '../records/stored.ts';

/** Visits one bucket. Resolves with the objects checked or tombstones purged; undefined when nothing was due, which is not reported. */
export type Visit = (bucket: BucketRecord, signal: AbortSignal) => Promise<number | undefined>;

/** Creates the sweep. It throws the store's fault when the buckets cannot be listed. */
export function createSweep(
  { state, telemetry }: { readonly state: StateStore; readonly telemetry: Telemetry },
  sweep: Sweep,
  visit: Visit,
): (signal: AbortSignal) => Promise<void> {
  return async function sweepBuckets(signal) {
    for (const bucket of await listAllRecords(state, 'bucket', bucketRecordSchema)) {
      signal.throwIfAborted();
      try {
        const objects = await visit(bucket, signal);
        if (objects !== undefined) telemetry.sweepEnded({ sweep, bucket: bucket.bucket, result: 'ok', objects });
      } catch (error) {
        signal.throwIfAborted();
        const { code, reason } = faultOf(error);
        telemetry.sweepEnded({ sweep, bucket: bucket.bucket, result: code, objects: 0 });
        telemetry.requestFailed(`sweep: ${sweep}`, code, reason);
      }
    }
  };
}
