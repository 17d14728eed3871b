/**
 * How far an answer can be relied on. Every answer of a tool says it, so that a program never takes an old answer for what is.
 * What a person would do about it is left out: programs are given no command to run.
 */
import { z } from 'zod';
import { bucketStatus, type ShownBucket } from '../api/buckets.ts';
import type { Context, Operations } from '../api/contract.ts';
import { asOf } from '../api/search.ts';
import { bucketSeverities } from '../domain/bucket-status.ts';
import { withoutCommands } from '../domain/commands.ts';
import { printable } from '../domain/printable.ts';

/** The operations, and for whom they are called. */
export interface Asker {
  readonly operations: Operations;
  readonly context: Context;
}

/** The search describes as many. */
const BUCKETS_MAX = 8;
/** More do not fit in a sentence. */
const NAMED_MAX = 3;
/** The most that one request answers. */
const PAGE = 1_000;

/** The status of a bucket, without what a person does about it. */
const statusOnly = bucketStatus.omit({ act: true });

/** How far the index of one bucket can be relied on. */
export const bucketReliability = asOf.omit({ status: true, gap_prefixes: true }).extend({
  status: statusOnly.describe('How far the index of the bucket can be relied on.'),
  gap_prefixes: asOf.shape.gap_prefixes.exactOptional(),
});
type BucketReliability = z.output<typeof bucketReliability>;

/** The fields with which every answer begins. */
export const reliability = {
  agreement: z.string().describe('How far this answer can be relied on, in one sentence. Pass it on with the answer.'),
  may_differ: z.boolean().describe('True: the answer may lack objects, or show objects as they were. `agreement` and `as_of` say why.'),
  as_of: z
    .array(bucketReliability)
    .readonly()
    .describe('As of when the index of each bucket agrees with S3, and what it may lack. The worst come first; at most 8 buckets.'),
};
interface Reliability {
  readonly agreement: string;
  readonly may_differ: boolean;
  readonly as_of: readonly BucketReliability[];
}

/** What is known of these buckets. It must be read before the answer that it is about, because a gap that closes later does not make that answer better. */
export function reliabilityOf(all: readonly BucketReliability[]): Reliability {
  const rank = ({ status }: BucketReliability): number => bucketSeverities.indexOf(status.severity);
  const sorted = all.toSorted((a, b) => rank(a) - rank(b));
  const doubtful = sorted.filter((each) => each.status.severity !== 'ok' || each.behind_ms !== undefined);
  return {
    agreement: printable(sentenceOf(sorted, doubtful)),
    may_differ: all.length === 0 || doubtful.length > 0,
    as_of: sorted.slice(0, BUCKETS_MAX),
  };
}

function sentenceOf(all: readonly BucketReliability[], doubtful: readonly BucketReliability[]): string {
  const [first] = all;
  if (first === undefined) return 'No bucket is connected that you may read, so this answer says nothing about what exists.';
  if (doubtful.length > 0) {
    const rest = doubtful.length > NAMED_MAX ? `; and ${doubtful.length - NAMED_MAX} more buckets` : '';
    return `This answer may lack objects or show them as they were. ${doubtful.slice(0, NAMED_MAX).map(bucketText).join('; ')}${rest}.`;
  }
  return all.length === 1 ? `${bucketText(first)}.` : `No known difference in any of the ${all.length} buckets.`;
}

function bucketText({ bucket, status, behind_ms: behindMs }: BucketReliability): string {
  const behind = behindMs === undefined ? '' : `, and its events are at least ${Math.round(behindMs / 1_000)} s behind`;
  return `${bucket}: ${status.sentence}${behind}`;
}

/** What a search says of one bucket. */
export async function ofBucket({ operations, context }: Asker, bucket: string): Promise<readonly BucketReliability[]> {
  const { as_of: found = [] } = await operations.searchObjects({ query: { bucket, as_of: 'true', limit: 1 } }, context);
  return found.map(withStatus);
}

/** What the list says of every bucket that the caller may read. */
export async function ofAllBuckets({ operations, context }: Asker): Promise<readonly BucketReliability[]> {
  const all: BucketReliability[] = [];
  let cursor: string | undefined;
  // it ends: a bucket is connected by an administrator, and each page is a part of the list
  do {
    const page = await operations.listBuckets({ query: { limit: PAGE, ...(cursor !== undefined && { cursor }) } }, context);
    all.push(...page.items.map(ofListed));
    cursor = page.next;
  } while (cursor !== undefined);
  return all;
}

/** What the list says of a bucket. */
export function ofListed({ bucket, status, gaps, last_event_at: event, last_compared_at: compared }: ShownBucket): BucketReliability {
  return withStatus({
    bucket,
    status,
    ...(event !== undefined && { last_event_at: event }),
    ...(compared !== undefined && { last_compared_at: compared }),
    gaps,
  });
}

/** With the status as programs read it. */
function withStatus(known: BucketReliability): BucketReliability {
  return { ...known, status: { ...known.status, sentence: withoutCommands(known.status.sentence) } };
}
