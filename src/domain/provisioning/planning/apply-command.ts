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
  readonly minimal?: boolean;
  /** Whether what an earlier installation configured on the bucket is taken over. */
  readonly adopt?: boolean;
}

/** The words of the command that applies a wish. A bucket that is not connected is connected by it. */
export function applyCommand(asked: WishRequest, { foreign, token }: Pick<Plan, 'foreign' | 'token'>, isConnected: boolean): string {
  const { bucket } = asked;
  const { wish, flags } = optionsOf(asked);
  const agreed = foreign.length === 0 ? [] : ['--plan', token];
  const apply = shellWords('tally', 'bucket', 'apply', bucket, ...wish, ...flags, ...agreed);
  if (isConnected) return apply;
  if (flags.length === 0) return shellWords('tally', 'bucket', 'add', bucket, ...wish, '--apply', ...agreed);
  // what belongs to one apply only is no option of adding a bucket
  return `${shellWords('tally', 'bucket', 'add', bucket, ...wish)} && ${apply}`;
}

/** The command that shows the plan of the same wish. */
export function planCommand(asked: WishRequest): string {
  const { wish, flags } = optionsOf(asked);
  return shellWords('tally', 'bucket', 'plan', asked.bucket, ...wish, ...flags);
}

function optionsOf({ source, topic_arn: topic, enrich, bucket_account: account, minimal, adopt }: WishRequest) {
  const wish = [
    ...(source === undefined ? [] : ['--source', source]),
    ...(topic === undefined ? [] : ['--topic', topic]),
    ...(enrich === undefined ? [] : ['--enrich', enrich]),
    ...(account === undefined ? [] : ['--bucket-account', account]),
  ];
  const flags = [...(minimal === true ? ['--minimal'] : []), ...(adopt === true ? ['--adopt'] : [])];
  return { wish, flags };
}
