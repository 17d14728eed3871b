/**
 * The record of what Tally made in AWS for a bucket. It outlives the bucket's own record until every part of ours is gone.
 *
 *   applying ──► applied ⇄ paused
 *       └────────────┴──────┴──► removing ──► (deleted)
 */
import { z } from 'zod';
import { wishSchema } from './wiring.ts';

export const connectionStates = ['applying', 'applied', 'paused', 'removing'] as const;

export const partKinds = [
  'topic',
  'topic-policy',
  'queue',
  'queue-policy',
  'subscription',
  'rule',
  'target',
  'trail',
  'notification',
] as const;

/** A part that exists, or is about to be made. */
const partSchema = z.object({
  kind: z.enum(partKinds),
  /** What it belongs to: the ARN of a topic, queue or rule, or of the bucket. */
  arn: z.string(),
  /** False: it was there before, for example as the topic of another team. */
  createdByUs: z.boolean(),
  /** SHA-256 of its content, by which changes of others are noticed. */
  fingerprint: z.string(),
  /** Of a subscription, once SNS shows it: another one of the same queue is not the one that was made. */
  subscriptionArn: z.string().optional(),
});
export type ConnectionPart = z.infer<typeof partSchema>;

/** What the names of parts follow from, and where they lead. */
const earlierSchema = wishSchema.pick({
  source: true,
  topicArn: true,
  queueArn: true,
  deadLetterArn: true,
  installation: true,
});
type Earlier = z.infer<typeof earlierSchema>;

/** What the record knows besides the wish. */
export const madeSchema = z.object({
  state: z.enum(connectionStates),
  /** What it was before its source, its queue or the name of the installation was changed, as far as its parts may be left in AWS. */
  earlier: z.array(earlierSchema).optional(),
  /** The token under which it is applied. */
  token: z.string().optional(),
  parts: z.array(partSchema),
  /** The notification configuration of the bucket as it was before Tally first wrote it: S3's own XML. */
  preImage: z.string().optional(),
  /** When a policy was last written: S3 may refuse a destination for a minute after that. */
  policyChangedAtMs: z.number().optional(),
  /** When AWS was last changed: events may be missing until some minutes later. */
  changedAtMs: z.number().optional(),
  pausedAtMs: z.number().optional(),
  lastCheckMs: z.number().optional(),
});

/** The wish that the parts were made for, by the registry that it names. */
export const connectionSchema = wishSchema.extend(madeSchema.shape);
export type ConnectionRecord = z.infer<typeof connectionSchema>;

/** The name of this installation, and the id of this registry, each made once. An export and its import keep both. */
export const installationSchema = z.object({ installation: z.string(), registry: z.string() });

/** The most wirings that are remembered: each of the four sources, some topics, queues and names. */
const EARLIER_MAX = 10;

/** What is left over after a connection becomes another: what it was wired as, without what it is wired as now. */
export function earlierAfter(before: ConnectionRecord | undefined, now: Earlier): Earlier[] {
  if (before === undefined) return [];
  const last = earlierSchema.parse(before);
  const wayOf = ({ source, topicArn, queueArn, installation }: Earlier): string =>
    JSON.stringify([source, topicArn, queueArn, installation]);
  const others = (before.earlier ?? []).filter((each) => wayOf(each) !== wayOf(last));
  return [...others, last].filter((each) => wayOf(each) !== wayOf(now)).slice(-EARLIER_MAX);
}

/** The name of a subscription among the parts: its ARN is not known before it is made. */
export function subscriptionName({ topicArn, queueArn }: { readonly topicArn: string; readonly queueArn: string }): string {
  return `${topicArn} → ${queueArn}`;
}

/** Whether the record says that Tally made this subscription. One that is being made has no ARN yet, and is known by its name. */
export function madeSubscription({ parts }: Pick<ConnectionRecord, 'parts'>, name: string, subscriptionArn: string): boolean {
  return parts.some(
    (part) =>
      part.kind === 'subscription' &&
      part.arn === name &&
      part.createdByUs &&
      (part.subscriptionArn ?? subscriptionArn) === subscriptionArn,
  );
}
