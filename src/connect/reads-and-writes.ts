/**
 * What Tally reads and makes in AWS so that a bucket's events reach the bucket queue. The conventions of store.ts hold.
 * Every function throws `connect.denied` (a RequestError with the missing action) and the faults `connect.unavailable`,
 * `connect.credentials` and `connect.quota`; those about buckets also the faults of S3, such as `bucket.missing`.
 */
import type { Place, Tags } from './names.rules.ts';
import type { NotificationConfiguration } from './notification.rules.ts';
import type { ObservedQueue, ObservedRule, ObservedSubscription, ObservedTopic, ObservedTrail, Rule, Subscription } from './parts.rules.ts';
import type { Selectors } from './trail.rules.ts';

/** A bucket with the account that must own it: S3 refuses every request if another one does, because a name that was freed may be another's bucket by now. */
export interface OwnedBucket {
  readonly bucket: string;
  readonly region: string;
  readonly account: string;
}

/** Where something is: a request about it goes to this region. */
export type At = Pick<Place, 'region'>;

/** Requests about what has an ARN go to the region that it names: a subscription is made in that of the topic. */
export interface AwsReads {
  /** The notification configuration as S3's own XML. */
  notificationOf(bucket: OwnedBucket, signal?: AbortSignal): Promise<string>;
  /** The queue with this URL. */
  queueAt(queueUrl: string, signal?: AbortSignal): Promise<ObservedQueue>;
  /** The tags of the queue with this URL. */
  queueTags(queueUrl: string, signal?: AbortSignal): Promise<Tags>;
  /** The URL of the queue with this ARN; undefined if it does not exist. */
  queueUrlOf(queueArn: string, signal?: AbortSignal): Promise<string | undefined>;
  /** The queue with this ARN, in this account or another. */
  queueOf(queueArn: string, signal?: AbortSignal): Promise<ObservedQueue | 'absent'>;
  /** The topic, and the subscription of the queue to it. */
  topicOf(
    topicArn: string,
    queueArn: string,
    signal?: AbortSignal,
  ): Promise<{ readonly topic: ObservedTopic; readonly subscription: ObservedSubscription | 'absent' } | 'absent'>;
  /** The rule on the default bus. */
  ruleOf(at: At, name: string, signal?: AbortSignal): Promise<ObservedRule | 'absent'>;
  /** How many rules the default bus has. */
  ruleCount(at: At, signal?: AbortSignal): Promise<number>;
  /** The trails that apply to the region and have this ARN, or this bucket of logs. */
  trailsOf(
    at: At,
    which: { readonly arn: string } | { readonly logBucket: string },
    signal?: AbortSignal,
  ): Promise<readonly ObservedTrail[]>;
}

/**
 * Each function sends each of its requests once: a caller that repeats one must read first what is there by then, because another may
 * have written in between, or the first may have had its effect.
 */
export interface AwsWrites {
  /**
   * Replaces the whole configuration. Throws `connect.overlap` for either of S3's two errors about it, `connect.destination` if
   * S3 cannot validate a destination, and `connect.busy` if another change of the bucket is under way.
   */
  putNotification(
    bucket: OwnedBucket,
    configuration: NotificationConfiguration,
    options: { readonly skipValidation: boolean },
    signal?: AbortSignal,
  ): Promise<void>;
  setTopicPolicy(topicArn: string, policy: string, signal?: AbortSignal): Promise<void>;
  /** An empty policy removes it. */
  setQueuePolicy(queueArn: string, policy: string, signal?: AbortSignal): Promise<void>;
  subscribe(subscription: Subscription, signal?: AbortSignal): Promise<void>;
  setSubscription(subscriptionArn: string, attributes: Readonly<Record<string, string>>, signal?: AbortSignal): Promise<void>;
  /** Makes or changes the rule, with its pattern as a whole. The tags are those of a new one. */
  putRule(at: At, rule: Rule, tags: Tags, signal?: AbortSignal): Promise<void>;
  putTarget(at: At, rule: Rule, signal?: AbortSignal): Promise<void>;
  /** Removes the rule's target and the rule. Either may be gone already, as with the functions below. */
  removeRule(at: At, rule: Rule, signal?: AbortSignal): Promise<void>;
  /** Replaces all selectors of the trail, in its home region. */
  putSelectors(trailArn: string, selectors: Selectors, signal?: AbortSignal): Promise<void>;
  /** Publishes a message through the topic. */
  publish(topicArn: string, message: string, signal?: AbortSignal): Promise<void>;
  unsubscribe(subscriptionArn: string, signal?: AbortSignal): Promise<void>;
}

export interface Provisioner extends AwsReads, AwsWrites {}
