/**
 * The record of what Tally made in AWS for a bucket. It outlives the bucket's own record until every part of ours is gone.
 *
 *   applying ──► applied ⇄ paused
 *       └────────────┴──────┴──► removing ──► (deleted)
 */
import { z } from 'zod';
import { bucketSources, enrichModes } from '../records/bucket.ts';
import { omit } from '../base/defined.ts';
import { canonicalJson } from './canonical.rules.ts';
import { parseArn } from './names.rules.ts';

/** What a bucket is to have in AWS. The account of the place is that of the queues and of all parts, and the region that of the bucket. */
const specSchema = z.object({
  bucket: z.string(),
  region: z.string(),
  partition: z.string(),
  account: z.string(),
  /** The account that must own the bucket: another one only with the source `topic`. */
  bucketAccount: z.string(),
  installation: z.string(),
  registry: z.string(),
  source: z.enum(bucketSources),
  /** A topic of others: with the source `topic`, and with `routed` if the rule is to send to it instead of to a topic of Tally's. */
  topicArn: z.string().exactOptional(),
  enrich: z.enum(enrichModes),
  queueArn: z.string(),
  /** Absent: the bucket queue has no redrive policy. */
  deadLetterArn: z.string().exactOptional(),
  /** A person has wired it: the notification, or the rule with its transformer and the trail, are theirs. */
  byHand: z.boolean().exactOptional(),
  /** With the source `routed`: the trail that Tally may write to. */
  trailArn: z.string().exactOptional(),
  /** Else the bucket of the logs of a trail that Tally does not write to. */
  trailBucket: z.string().exactOptional(),
});
export type ConnectionSpec = Readonly<z.infer<typeof specSchema>>;

export const connectionStates = ['applying', 'applied', 'paused', 'removing'] as const;

/** What the record knows besides the spec. */
export const madeSchema = z.object({
  state: z.enum(connectionStates),
  /** What it was before its region, its source, its topic, its queue, its trail or who wires it was changed, as far as its parts may be left in AWS. */
  earlier: z.array(specSchema).optional(),
  /** The token under which it is applied. */
  token: z.string().optional(),
  /** What Tally made, or is about to make, where neither name nor tag says it: subscriptions to topics that were named, and trails that got the bucket in a selector. */
  made: z.array(z.string()),
  /** When AWS was last changed: events may be missing until some minutes later. */
  changedAtMs: z.number().optional(),
  pausedAtMs: z.number().optional(),
});

/** The spec that the parts were made for, by the registry that it names. */
export const connectionSchema = specSchema.extend(madeSchema.shape);
export type ConnectionRecord = z.infer<typeof connectionSchema>;

/** The most ways that are remembered: each of the five sources, some topics, queues and trails. */
const EARLIER_MAX = 10;

/** What is left over after a connection becomes another: what it was, without what it is now. */
export function earlierAfter(before: ConnectionRecord | undefined, now: ConnectionSpec): ConnectionSpec[] {
  if (before === undefined) return [];
  const last = specOf(before);
  // these give no part another name, place or owner
  const wayOf = (spec: ConnectionSpec): string => canonicalJson(omit(spec, 'bucketAccount', 'enrich', 'deadLetterArn', 'trailBucket'));
  const others = (before.earlier ?? []).filter((each) => wayOf(each) !== wayOf(last));
  return [...others, last].filter((each) => wayOf(each) !== wayOf(now)).slice(-EARLIER_MAX);
}

/** The spec alone, of a record or of what else holds one. */
export function specOf(from: ConnectionSpec): ConnectionSpec {
  return specSchema.parse(from);
}

/** The specs that a connection had before it was changed, and one for each trail that got the bucket in a selector, whose rule has gone by then. */
export function earlierSpecs({ earlier = [], made, ...spec }: ConnectionRecord): readonly ConnectionSpec[] {
  const routed = { ...omit(specOf(spec), 'topicArn', 'byHand', 'trailBucket'), source: 'routed' } as const;
  return [...earlier, ...made.filter(isTrail).map((trailArn) => ({ ...routed, trailArn }))];
}

/** Whether it is the name of a trail among what was made. */
export function isTrail(name: string): boolean {
  return parseArn(name)?.service === 'cloudtrail';
}

/** The name of a subscription: its ARN is not known before it is made. */
export function subscriptionName({ topicArn, queueArn }: { readonly topicArn: string; readonly queueArn: string }): string {
  return `${topicArn} → ${queueArn}`;
}
