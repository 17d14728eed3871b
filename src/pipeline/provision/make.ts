/** Makes a part, changes it, or takes it away, by one write. Every write may be repeated. */
import { FaultError } from '../../domain/fault.ts';
import { canonicalJson } from '../../domain/provisioning/canonical.ts';
import { existing, subscriptionAttributes } from '../../domain/provisioning/facts.ts';
import { isOwn, markOf, tagsOf } from '../../domain/provisioning/names.ts';
import type { Change } from '../../domain/provisioning/planning/plan.ts';
import {
  canonicalStatement,
  foreignStatements,
  parsePolicy,
  policyText,
  sameStatements,
  type Policy,
} from '../../domain/provisioning/policy.ts';
import { foreignSelectors, selectorText, type Selectors } from '../../domain/provisioning/trail.ts';
import { sidsOf, wiringOf, type Wish } from '../../domain/provisioning/wiring.ts';
import type { Clock } from '../ports/clock.ts';
import type { Provisioner } from '../ports/provision.ts';
import { ownedBucket } from './observe.ts';
import { changedMeanwhile, createWriteNotification } from './write-notification.ts';

/** `waiting`: S3 does not show it yet. Throws `connect.changed-meanwhile`, and what AWS refuses. */
export type Make = (wish: Wish, change: Change, skipValidation: boolean, signal?: AbortSignal) => Promise<'waiting' | undefined>;

/**
 * Creates the function. What others can write to as well is read again right before each write, which is not made if it has
 * changed since the plan: the caller plans again. After the write of a policy or of selectors, which are whole documents, what
 * others wrote in them must have stayed.
 */
