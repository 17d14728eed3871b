/** Records of buckets. */
import type { BucketRecord } from '../../../src/records/bucket.ts';

/** A bucket of which nothing is known but that it is connected. */
export function recordOf(bucket: string, more: Partial<BucketRecord> = {}): BucketRecord {
  return {
    bucket,
    region: 'us-east-1',
    source: 'notification',
    versioning: { status: 'never', observedAtMs: 0 },
    enrich: 'none',
    floor: 0,
    createdAtMs: 0,
    createdBy: 'test',
    checkedAtMs: 0,
    ...more,
  };
}
