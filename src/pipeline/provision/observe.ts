/** Reads what a wish is about. Nothing is written. */
import { FaultError } from '../../domain/fault.ts';
import { parseNotification } from '../../domain/provisioning/notification.ts';
import type { Observed, ObservedTrail } from '../../domain/provisioning/observed.ts';
import { wiringOf, type Wish } from '../../domain/provisioning/wiring.ts';
import type { AwsReads, OwnedBucket } from '../ports/provision.ts';

/** Throws what the reads throw. With `mayBeGone`, a bucket that does not exist has an empty configuration. */
export type Observe = (wish: Wish, signal?: AbortSignal, how?: { readonly mayBeGone?: boolean }) => Promise<Observed>;

/** The configuration of a bucket without any. */
const NONE = '<NotificationConfiguration/>';

/** Creates the function. */
export function createObserve(aws: AwsReads): Observe {
  return async function observe(wish, signal, { mayBeGone = false } = {}) {
    const { subscription, queues, rule, selector } = wiringOf(wish);
    const xml = await (mayBeGone
      ? unlessGone(aws.notificationOf(ownedBucket(wish), signal))
      : aws.notificationOf(ownedBucket(wish), signal));
    const observedQueues = [];
    for (const { arn } of queues) observedQueues.push(await aws.queueOf(arn, signal));
    const topic = subscription && (await aws.topicOf(subscription.topicArn, subscription.queueArn, signal));
    const observedRule = rule && (await aws.ruleOf(wish.region, rule.name, signal));
    const trails = selector && (await trailsOf(wish, signal));
    return {
      notification: { ...parseNotification(xml), xml },
      queues: observedQueues,
      ...(topic !== undefined && (topic === 'absent' ? { topic, subscription: topic } : topic)),
      ...(observedRule !== undefined && { rule: observedRule }),
      ...(trails !== undefined && { trails }),
    };
  };

  async function trailsOf({ region, trailArn, trailBucket }: Wish, signal?: AbortSignal): Promise<readonly ObservedTrail[] | undefined> {
    if (trailArn !== undefined) return aws.trailsOf(region, { arn: trailArn }, signal);
    return trailBucket === undefined ? undefined : aws.trailsOf(region, { logBucket: trailBucket }, signal);
  }
}

/** The bucket of a wish for requests to S3. */
export function ownedBucket({ bucket, region, bucketAccount }: Wish): OwnedBucket {
  return { bucket, region, account: bucketAccount };
}

async function unlessGone(reading: Promise<string>): Promise<string> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof FaultError && error.code === 'bucket.missing') return NONE;
    throw error;
  }
}
