/** Reads what a wish is about. Nothing is written. */
import { defined } from '../../domain/defined.ts';
import { FaultError, faultOf } from '../../domain/fault.ts';
import { isManagedByAws } from '../../domain/provisioning/checks/keys.ts';
import { existing } from '../../domain/provisioning/facts.ts';
import { parseArn } from '../../domain/provisioning/names.ts';
import { parseNotification } from '../../domain/provisioning/notification.ts';
import type { Observed, ObservedKey, ObservedTrail } from '../../domain/provisioning/observed.ts';
import { queueMissing } from '../../domain/provisioning/planning/queue-pair.ts';
import { wiringOf, type Wish } from '../../domain/provisioning/wiring.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { At, AwsReads, OwnedBucket } from '../ports/provision.ts';

/** Throws what the reads throw. With `mayBeGone`, a bucket that does not exist has an empty configuration, and such a queue is left out. */
export type Observe = (wish: Wish, signal?: AbortSignal, how?: { readonly mayBeGone?: boolean }) => Promise<Observed>;

/** The configuration of a bucket without any. */
const NONE = '<NotificationConfiguration/>';

export function createObserve(aws: AwsReads): Observe {
  return async function observe(wish, signal, { mayBeGone = false } = {}) {
    const { queues, undelivered } = wiringOf(wish);
    const reading = aws.notificationOf(ownedBucket(wish), signal);
    const xml = await (mayBeGone ? unlessGone(reading) : reading);
    const observedQueues = [];
    for (const { arn } of queues) {
      const queue = await aws.queueOf(arn, signal);
      if (queue !== 'absent') observedQueues.push(queue);
      // a missing dead-letter queue is a finding: nothing that is in order depends on it
      else if (!mayBeGone && arn !== wish.deadLetterArn && arn !== undelivered) throw queueMissing(`GetQueueUrl ${arn}`, placeOf(arn));
    }
    const topic = await topicOf(wish, signal);
    const named = new Map([
      ...keyNamed(existing(topic.topic)?.kmsKeyId, wish),
      ...observedQueues.flatMap(({ kmsKeyId, arn }) => keyNamed(kmsKeyId, parseArn(arn) ?? wish)),
    ]);
    return {
      notification: { ...parseNotification(xml), xml },
      queues: observedQueues,
      ...topic,
      ...(await ruleOf(wish, signal)),
      keys: await keysOf(named, signal),
    };
  };

  /** Few may read the policies of keys, so what cannot be read is no fault: it is a finding. */
  async function keysOf(named: ReadonlyMap<string, At>, signal?: AbortSignal): Promise<readonly ObservedKey[]> {
    const keys: ObservedKey[] = [];
    for (const [key, at] of named) {
      if (isManagedByAws(key)) continue;
      try {
        keys.push({ key, ...(await aws.keyOf(at, key, signal)) });
      } catch (error) {
        signal?.throwIfAborted();
        keys.push({ key, isManagedByAws: false, reason: error instanceof RequestError ? error.message : faultOf(error).reason });
      }
    }
    return keys;
  }

  async function topicOf(wish: Wish, signal?: AbortSignal): Promise<Pick<Observed, 'topic' | 'subscription'>> {
    const { subscription, topic } = wiringOf(wish);
    if (subscription === undefined) return {};
    const found = await aws.topicOf(subscription.topicArn, subscription.queueArn, signal);
    if (found === 'absent') return { topic: found, subscription: found };
    // whose the topic of others is does not matter, and its tags may not be read
    if (topic === undefined || topic.isForeign === true) return found;
    const tags = await aws.topicTags(topic.arn, signal);
    return tags === 'absent' ? { topic: tags, subscription: tags } : { ...found, topic: { ...found.topic, tags } };
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

function keyNamed(key: string | undefined, at: At): readonly (readonly [string, At])[] {
  return key === undefined ? [] : [[key, at]];
}

function placeOf(queueArn: string): Parameters<typeof queueMissing>[1] {
  const { resource, region } = parseArn(queueArn) ?? {};
  return { name: resource ?? queueArn, region };
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
