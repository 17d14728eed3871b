/**
 * The plan of a wish: what would change in AWS so that the bucket's events reach the queue, and what stands in the way. It is a
 * pure function of the wish and of what was read, so that a plan, an apply and a check can never disagree.
 */
import { fingerprintOf } from '../canonical.ts';
import { blockers } from '../checks/blockers.ts';
import { note, type Finding } from '../checks/finding.ts';
import { queueFindings } from '../checks/queue.ts';
import { sharedFindings } from '../checks/shared.ts';
import { trailCheck } from '../checks/trail.ts';
import { subscriptionName } from '../connection.ts';
import {
  existing,
  isRuleForeign,
  isTargetRight,
  queueOf,
  queuePolicies,
  samePattern,
  subscriptionAttributes,
  topicPolicies,
  withLetters,
  type Facts,
} from '../facts.ts';
import { canonicalEntry, foreignEntries, sameEntries, type NotificationConfiguration } from '../notification.ts';
import type { Observed, ObservedRule, ObservedTarget, ObservedTopic } from '../observed.ts';
import { foreignStatements, parsePolicy, sameStatements, type Policy } from '../policy.ts';
import { foreignSelectors, recordsBucket, withSelector, type Selectors } from '../trail.ts';
import { foreignOf, type Touched } from './foreign.ts';
import { sidsOf, wiringOf, type Rule, type Subscription, type Wiring, type Wish } from '../wiring.ts';

export const acts = ['create', 'change', 'remove'] as const;
type Act = (typeof acts)[number];

/** One write. `name` is the ARN of what it writes to, or the name of the bucket. */
export type Change =
  | {
      readonly part: 'topic-policy' | 'queue-policy';
      readonly action: Act;
      readonly name: string;
      readonly before: Policy;
      readonly after: Policy;
    }
  | { readonly part: 'subscription'; readonly action: 'create'; readonly name: string; readonly subscription: Subscription }
  | {
      readonly part: 'subscription';
      readonly action: 'change';
      readonly name: string;
      readonly before: Readonly<Record<string, string>>;
      readonly after: Readonly<Record<string, string>>;
    }
  | { readonly part: 'subscription'; readonly action: 'remove'; readonly name: string }
  | { readonly part: 'rule'; readonly action: Act; readonly name: string; readonly rule: Rule; readonly before?: ObservedRule }
  | { readonly part: 'target'; readonly action: Act; readonly name: string; readonly rule: Rule; readonly before?: ObservedTarget }
  | { readonly part: 'trail'; readonly action: Act; readonly name: string; readonly before: Selectors; readonly after: Selectors }
  | {
      readonly part: 'notification';
      readonly action: Act;
      readonly name: string;
      readonly before: NotificationConfiguration;
      readonly after: NotificationConfiguration;
    };

export interface Plan {
  readonly wish: Wish;
  readonly wiring: Wiring;
  /** In the order in which they are made. */
  readonly changes: readonly Change[];
  /** What stands in the way, and what no apply heals. */
  readonly findings: readonly Finding[];
  /** What of others the changes touch: a person must agree to it. */
  readonly foreign: readonly Touched[];
  /** Identifies the wish together with everything that is not ours. */
  readonly token: string;
}

/** Makes the plan. */
export function planOf(wish: Wish, observed: Observed): Plan {
  const wiring = wiringOf(wish);
  const facts = { wish, wiring, observed };
  const changes = [
    ...topicChanges(facts),
    ...queueChanges(facts),
    ...subscriptionChanges(facts),
    ...ruleChanges(facts),
    ...trailChanges(facts),
    ...notificationChanges(facts),
  ];
  const findings = [...blockers, trailCheck].flatMap((check) => check(facts) ?? []);
  return {
    wish,
    wiring,
    changes,
    findings: [...sharedFindings(facts), ...findings, ...queueFindings(facts)],
    foreign: foreignOf(facts, changes),
    token: tokenOf(facts),
  };
}

/** Tally's own topics are shared; one that was named must admit EventBridge. */
function topicChanges(facts: Facts): readonly Change[] {
  const { topic } = facts.wiring;
  const policies = topic?.isForeign === true ? topicPolicies(facts) : undefined;
  return topic === undefined || policies === undefined ? [] : policyChange('topic-policy', topic.arn, policies.before, policies.after);
}

/** What all buckets need is in the policies already. */
function queueChanges(facts: Facts): readonly Change[] {
  return facts.wiring.queues.flatMap((queue) => {
    if (queueOf(facts.observed, queue.arn) === undefined) return [];
    const { before, own } = queuePolicies(facts, queue);
    return policyChange('queue-policy', queue.arn, before, own);
  });
}

function policyChange(part: 'topic-policy' | 'queue-policy', name: string, before: Policy, after: Policy): readonly Change[] {
  if (sameStatements(before.Statement, after.Statement)) return [];
  return [{ part, action: before.Statement.length === 0 ? 'create' : 'change', name, before, after }];
}

