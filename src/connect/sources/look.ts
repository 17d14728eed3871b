/** What the files of the sources share: what a bucket must have in AWS, and what a look has found. */
import { defined } from '../../base/defined.ts';
import type { ConnectionSpec } from '../../records/bucket.ts';
import type { Finding } from '../finding.rules.ts';
import { farLettersArn, parseArn, topicArnOf } from '../names.rules.ts';
import type { NotificationEntry } from '../notification.rules.ts';
import type { Observed, ObservedQueue, Rule, Subscription } from '../plan.rules.ts';
import type { Statement } from '../policy.rules.ts';
import { bridgeStatement, topicStatement } from '../shared.rules.ts';
import type { Clock } from '../../process/clock.ts';
import type { OwnedBucket } from '../aws/notification.ts';
import type { Provisioner } from '../aws/provisioner.ts';

export interface Desired {
  /** A topic that something must be allowed to publish to: Tally's own, or the one that was named. */
  readonly topic?: { readonly arn: string; readonly statement: Statement };
  /** Shared, or the bucket's own if its topic was named. */
  readonly subscription?: Subscription;
  /** The queues to which events are sent, or what could not be delivered. */
  readonly queues: readonly string[];
  /** The configuration of the bucket that is Tally's. */
  readonly entry?: NotificationEntry;
  /** Whether the bucket must send its events to EventBridge. */
  readonly eventBridge?: boolean;
  readonly rule?: Rule;
  /** The trail that must record the data events of the bucket, if it is one that Tally may write to. */
  readonly trailArn?: string;
}

export interface Tools {
  readonly aws: Provisioner;
  readonly clock: Clock;
}

export interface Look {
  readonly spec: ConnectionSpec;
  readonly desired: Desired;
  readonly observed: Observed;
  readonly tools: Tools;
}

/** Finds what stands in the way of a source. */
export type Check = (look: Look) => Finding | undefined;

/** What a removal leaves, as the records say it. */
export interface Remains {
  /** What the bucket has from now on. Absent: nothing. */
  readonly still?: Desired;
  /** What other buckets use: the named topics to which their rules send, and by the names of subscriptions, each named topic with the queues that admit it. */
  readonly used: ReadonlySet<string>;
  /** What Tally made where neither name nor tag says it: what was there before belongs to others. */
  readonly made: readonly string[];
}

/** Whether the bucket queue is in another region than the bucket, its topic and its rule. */
export function isFar({ queueArn, region }: ConnectionSpec): boolean {
  return (parseArn(queueArn)?.region ?? region) !== region;
}

/**
 * The queue for what SNS and EventBridge cannot deliver: it must be in their region, and SNS demands the account of the bucket queue.
 * https://docs.aws.amazon.com/sns/latest/dg/sns-dead-letter-queues.html
 */
export function nearLetters(spec: ConnectionSpec): string | undefined {
  return isFar(spec) ? farLettersArn(spec.installation, spec) : spec.deadLetterArn;
}

/** The bucket queue and the dead-letter queue of the region. */
export function queuesOf(spec: ConnectionSpec): readonly string[] {
  return [spec.queueArn, nearLetters(spec) ?? []].flat();
}

export function subscribed(spec: ConnectionSpec, topicArn: string): Required<Pick<Desired, 'subscription' | 'queues'>> {
  const { queueArn } = spec;
  return { subscription: { topicArn, queueArn, ...defined({ deadLetterArn: nearLetters(spec) }) }, queues: queuesOf(spec) };
}

/** The way through a topic of Tally's, or for EventBridge through the one that was named. */
export function through(spec: ConnectionSpec, use: 'events' | 'routed'): Required<Pick<Desired, 'topic' | 'subscription' | 'queues'>> {
  const { topicArn: arn = topicArnOf(spec.installation, spec, use) } = spec;
  const statement = spec.topicArn === undefined ? topicStatement(spec, spec, use) : bridgeStatement(spec, arn);
  return { topic: { arn, statement }, ...subscribed(spec, arn) };
}

/** The bucket of a spec for requests to S3. */
export function ownedBucket({ bucket, region, bucketAccount }: ConnectionSpec): OwnedBucket {
  return { bucket, region, account: bucketAccount };
}

export function queueIn({ queues }: Observed, arn: string): ObservedQueue | undefined {
  return queues.find((queue) => queue.arn === arn);
}

/** What was found, if it exists. */
export function existing<Part>(part: Part | 'absent' | undefined): Part | undefined {
  return part === 'absent' ? undefined : part;
}

/** The name of a subscription: its ARN is not known before it is made. */
export function subscriptionName({ topicArn, queueArn }: Pick<Subscription, 'topicArn' | 'queueArn'>): string {
  return `${topicArn} → ${queueArn}`;
}
