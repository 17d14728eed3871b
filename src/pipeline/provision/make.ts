/** Makes the parts of a plan, one write each, and takes them away. Every write may be repeated. */
import { canonicalJson } from '../../domain/provisioning/canonical.ts';
import { existing, subscriptionAttributes } from '../../domain/provisioning/facts.ts';
import { isOwn, tagsOf } from '../../domain/provisioning/names.ts';
import type { Change } from '../../domain/provisioning/planning/plan.ts';
import {
  canonicalStatement,
  foreignStatements,
  parsePolicy,
  policyText,
  sameStatements,
  type Policy,
} from '../../domain/provisioning/policy.ts';
import { topicRemoval, type Removal } from '../../domain/provisioning/removal.ts';
import { foreignSelectors, selectorText, type Selectors } from '../../domain/provisioning/trail.ts';
import { sidsOf, wiringOf, type Subscription, type Wish, type Rule } from '../../domain/provisioning/wiring.ts';
import type { Provisioner } from '../ports/provision.ts';
import { changedMeanwhile } from './write-notification.ts';
import type { ObservedRule, ObservedTarget } from '../../domain/provisioning/observed.ts';

type Part<Name> = Exclude<Change, { readonly part: 'notification' }> & { readonly part: Name };

/** Everything but the notification configuration, which has its own rules. */
type MakeablePart = Part<Exclude<Change['part'], 'notification'>>;
type RemovablePart = Exclude<Removal, { readonly part: 'notification' }>;

/**
 * Creates the functions. What others can write to as well is read again right before each write, which is not made if it has
 * changed since the plan: the caller plans again. After the write of a policy or of selectors, which are whole documents, what
 * others wrote in them must have stayed.
 */
export function createMakeParts(aws: Provisioner) {
  const rules = createMakeRules(aws);

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
    if (!isQueue && !(await mayWriteTopic(wish, arn, signal))) return;
    const current = await readAgain();
    if (current === undefined || !sameStatements(current.Statement, policies.before.Statement)) return;
    // SQS removes a policy that is empty
    const text = policies.after.Statement.length === 0 ? '' : policyText(policies.after);
    if (isQueue) await aws.setQueuePolicy(arn, text, signal);
    else await aws.setTopicPolicy(arn, text, signal);
    refuseChanged(wish, arn, policies.before, await readAgain());
  }

  /** A topic of this registry, or that of the operator, which has no tags of Tally and gets one statement and one subscription. */
  async function mayWriteTopic(wish: Wish, topicArn: string, signal?: AbortSignal): Promise<boolean> {
    const { topic } = wiringOf(wish);
    if (topic?.isForeign === true) return topic.arn === topicArn;
    return isOwn(existing(await aws.topicTags(topicArn, signal)), wish);
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

  /** The queue must not get the events of a topic that has become another registry's. */
  async function subscribe(wish: Wish, subscription: Subscription, signal?: AbortSignal): Promise<void> {
    const { topic } = wiringOf(wish);
    if (topic !== undefined && !(await mayWriteTopic(wish, topic.arn, signal))) return;
    await aws.subscribe(subscription, signal);
  }

  /** A subscription that has changed since the plan is planned again. */
  async function changeSubscription(
    wish: Wish,
    { name, before, after }: Part<'subscription'> & { readonly action: 'change' },
    signal?: AbortSignal,
  ): Promise<void> {
    const { subscription: wanted, topic } = wiringOf(wish);
    if (wanted === undefined || (topic !== undefined && !(await mayWriteTopic(wish, topic.arn, signal)))) return;
    const found = await aws.topicOf(wanted.topicArn, wanted.queueArn, signal);
    const present = found === 'absent' ? undefined : existing(found.subscription);
    if (present?.arn !== name || canonicalJson(subscriptionAttributes(present, wanted)[0]) !== canonicalJson(before)) return;
    await aws.setSubscription(name, after, signal);
  }

  async function deleteTopic(wish: Wish, topicArn: string, signal?: AbortSignal): Promise<void> {
    const tags = await aws.topicTags(topicArn, signal);
    const found = await aws.topicOf(topicArn, wish.queueArn, signal);
    if (found === 'absent' || tags === 'absent') return;
    const steps = topicRemoval({ wish, wiring: wiringOf(wish), observed: { topic: { ...found.topic, tags } } });
    if (steps.some((step) => 'part' in step && step.part === 'topic')) await aws.deleteTopic(topicArn, signal);
  }

  return {
    async make(wish: Wish, change: MakeablePart, signal?: AbortSignal): Promise<void> {
      switch (change.part) {
        case 'topic':
          return aws.createTopic(change.name, tagsOf(wish), signal);
        case 'queue':
          return aws.createQueue(change.name, signal);
        case 'topic-policy':
        case 'queue-policy':
          return setPolicy(wish, change.name, change, signal);
        case 'subscription':
          if (change.action === 'create') return subscribe(wish, change.subscription, signal);
          return changeSubscription(wish, change, signal);
        case 'rule':
          return rules.put(wish, change, signal);
        case 'trail':
          return setSelectors(wish, change, signal);
        case 'target':
          return rules.putTarget(wish, change, signal);
      }
    },
    async remove(wish: Wish, removal: RemovablePart, signal?: AbortSignal): Promise<void> {
      switch (removal.part) {
        case 'rule':
          return rules.remove(wish, removal, signal);
        case 'topic':
          return deleteTopic(wish, removal.name, signal);
        case 'queue':
          return aws.deleteQueue(removal.name, signal);
        case 'trail':
          return setSelectors(wish, removal, signal);
        case 'subscription':
          return aws.unsubscribe(removal.name, signal);
        case 'topic-policy':
        case 'queue-policy':
          return setPolicy(wish, removal.name, removal, signal);
      }
    },
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

interface SeenRule {
  readonly rule: Rule;
  /** As the plan has seen it. Absent: it was not there. */
  readonly before?: ObservedRule;
}

/** Creates the functions. Each writes only if what it is about is still as the plan has seen it, and this registry's: the caller plans again. */
function createMakeRules(aws: Provisioner) {
  async function isAsSeen(wish: Wish, { rule, before }: SeenRule, signal?: AbortSignal): Promise<boolean> {
    const present = existing(await aws.ruleOf(wish, rule.name, signal));
    return canonicalJson(present) === canonicalJson(before) && (present === undefined || isOwn(present.tags, wish));
  }

  return {
    async put(wish: Wish, seen: SeenRule, signal?: AbortSignal): Promise<void> {
      if (await isAsSeen(wish, seen, signal)) await aws.putRule(wish, seen.rule, tagsOf(wish, wish.bucket), signal);
    },
    async putTarget(
      wish: Wish,
      { rule, before }: { readonly rule: Rule; readonly before?: ObservedTarget },
      signal?: AbortSignal,
    ): Promise<void> {
      const present = existing(await aws.ruleOf(wish, rule.name, signal));
      if (present === undefined || !isOwn(present.tags, wish)) return;
      const target = present.targets.find(({ id }) => id === rule.target.id);
      if (canonicalJson(target) === canonicalJson(before)) await aws.putTarget(wish, rule, signal);
    },
    async remove(wish: Wish, seen: SeenRule, signal?: AbortSignal): Promise<void> {
      if (await isAsSeen(wish, seen, signal)) await aws.removeRule(wish, seen.rule, signal);
    },
  };
}