function subscriptionChanges(facts: Facts): readonly Change[] {
  const { wish, wiring, observed } = facts;
  const { subscription } = wiring;
  if (subscription === undefined || wish.topicArn === undefined) return [];
  const present = existing(observed.subscription);
  const name = subscriptionName(subscription);
  if (present === undefined || present.isPending || present.arn === undefined) {
    return [{ part: 'subscription', action: 'create', name, subscription }];
  }
  const [before, after] = subscriptionAttributes(present, subscription);
  if (Object.keys(after).length === 0) return [];
  return [{ part: 'subscription', action: 'change', name: present.arn, before, after }];
}

function ruleChanges(facts: Facts): readonly Change[] {
  const { wiring, observed } = facts;
  const { rule } = wiring;
  if (rule === undefined || isRuleForeign(facts)) return [];
  const present = existing(observed.rule);
  const target = present?.targets.find(({ id }) => id === rule.target.id);
  return [...ruleChange(rule, present), ...targetChange(rule, target)];
}

function ruleChange(rule: Rule, present: ObservedRule | undefined): readonly Change[] {
  if (present === undefined) return [{ part: 'rule', action: 'create', name: rule.arn, rule }];
  return isRuleRight(rule, present) ? [] : [{ part: 'rule', action: 'change', name: rule.arn, rule, before: present }];
}

function targetChange(rule: Rule, present: ObservedTarget | undefined): readonly Change[] {
  if (present === undefined) return [{ part: 'target', action: 'create', name: rule.arn, rule }];
  if (isTargetRight(rule.target, present)) return [];
  return [{ part: 'target', action: 'change', name: rule.arn, rule: withLetters(rule, present), before: present }];
}

/** Only the trail that the settings give to Tally is written to, and only if it does not record the bucket by any selector. */
function trailChanges({ wish, observed }: Facts): readonly Change[] {
  const [trail] = observed.trails ?? [];
  if (wish.trailArn === undefined || trail?.selectors === undefined || recordsBucket(trail.selectors, wish)) return [];
  return [{ part: 'trail', action: 'change', name: trail.arn, before: trail.selectors, after: withSelector(trail.selectors, wish) }];
}

function isRuleRight(rule: Rule, { pattern, isEnabled }: ObservedRule): boolean {
  return isEnabled && samePattern(rule, pattern);
}

function notificationChanges({ wish, wiring, observed }: Facts): readonly Change[] {
  if (!observed.notification.ok) return [];
  const before = observed.notification.configuration;
  const { entry } = wiring;
  const entries = entry === undefined ? before.entries : [...foreignEntries(before, wish), entry];
  const after = { entries, eventBridge: before.eventBridge || wiring.eventBridge };
  if (sameEntries(before.entries, after.entries) && before.eventBridge === after.eventBridge) return [];
  const isThere = entry !== undefined && before.entries.some(({ id }) => id === entry.id);
  return [{ part: 'notification', action: isThere ? 'change' : 'create', name: wish.bucket, before, after }];
}

/** The part of a token that is compared: 64 bits are far more than can be tried. */
const TOKEN_LENGTH = 16;

/** What our own apply writes is no part of it, so that it stays valid until everything is applied. */
function tokenOf({ wish, wiring, observed }: Facts): string {
  const { notification, queues } = observed;
  const sids = sidsOf(wish);
  const topic = existing(observed.topic);
  const theirs = {
    entries: notification.ok ? foreignEntries(notification.configuration, wish).map(canonicalEntry) : notification.xml,
    // the source eventbridge switches it on
    eventBridge: notification.ok && wish.source !== 'eventbridge' && notification.configuration.eventBridge,
    selectors: (observed.trails ?? []).map(({ arn, selectors }) => [arn, selectors && foreignSelectors(selectors, wish)]),
    statements: queues.map(({ arn, policy }) => [arn, foreignStatements(parsePolicy(policy) ?? { Statement: [] }, sids.all)]),
    topic: topic === undefined || wiring.topic?.isForeign !== true ? undefined : theirsOfTopic(topic, sids.ofTopics),
  };
  return fingerprintOf({ wish, theirs }).slice(0, TOKEN_LENGTH);
}

function theirsOfTopic({ policy, otherSubscriptions }: ObservedTopic, sids: ReadonlySet<string>): object {
  return { otherSubscriptions, statements: foreignStatements(parsePolicy(policy) ?? { Statement: [] }, sids) };
}

/** AWS's quota, which it raises on request. */
const RULES_MAX = 300;
/** From here on a plan says so. */
const RULES_NEAR = 280;

/** What a plan says of a bus that is to get one more rule. */
export function busNote({ bucket, region }: Wish, count: number): readonly Finding[] {
  if (count < RULES_NEAR) return [];
  return [
    note(
      'connect.rules-near-limit',
      `the default event bus of ${region} has ${count} rules, and ${bucket} needs one more`,
      `a bus has ${RULES_MAX} rules unless AWS has raised the quota`,
      `aws service-quotas get-service-quota --region ${region} --service-code events --quota-code L-244521F2`,
    ),
  ];
}
