/** What the doctor says while nothing has proven that a bucket's events arrive. */
import type { BucketRecord } from '../../bucket.ts';
import { unprovenText } from '../../bucket-status.ts';
import { statusOf, type Finding } from './finding.ts';

/** `found`: what is wrong besides. Where nothing is, the likely causes are those that no read shows. */
export function unprovenFindings(record: BucketRecord, found: readonly Finding[], nowMs: number): readonly Finding[] {
  const { bucket, provenAtMs } = record;
  if (provenAtMs !== undefined) return [];
  const status = statusOf(found);
  const isInPlace = status === 'ok' || status === 'degraded';
  return [
    {
      code: 'connect.unproven',
      severity: 'unknown',
      what: `${bucket}: ${unprovenText(record, nowMs)}`,
      why: isInPlace
        ? 'all that Tally can read is in place, and only an event proves that events arrive. If none does, the likely causes are a Deny in a policy of others (of the topic, the queue or the organisation), or a key whose policy does not let S3, SNS or EventBridge use it'
        : 'only an event proves that events arrive',
      fix: `put an object into ${bucket} and delete it, then run \`tally explain ${bucket} KEY\``,
      blocks: false,
    },
  ];
}
