/** What the doctor says while nothing has proven that a bucket's events arrive. */
import type { BucketRecord } from '../../bucket.ts';
import { unprovenText } from '../../bucket-status.ts';
import { statusOf, type Finding } from './finding.ts';

const UNREADABLE =
  'a Deny in a policy of others (of the topic, the queue or the organisation), or a key whose policy does not let S3, SNS or EventBridge use it';

interface Facts {
  /** What is wrong besides. */
  readonly found: readonly Finding[];
  /** A person has wired it. */
  readonly isByHand: boolean;
  readonly nowMs: number;
}

/** Names what has not arrived of a connection that is not proven yet, and the likely causes. */
export function unprovenFindings(record: BucketRecord, { found, isByHand, nowMs }: Facts): readonly Finding[] {
  const { bucket, provenAtMs, arrived = [] } = record;
  if (provenAtMs !== undefined) return [];
  return [
    {
      code: 'connect.unproven',
      severity: 'unknown',
      what: `${bucket}: ${unprovenText(record, nowMs)}`,
      why: whyOf({ isHalf: arrived.length > 0, isInPlace: isInPlace(found), isByHand }),
      fix: `put an object into ${bucket} and delete it, then run \`tally explain ${bucket} KEY\``,
      blocks: false,
    },
  ];
}

function isInPlace(found: readonly Finding[]): boolean {
  const status = statusOf(found);
  return status === 'ok' || status === 'degraded';
}

function whyOf(of: { readonly isHalf: boolean; readonly isInPlace: boolean; readonly isByHand: boolean }): string {
  if (of.isHalf) return 'the way works. If the other kind never comes, an entry, a rule or a filter that Tally did not make leaves it out';
  if (!of.isInPlace) return 'only an event proves that events arrive';
  if (of.isByHand)
    return `only an event proves what a person wired. If none arrives, see first that the notification, rule or trail is there and sends both kinds of events; other likely causes are ${UNREADABLE}`;
  return `all that Tally can read is in place, and only an event proves that events arrive. If none does, the likely causes are ${UNREADABLE}`;
}
