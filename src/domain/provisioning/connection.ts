/**
 * The record of what Tally made in AWS for a bucket. It outlives the bucket's own record until every part of ours is gone.
 *
 *   applying ──► applied ⇄ paused
 *       └────────────┴──────┴──► removing ──► (deleted)
 */
import { z } from 'zod';
import { wishSchema } from './wiring.ts';

export const connectionStates = ['applying', 'applied', 'paused', 'removing'] as const;

export const partKinds = ['topic-policy', 'queue-policy', 'subscription', 'rule', 'target', 'trail', 'notification'] as const;

/** What the names of parts follow from, and where they lead. */
const earlierSchema = wishSchema.pick({
  source: true,
  topicArn: true,
  queueArn: true,
  deadLetterArn: true,
});
type Earlier = z.infer<typeof earlierSchema>;

/** What the record knows besides the wish. */
export const madeSchema = z.object({
  state: z.enum(connectionStates),
  /** What it was before its source, its topic or its queue was changed, as far as its parts may be left in AWS. */
  earlier: z.array(earlierSchema).optional(),
  /** The token under which it is applied. */
  token: z.string().optional(),
  /** What Tally made, or is about to make, where neither name nor tag says it: subscriptions to topics that were named, and trails that got the selector. */
  made: z.array(z.string()),
  /** When AWS was last changed: events may be missing until some minutes later. */
  changedAtMs: z.number().optional(),
  pausedAtMs: z.number().optional(),
});

/** The wish that the parts were made for, by the registry that it names. */
export const connectionSchema = wishSchema.extend(madeSchema.shape);
export type ConnectionRecord = z.infer<typeof connectionSchema>;

/** The most wirings that are remembered: each of the four sources, some topics and queues. */
const EARLIER_MAX = 10;

/** What is left over after a connection becomes another: what it was wired as, without what it is wired as now. */
export function earlierAfter(before: ConnectionRecord | undefined, now: Earlier): Earlier[] {
  if (before === undefined) return [];
  const last = earlierSchema.parse(before);
  const wayOf = ({ source, topicArn, queueArn }: Earlier): string => JSON.stringify([source, topicArn, queueArn]);
  const others = (before.earlier ?? []).filter((each) => wayOf(each) !== wayOf(last));
  return [...others, last].filter((each) => wayOf(each) !== wayOf(now)).slice(-EARLIER_MAX);
}

/** The name of a subscription: its ARN is not known before it is made. */
export function subscriptionName({ topicArn, queueArn }: { readonly topicArn: string; readonly queueArn: string }): string {
  return `${topicArn} → ${queueArn}`;
}
