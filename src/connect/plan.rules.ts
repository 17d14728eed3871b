/**
 * The parts of a connection in AWS, as they are made and as they are read; and plans: the changes that connect a bucket or take its
 * parts away, what they touch of others, and both as people read them.
 */
import { z } from 'zod';
import type { BucketSource, ConnectionSpec, EnrichMode } from '../records/bucket.ts';
import { differenceOf } from '../base/difference.ts';
import type { Finding } from './finding.rules.ts';
import type { Tags } from './names.rules.ts';
import type { NotificationResult } from './notification.rules.ts';
import type { Selectors } from './trail.rules.ts';

export interface Subscription {
  readonly topicArn: string;
  readonly queueArn: string;
  readonly deadLetterArn?: string;
}

/** The target of a rule, as EventBridge takes it and answers it. One of others may have more: it is compared as a whole. */
export interface Target {
  readonly Id: string;
  readonly Arn: string;
  readonly DeadLetterConfig?: { readonly Arn?: string | undefined } | undefined;
  readonly InputTransformer?: InputTransformer | undefined;
}

export interface Rule {
  readonly name: string;
  readonly arn: string;
  readonly pattern: object;
  readonly target: Target;
}

export interface InputTransformer {
  readonly InputPathsMap?: Record<string, string> | undefined;
  readonly InputTemplate: string | undefined;
}

/** What AWS says of a queue, a topic or a subscription, by its own names. */
export type Attributes = Readonly<Record<string, string>>;

export interface ObservedQueue {
  readonly arn: string;
  readonly url: string;
  readonly attributes: Attributes;
}

export interface ObservedTopic {
  readonly attributes: Attributes;
  /** That of the bucket queue. */
  readonly subscription: ObservedSubscription | 'absent';
}

export interface ObservedSubscription {
  /** Absent while it is not confirmed: SNS names no ARN then. */
  readonly arn?: string;
  readonly attributes: Attributes;
}

export interface ObservedRule {
  readonly pattern?: string;
  readonly isEnabled: boolean;
  readonly targets: readonly Target[];
  readonly tags: Tags;
}

export interface ObservedTrail {
  readonly arn: string;
  readonly homeRegion: string;
  readonly isLogging: boolean;
  /** The bucket of its logs. */
  readonly logBucket?: string;
  /** Undefined: they have a form that this version does not know. */
  readonly selectors: Selectors | undefined;
}

export interface Observed {
  readonly notification: NotificationResult & { readonly xml: string };
  readonly queues: readonly ObservedQueue[];
  /** Undefined: none is needed; absent: it does not exist. */
  readonly topic?: ObservedTopic | 'absent';
  readonly rule?: ObservedRule | 'absent';
  /** The trail that Tally may write to. Undefined: the settings name none, or none is needed. */
  readonly trail?: ObservedTrail | 'absent';
}

export const touchedKinds = ['destination', 'switch', 'topic-policy', 'trail'] as const;

/** What a change touches of others, as data: a person must have seen it before it is made. */
export interface Touched {
  readonly kind: (typeof touchedKinds)[number];
  /** Of what belongs to others. */
  readonly arn: string;
  /** What is there. */
  readonly before?: unknown;
  /** What it becomes, or gets. */
  readonly after: unknown;
}

/** One change, of what is there to what must be there, as the API shows it. */
export const plannedChangeSchema = z
  .object({
    part: z.enum(['policy', 'subscription', 'rule', 'trail', 'notification']),
    action: z.enum(['create', 'change', 'remove']),
    name: z.string().describe("The ARN of the changed resource, or the bucket's name."),
    before: z.unknown().optional().describe('The current document. Absent: there is none.'),
    after: z.unknown().optional().describe('The document to be written.'),
  })
  .readonly()
  .meta({ id: 'PlannedChange', description: 'One write of a plan.' });

export interface Change extends z.infer<typeof plannedChangeSchema> {
  readonly touches: readonly Touched[];
  /** Without it only what cannot be delivered is lost. */
  readonly isOfLetters?: boolean;
  /** Makes it, if everything is still as it was when it was planned. `waiting`: AWS does not show it yet. Throws `connect.changed-meanwhile`, and what AWS refuses. */
  readonly make: (signal?: AbortSignal) => Promise<'waiting' | void>;
}

/** What stays although it is ours, and why. */
export interface Kept {
  readonly name: string;
  readonly reason: string;
}

export interface Plan {
  readonly spec: ConnectionSpec;
  /** In the order in which they are made. */
  readonly changes: readonly Change[];
  /** What stands in the way, and what no apply heals. */
  readonly findings: readonly Finding[];
  /** What of others the changes touch: a person must agree to it. */
  readonly foreign: readonly Touched[];
  /** Identifies the spec together with everything that is not ours. */
  readonly token: string;
}

/** What is touched, as people read it. */
export function touchedText({ kind, arn, before, after }: Touched): string {
  switch (kind) {
    case 'destination':
      return `${arn} gets an s3:TestEvent`;
    case 'switch':
      return "all of the bucket's events will also go to EventBridge";
    case 'topic-policy':
      return `the policy of ${arn}, which Tally did not create, gets ${JSON.stringify(after)}`;
    case 'trail':
      return `all selectors of ${arn} are rewritten: ${JSON.stringify(before)}`;
  }
}

const SIGNS: Readonly<Record<Change['action'], string>> = { create: '+', change: '~', remove: '-' };

/** Changes as people read them: what each writes to, and the difference below. */
export function changesText(
  changes: readonly (Pick<Change, 'action' | 'name' | 'before' | 'after'> & { readonly part: string })[],
): string {
  return changes
    .map(({ action, part, name, before, after }) =>
      [`${SIGNS[action]} ${part} ${name}`, ...differenceOf(before, after).map((line) => `    ${line}`)].join('\n'),
    )
    .join('\n\n');
}

/** A request about a bucket. What is left out is that of its record. */
export interface ConnectionRequest {
  readonly bucket: string;
  readonly source?: BucketSource;
  readonly topic_arn?: string;
  readonly enrich?: EnrichMode;
  readonly bucket_account?: string;
  /** Whether the notification, or the rule and what belongs to it, are a person's. */
  readonly wired_by_hand?: boolean;
}
