/** The command that applies a plan. */
import { shellWords } from '../../commands.ts';
import type { BucketSource, EnrichMode } from '../../bucket.ts';
import type { Plan } from './plan.ts';

/** A request about a bucket. What is left out is that of its record. */
export interface WishRequest {
  readonly bucket: string;
  readonly source?: BucketSource;
  readonly topic_arn?: string;
  readonly enrich?: EnrichMode;
  readonly bucket_account?: string;
  /** Whether the notification, or the rule and what belongs to it, are a person's. */
  readonly wired_by_hand?: boolean;
}

/** The words of the command that applies a wish. A bucket that is not connected is connected by it. */
export function applyCommand(asked: WishRequest, { foreign, token }: Pick<Plan, 'foreign' | 'token'>, isConnected: boolean): string {
  const { bucket } = asked;
  const wish = optionsOf(asked);
  const agreed = foreign.length === 0 ? [] : ['--plan', token];
  return isConnected
    ? shellWords('tally', 'bucket', 'apply', bucket, ...wish, ...agreed)
    : shellWords('tally', 'bucket', 'add', bucket, ...wish, '--apply', ...agreed);
}

/** The command that shows the plan of the same wish. */
export function planCommand(asked: WishRequest): string {
  const { bucket } = asked;
  const wish = optionsOf(asked);
  return shellWords('tally', 'bucket', 'plan', bucket, ...wish);
}

function optionsOf({ source, topic_arn: topic, enrich, bucket_account: account, wired_by_hand: byHand }: WishRequest): readonly string[] {
  return [
    ...(source === undefined ? [] : ['--source', source]),
    ...(topic === undefined ? [] : ['--topic', topic]),
    ...(enrich === undefined ? [] : ['--enrich', enrich]),
    ...(account === undefined ? [] : ['--bucket-account', account]),
    ...(byHand === true ? ['--wired-by-hand'] : []),
  ];
}
