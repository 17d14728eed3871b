/** The parts of a connection in AWS: as they are made, and as they are read. */
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
