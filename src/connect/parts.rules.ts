/** The parts of a connection in AWS: as they are made, and as they are read. */
import type { Tags } from './names.rules.ts';
import type { NotificationResult } from './notification.rules.ts';
import type { Selectors } from './trail.rules.ts';

export interface Subscription {
  readonly topicArn: string;
  readonly queueArn: string;
  readonly deadLetterArn?: string;
}

export interface Target {
  readonly id: 'bucket-queue' | 'routed-topic';
  readonly arn: string;
  readonly deadLetterArn?: string;
  readonly transformer?: InputTransformer;
}

/** The target as EventBridge, its command line and its templates take it. */
export function sdkTarget({ id, arn, deadLetterArn, transformer: input }: Target) {
  return {
    Id: id,
    Arn: arn,
    ...(deadLetterArn !== undefined && { DeadLetterConfig: { Arn: deadLetterArn } }),
    ...(input !== undefined && { InputTransformer: { InputPathsMap: { ...input.paths }, InputTemplate: input.template } }),
  };
}

export interface Rule {
  readonly name: string;
  readonly arn: string;
  readonly pattern: object;
  readonly target: Target;
}

export interface InputTransformer {
  readonly paths: Readonly<Record<string, string>>;
  readonly template: string;
}

export interface ObservedTopic {
  readonly policy?: string;
  /** The subscriptions of other endpoints than the bucket queue. */
  readonly otherSubscriptions: number;
}

export interface ObservedQueue {
  readonly arn: string;
  readonly policy?: string;
  /** The target of its redrive policy. Absent: it has no such policy. */
  readonly deadLetterArn?: string;
  /** Absent: the queue did not say, which servers other than SQS may do. */
  readonly retentionS?: number;
  /** About how many messages it holds that no one has received. */
  readonly messages?: number;
}

export interface ObservedSubscription {
  /** Absent while it is not confirmed: SNS names no ARN then. */
  readonly arn?: string;
  readonly isPending: boolean;
  readonly isRaw: boolean;
  readonly filterPolicy?: string;
  readonly deadLetterArn?: string;
}

export interface ObservedTarget extends Omit<Target, 'id'> {
  readonly id: string;
  readonly roleArn?: string;
  /** It sends a part of the event, or a constant, instead of the event. */
  readonly hasOtherInput?: true;
}

export interface ObservedRule {
  readonly pattern?: string;
  readonly isEnabled: boolean;
  readonly targets: readonly ObservedTarget[];
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
  readonly subscription?: ObservedSubscription | 'absent';
  readonly rule?: ObservedRule | 'absent';
  /** The trails that the settings name. Undefined: they name none, or none is needed. */
  readonly trails?: readonly ObservedTrail[];
}
