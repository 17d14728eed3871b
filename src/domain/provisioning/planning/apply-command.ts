/** The command that connects a bucket, or applies a change of its connection. */
import { shellWords } from '../../commands.ts';
import type { BucketSource, EnrichMode } from '../../bucket.ts';

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

/** The words of the command that applies a wish, with the token that agrees to its plan. */
export function applyCommand(
  asked: WishRequest,
  { foreign, token }: { readonly foreign: readonly unknown[]; readonly token: string },
): string {
  return addCommand(asked, ...(foreign.length === 0 ? [] : ['--agree', token]));
}

/** The command that shows the plan of the same wish. */
export function planCommand(asked: WishRequest): string {
  return addCommand(asked, '--plan');
}

function addCommand(asked: WishRequest, ...more: readonly string[]): string {
  const { bucket, source, topic_arn: topic, enrich, bucket_account: account, wired_by_hand: byHand } = asked;
  return shellWords(
    'tally',
    'bucket',
    'add',
    bucket,
    ...(source === undefined ? [] : ['--source', source]),
    ...(topic === undefined ? [] : ['--topic', topic]),
    ...(enrich === undefined ? [] : ['--enrich', enrich]),
    ...(account === undefined ? [] : ['--bucket-account', account]),
    ...(byHand === true ? ['--wired-by-hand'] : []),
    ...more,
  );
}
