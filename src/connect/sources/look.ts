/** What the sources' files share: what a bucket must have in AWS, and what a look found. */
import { defined } from '../../base/defined.ts';
import type { ConnectionSpec } from '../../records/bucket.ts';
import type { Finding } from '../finding.rules.ts';
import { farLettersArn, parseArn, topicArnOf } from '../names.rules.ts';
import type { NotificationEntry } from '../notification.rules.ts';
import type { Observed, ObservedQueue, Rule, Subscription } from '../plan.rules.ts';
import type { Statement } from '../policy.rules.ts';
import { bridgeStatement, topicStatement } from '../shared.rules.ts';
import type { Clock } from '../../process/clock.ts';
import type { OwnedBucket, Provisioner } from '../aws/provisioner.ts';

export interface Desired {
  /** A topic, Tally's own or a named one, and the statement that lets its publisher publish. */
  readonly topic?: { readonly arn: string; readonly statement: Statement };
  /** The bucket's own if its topic was named; otherwise shared. */
  readonly subscription?: Subscription;
  /** The queues that receive events or undeliverable events. */
  readonly queues: readonly string[];
  /** Tally's entry in the notification configuration. */
  readonly entry?: NotificationEntry;
  /** Whether the bucket must send its events to EventBridge. */
  readonly eventBridge?: boolean;
  readonly rule?: Rule;
  /** The trail that must record the bucket's data events, if Tally may change it. */
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

/** Finds what prevents a source from working. */
export type Check = (look: Look) => Finding | undefined;

/** What a removal must leave, according to the records. */
export interface Remains {
  /** What the bucket keeps; nothing if absent. */
  readonly still?: Desired;
  /** What other buckets use: named topics that their rules send to, and the names of links between named topics and queues. */
  readonly used: ReadonlySet<string>;
  /** What Tally made without a name or tag that shows it. Anything else belongs to other owners. */
  readonly made: readonly string[];
}

/** Whether the bucket queue is in another region than the bucket, its topic and its rule. */
export function isFar({ queueArn, region }: ConnectionSpec): boolean {
  return (parseArn(queueArn)?.region ?? region) !== region;
}

/**
 * The queue for what SNS and EventBridge cannot deliver. It must be in their region, and for SNS in the bucket queue's account.
 * https://docs.aws.amazon.com/sns/latest/dg/sns-dead-letter-queues.html
 */
export function nearLetters(spec: ConnectionSpec): string | undefined {
  return isFar(spec) ? farLettersArn(spec.installation, spec) : spec.deadLetterArn;
}

/** The bucket queue and the region's dead-letter queue. */
export function queuesOf(spec: ConnectionSpec): readonly string[] {
  return [spec.queueArn, nearLetters(spec) ?? []].flat();
}

export function subscribed(spec: ConnectionSpec, topicArn: string): Required<Pick<Desired, 'subscription' | 'queues'>> {
  const { queueArn } = spec;
  return { subscription: { topicArn, queueArn, ...defined({ deadLetterArn: nearLetters(spec) }) }, queues: queuesOf(spec) };
}

/** The path through Tally's topic, or for EventBridge through a named one. */
export function through(spec: ConnectionSpec, use: 'events' | 'routed'): Required<Pick<Desired, 'topic' | 'subscription' | 'queues'>> {
  const { topicArn: arn = topicArnOf(spec.installation, spec, use) } = spec;
  const statement = spec.topicArn === undefined ? topicStatement(spec, spec, use) : bridgeStatement(spec, arn);
  return { topic: { arn, statement }, ...subscribed(spec, arn) };
}

/** The spec's bucket for requests to S3. */
export function ownedBucket({ bucket, region, bucketAccount }: ConnectionSpec): OwnedBucket {
  return { bucket, region, account: bucketAccount };
}

export function queueIn({ queues }: Observed, arn: string): ObservedQueue | undefined {
  return queues.find((queue) => queue.arn === arn);
}

/** The part, if it exists. */
export function existing<Part>(part: Part | 'absent' | undefined): Part | undefined {
  return part === 'absent' ? undefined : part;
}

/** A subscription's name, because its ARN is unknown until it is made. */
export function subscriptionName({ topicArn, queueArn }: Pick<Subscription, 'topicArn' | 'queueArn'>): string {
  return `${topicArn} → ${queueArn}`;
}
