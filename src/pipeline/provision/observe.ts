/** Reads what a wish is about. Nothing is written. */
import { defined } from '../../domain/defined.ts';
import { FaultError } from '../../domain/fault.ts';
import { parseArn } from '../../domain/provisioning/names.ts';
import { parseNotification } from '../../domain/provisioning/notification.ts';
import type { Observed, ObservedTrail } from '../../domain/provisioning/observed.ts';
import { queueMissing } from '../../domain/provisioning/shared.ts';
import { wiringOf, type Wish } from '../../domain/provisioning/wiring.ts';
import type { AwsReads, OwnedBucket } from '../ports/provision.ts';

/** Throws what the reads throw. With `mayBeGone`, a bucket that does not exist has an empty configuration, and such a queue is left out. */
export type Observe = (wish: Wish, signal?: AbortSignal, how?: { readonly mayBeGone?: boolean }) => Promise<Observed>;

/** The configuration of a bucket without any. */
const NONE = '<NotificationConfiguration/>';

export function createObserve(aws: AwsReads): Observe {
  return async function observe(wish, signal, { mayBeGone = false } = {}) {
    const { queues } = wiringOf(wish);
    const reading = aws.notificationOf(ownedBucket(wish), signal);
    // what a person has wired works without it
    const xml = await (mayBeGone ? unlessGone(reading) : wish.byHand === true ? reading.catch(() => '') : reading);
    const observedQueues = [];
    for (const { arn } of queues) {
      const queue = await aws.queueOf(arn, signal);
      if (queue !== 'absent') observedQueues.push(queue);
      // a missing dead-letter queue is a finding: nothing that is in order depends on it
      else if (!mayBeGone && arn === wish.queueArn) throw queueMissing(`GetQueueUrl ${arn}`, parseArn(arn)?.region);
    }
    return {
      notification: { ...parseNotification(xml), xml },
      queues: observedQueues,
      ...(await topicOf(wish, signal)),
      ...(await ruleOf(wish, signal)),
    };
  };

  async function topicOf(wish: Wish, signal?: AbortSignal): Promise<Pick<Observed, 'topic' | 'subscription'>> {
    const { subscription } = wiringOf(wish);
    if (subscription === undefined) return {};
    const found = await aws.topicOf(subscription.topicArn, subscription.queueArn, signal);
    return found === 'absent' ? { topic: found, subscription: found } : found;
  }

  async function ruleOf(wish: Wish, signal?: AbortSignal): Promise<Pick<Observed, 'rule' | 'trails'>> {
    const { rule: own, selector } = wiringOf(wish);
    const rule = own === undefined ? undefined : await aws.ruleOf(wish, own.name, signal);
    const trails = selector === undefined ? undefined : await trailsOf(wish, signal);
    return defined({ rule, trails });
  }

  async function trailsOf(wish: Wish, signal?: AbortSignal): Promise<readonly ObservedTrail[] | undefined> {
    const { trailArn, trailBucket } = wish;
    if (trailArn !== undefined) return aws.trailsOf(wish, { arn: trailArn }, signal);
    return trailBucket === undefined ? undefined : aws.trailsOf(wish, { logBucket: trailBucket }, signal);
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
