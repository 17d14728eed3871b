/** Reads what a wish is about. Nothing is written. */
import { defined } from '../../domain/defined.ts';
import { FaultError, faultOf } from '../../domain/fault.ts';
import { isManagedByAws } from '../../domain/provisioning/checks/keys.ts';
import { existing } from '../../domain/provisioning/facts.ts';
import { parseArn } from '../../domain/provisioning/names.ts';
import { parseNotification } from '../../domain/provisioning/notification.ts';
import { namesBucket, neededEvents } from '../../domain/provisioning/hand-made-rule.ts';
import type { HandMadeRule, Observed, ObservedKey, ObservedRule, ObservedTrail } from '../../domain/provisioning/observed.ts';
import {
  bucketsIn,
  candidatesOf,
  hasRoom,
  sharedPrefixOf,
  sharedRulesIn,
  type ListedRule,
  type SharedRule,
} from '../../domain/provisioning/shared-rule.ts';
import { queueMissing } from '../../domain/provisioning/planning/queue-missing.ts';
import { partsPlace, wiringOf, type Rule, type Wish } from '../../domain/provisioning/wiring.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { At, AwsReads, OwnedBucket } from '../ports/provision.ts';
import { connectionSchema } from '../../domain/provisioning/connection.ts';
import type { StateStore } from '../ports/state.ts';
import { listAllRecords } from '../records/stored.ts';

/** Throws what the reads throw. With `mayBeGone`, a bucket that does not exist has an empty configuration, and such a queue is left out. */
export type Observe = (wish: Wish, signal?: AbortSignal, how?: { readonly mayBeGone?: boolean }) => Promise<Observed>;

/** The buckets that the records of connections place in a shared rule. */
type MembersOf = (ruleName: string) => Promise<readonly string[]>;

/** The configuration of a bucket without any. */
const NONE = '<NotificationConfiguration/>';

export function createObserve(aws: AwsReads, membersOf: MembersOf): Observe {
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
      ...keyNamed(existing(topic.topic)?.kmsKeyId, partsPlace(wish)),
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

  async function ruleOf(
    wish: Wish,
    signal?: AbortSignal,
  ): Promise<Pick<Observed, 'rule' | 'sharedRule' | 'formerRules' | 'handMadeRule' | 'trails'>> {
    const { rule: own, selector } = wiringOf(wish);
    if (own === undefined) return {};
    const trails = selector === undefined ? undefined : await trailsOf(wish, signal);
    return { ...(await placeOfRule(wish, own, signal)), ...defined({ trails }) };
  }

  /** The rule that names the bucket: a shared one, or its own. Without one, the shared rule that has room for it. */
  async function placeOfRule(
    wish: Wish,
    own: Rule,
    signal?: AbortSignal,
  ): Promise<Pick<Observed, 'rule' | 'sharedRule' | 'formerRules' | 'handMadeRule'>> {
    const listed = sharedRulesIn(wish, await aws.rulesNamed(partsPlace(wish), sharedPrefixOf(wish), signal));
    const shared: SharedRule[] = [];
    for (const rule of listed) shared.push({ name: rule.name, buckets: await bucketsOf(wish, rule) });
    const { holding, former, open } = candidatesOf(wish, own, shared);
    const formerRules = await rulesOf(wish, former, signal);
    const known = formerRules.length === 0 ? {} : { formerRules };
    if (holding !== undefined) return { ...(await sharedRuleOf(wish, holding, signal)), ...known };
    const rule = await aws.ruleOf(partsPlace(wish), own.name, signal);
    if (rule !== 'absent') return { rule, ...known };
    const handMadeRule = await handMadeRuleOf(wish, signal);
    return { ...(await openRule(wish, { own, open }, signal)), ...known, ...defined({ handMadeRule }) };
  }

  /** By the pattern, or by the records if others have given it another form. */
  async function bucketsOf(wish: Wish, { name, pattern }: ListedRule): Promise<readonly string[]> {
    return bucketsIn(wish, pattern) ?? membersOf(name);
  }

  async function sharedRuleOf(wish: Wish, name: string, signal?: AbortSignal): Promise<Pick<Observed, 'rule' | 'sharedRule'>> {
    const rule = await aws.ruleOf(partsPlace(wish), name, signal);
    return { rule, sharedRule: { name, buckets: rule === 'absent' ? [] : await bucketsOf(wish, { name, ...rule }) } };
  }

  async function rulesOf(wish: Wish, names: readonly string[], signal?: AbortSignal): Promise<NonNullable<Observed['formerRules']>> {
    const found: (ObservedRule & { readonly name: string })[] = [];
    for (const name of names) {
      const rule = await aws.ruleOf(partsPlace(wish), name, signal);
      if (rule !== 'absent') found.push({ name, ...rule });
    }
    return found;
  }

  /** A list may be older than what is written by name. */
  async function openRule(
    wish: Wish,
    { own, open }: { readonly own: Rule; readonly open: readonly string[] },
    signal?: AbortSignal,
  ): Promise<Pick<Observed, 'rule' | 'sharedRule'>> {
    for (const name of open) {
      const found = await sharedRuleOf(wish, name, signal);
      if (found.rule === 'absent' || hasRoom(wish, own, found.sharedRule?.buckets ?? [])) return found;
    }
    return { rule: 'absent' };
  }

  /** A rule of another name that sends the bucket's events where Tally's would: one that is enabled comes first. */
  async function handMadeRuleOf(wish: Wish, signal?: AbortSignal): Promise<HandMadeRule | undefined> {
    const wiring = wiringOf(wish);
    const needed = neededEvents(wish, wiring);
    const found = (await aws.rulesAbout(partsPlace(wish), wish.bucket, signal)).flatMap(({ targets, ...rule }) => {
      // another registry's rule goes with its bucket
      if (/^tally-[0-9a-f]{8}-/.test(rule.name)) return [];
      const target = targets.find(({ arn }) => arn === wiring.rule?.target.arn);
      return target !== undefined && namesBucket(needed, rule.pattern) ? [{ ...rule, target }] : [];
    });
    return found.find(({ isEnabled }) => isEnabled) ?? found[0];
  }

  async function trailsOf(wish: Wish, signal?: AbortSignal): Promise<readonly ObservedTrail[] | undefined> {
    const { trailArn, trailBucket } = wish;
    if (trailArn !== undefined) return aws.trailsOf(partsPlace(wish), { arn: trailArn }, signal);
    return trailBucket === undefined ? undefined : aws.trailsOf(partsPlace(wish), { logBucket: trailBucket }, signal);
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

export function createMembersOf(state: StateStore): MembersOf {
  return async function membersOf(ruleName) {
    const connections = await listAllRecords(state, 'connection', connectionSchema);
    return connections
      .filter(({ parts }) => parts.some(({ kind, arn }) => kind === 'rule' && arn.endsWith(`/${ruleName}`)))
      .map(({ bucket }) => bucket);
  };
}
