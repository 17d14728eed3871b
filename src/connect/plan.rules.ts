/**
 * A connection's parts in AWS, as they are made and as they are read; and plans: the changes that connect a bucket or remove its parts,
 * what they touch of other owners, and both as texts.
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

/** A rule's target, as EventBridge accepts and returns it. It is compared as a whole, since other owners' targets may have more fields. */
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

/** A queue's, topic's or subscription's attributes by AWS's names. */
export type Attributes = Readonly<Record<string, string>>;

export interface ObservedQueue {
  readonly arn: string;
  readonly url: string;
  readonly attributes: Attributes;
}

export interface ObservedTopic {
  readonly attributes: Attributes;
  /** The bucket queue's. */
  readonly subscription: ObservedSubscription | 'absent';
}

export interface ObservedSubscription {
  /** Absent until it is confirmed, because SNS returns no ARN before. */
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
  /** The bucket that receives its logs. */
  readonly logBucket?: string;
  readonly selectors: Selectors;
}

export interface Observed {
  readonly notification: NotificationResult & { readonly xml: string };
  readonly queues: readonly ObservedQueue[];
  /** Undefined if none is needed; `absent` if it does not exist. */
  readonly topic?: ObservedTopic | 'absent';
  readonly rule?: ObservedRule | 'absent';
  /** The trail that Tally may change. Undefined if the settings name none, or none is needed. */
  readonly trail?: ObservedTrail | 'absent';
}

export const touchedKinds = ['destination', 'switch', 'topic-policy', 'trail'] as const;

/** What a change touches of another owner, as data. A person must see it before the change is made. */
export interface Touched {
  readonly kind: (typeof touchedKinds)[number];
  /** The other owner's resource. */
  readonly arn: string;
  /** Its current state. */
  readonly before?: unknown;
  /** Its new state, or what is added. */
  readonly after: unknown;
}

/** One change, as the API shows it. */
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
  /** Without this change, only undeliverable events are lost. */
  readonly isOfLetters?: boolean;
  /** Makes the change, unless AWS differs from the plan by now. `waiting`: AWS does not show it yet. Throws `connect.changed-meanwhile`, and what AWS refuses. */
  readonly make: (signal?: AbortSignal) => Promise<'waiting' | void>;
}

/** A part that a removal leaves, and why. */
export interface Kept {
  readonly name: string;
  readonly reason: string;
}

export interface Plan {
  readonly spec: ConnectionSpec;
  /** In the order in which they are made. */
  readonly changes: readonly Change[];
  /** What prevents an apply, and what no apply fixes. */
  readonly findings: readonly Finding[];
  /** What the changes touch of other owners. A person must agree to it. */
  readonly foreign: readonly Touched[];
  /** Identifies the spec together with everything in AWS that is not Tally's. */
  readonly token: string;
}

/** What is touched, as a text. */
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

/** Changes as a text: what each writes to, and below it the difference. */
export function changesText(
  changes: readonly (Pick<Change, 'action' | 'name' | 'before' | 'after'> & { readonly part: string })[],
): string {
  return changes
    .map(({ action, part, name, before, after }) =>
      [`${SIGNS[action]} ${part} ${name}`, ...differenceOf(before, after).map((line) => `    ${line}`)].join('\n'),
    )
    .join('\n\n');
}

/** A request about a bucket. Omitted fields are those of its record. */
export interface ConnectionRequest {
  readonly bucket: string;
  readonly source?: BucketSource;
  readonly topic_arn?: string;
  readonly enrich?: EnrichMode;
  readonly bucket_account?: string;
  /** Whether a person wires the notification, or the rule with its transformer and trail. */
  readonly wired_by_hand?: boolean;
}