export function createMake(aws: Provisioner, clock: Clock): Make {
  const writeNotification = createWriteNotification({ aws, clock });

  async function setPolicy(
    wish: Wish,
    arn: string,
    policies: { readonly before: Policy; readonly after: Policy },
    signal?: AbortSignal,
  ): Promise<void> {
    const isQueue = arn.split(':')[2] === 'sqs';
    const readAgain = async (): Promise<Policy | undefined> =>
      parsePolicy(
        isQueue ? await queuePolicy(aws, arn, signal) : await topicPolicy(aws, { topicArn: arn, queueArn: wish.queueArn }, signal),
      );
    const current = await readAgain();
    if (current === undefined || !sameStatements(current.Statement, policies.before.Statement)) return;
    // SQS removes a policy that is empty
    const text = policies.after.Statement.length === 0 ? '' : policyText(policies.after);
    if (isQueue) await aws.setQueuePolicy(arn, text, signal);
    else await aws.setTopicPolicy(arn, text, signal);
    refuseChanged(wish, arn, policies.before, await readAgain());
  }

  async function setSelectors(
    wish: Wish,
    { name, before, after }: { readonly name: string; readonly before: Selectors; readonly after: Selectors },
    signal?: AbortSignal,
  ): Promise<void> {
    const [current] = await aws.trailsOf(wish, { arn: name }, signal);
    if (canonicalJson(current?.selectors) !== canonicalJson(before)) return;
    await aws.putSelectors(name, after, signal);
    const [trail] = await aws.trailsOf(wish, { arn: name }, signal);
    const [theirs = [], wanted = []] = [trail?.selectors ?? before, before].map((selectors) => foreignSelectors(selectors, wish));
    if (canonicalJson(theirs) === canonicalJson(wanted)) return;
    throw changedMeanwhile({
      bucket: wish.bucket,
      what: `the selectors of ${name}`,
      before: wanted,
      now: theirs,
      same: canonicalJson,
      name: selectorText,
    });
  }

  /** A subscription that has changed since the plan is planned again. */
  async function changeSubscription(
    wish: Wish,
    { name, before, after }: Change & { readonly part: 'subscription'; readonly action: 'change' },
    signal?: AbortSignal,
  ): Promise<void> {
    const { subscription: wanted } = wiringOf(wish);
    if (wanted === undefined) return;
    const found = await aws.topicOf(wanted.topicArn, wanted.queueArn, signal);
    const present = found === 'absent' ? undefined : existing(found.subscription);
    if (present?.arn !== name || canonicalJson(subscriptionAttributes(present, wanted)[0]) !== canonicalJson(before)) return;
    await aws.setSubscription(name, after, signal);
  }

  async function setNotification(
    wish: Wish,
    { action, before, after }: Change & { readonly part: 'notification' },
    skipValidation: boolean,
    signal?: AbortSignal,
  ): Promise<'waiting' | undefined> {
    const write = { bucket: ownedBucket(wish), before, after, id: markOf(wish), skipValidation };
    try {
      return (await writeNotification(write, signal)) === 'waiting' ? 'waiting' : undefined;
    } catch (error) {
      // a bucket that is gone has no configuration
      if (action === 'remove' && error instanceof FaultError && error.code === 'bucket.missing') return undefined;
      throw error;
    }
  }

  /** A rule is written only if it is still as the plan has seen it, and this registry's. */
  async function setRule(wish: Wish, change: Change & { readonly part: 'rule' | 'target' }, signal?: AbortSignal): Promise<void> {
    const { rule, before } = change;
    const present = existing(await aws.ruleOf(wish, rule.name, signal));
    if (present !== undefined && !isOwn(present.tags, wish)) return;
    const seen = change.part === 'rule' ? present : present?.targets.find(({ id }) => id === rule.target.id);
    if (canonicalJson(seen) !== canonicalJson(before)) return;
    if (change.action === 'remove') await aws.removeRule(wish, rule, signal);
    else if (change.part === 'rule') await aws.putRule(wish, rule, tagsOf(wish, wish.bucket), signal);
    else if (present !== undefined) await aws.putTarget(wish, rule, signal);
  }

  async function setSubscription(wish: Wish, change: Change & { readonly part: 'subscription' }, signal?: AbortSignal): Promise<void> {
    switch (change.action) {
      case 'create':
        return aws.subscribe(change.subscription, signal);
      case 'change':
        return changeSubscription(wish, change, signal);
      case 'remove':
        return aws.unsubscribe(change.name, signal);
    }
  }

  return async function make(wish, change, skipValidation, signal) {
    switch (change.part) {
      case 'notification':
        return setNotification(wish, change, skipValidation, signal);
      case 'topic-policy':
      case 'queue-policy':
        await setPolicy(wish, change.name, change, signal);
        return undefined;
      case 'subscription':
        await setSubscription(wish, change, signal);
        return undefined;
      case 'rule':
      case 'target':
        await setRule(wish, change, signal);
        return undefined;
      case 'trail':
        await setSelectors(wish, change, signal);
        return undefined;
    }
  };
}

async function queuePolicy(aws: Provisioner, queueArn: string, signal?: AbortSignal): Promise<string | undefined> {
  const queue = await aws.queueOf(queueArn, signal);
  return queue === 'absent' ? undefined : queue.policy;
}

async function topicPolicy(
  aws: Provisioner,
  { topicArn, queueArn }: { readonly topicArn: string; readonly queueArn: string },
  signal?: AbortSignal,
): Promise<string | undefined> {
  const read = await aws.topicOf(topicArn, queueArn, signal);
  return read === 'absent' ? undefined : read.topic.policy;
}

/** A policy that is not to be seen yet, or has an unknown form, says nothing. */
function refuseChanged(wish: Wish, arn: string, before: Policy, now: Policy | undefined): void {
  const sids = new Set([...sidsOf(wish).all, ...sidsOf(wish).ofTopics]);
  const wanted = foreignStatements(before, sids);
  const theirs = now === undefined ? wanted : foreignStatements(now, sids);
  if (sameStatements(theirs, wanted)) return;
  throw changedMeanwhile({
    bucket: wish.bucket,
    what: `the policy of ${arn}`,
    before: wanted,
    now: theirs,
    same: canonicalStatement,
    name: ({ Sid }) => `the statement ${Sid ?? 'without a Sid'}`,
  });
}
