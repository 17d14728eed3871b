/**
 * The plan of a wish: what would change in AWS so that the bucket's events reach the queue, and what stands in the way. It is a
 * pure function of the wish and of what was read, so that a plan, an apply and a check can never disagree.
 */
import { fingerprintOf } from '../canonical.ts';
import { blockers } from '../checks/blockers.ts';
import { note, type Finding } from '../checks/finding.ts';
import { queueFindings } from '../checks/queue.ts';
import { trailCheck } from '../checks/trail.ts';
import { subscriptionName } from '../connection.ts';
import {
  existing,
  isRuleForeign,
  isTargetRight,
  isTopicForeign,
  NO_LETTERS,
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
import { canonicalStatement, foreignStatements, parsePolicy, sameStatements, type Policy } from '../policy.ts';
import { foreignSelectors, recordsBucket, withSelector, type Selectors } from '../trail.ts';
import { sidsOf, wiringOf, type Rule, type Subscription, type Wiring, type Wish } from '../wiring.ts';

type Act = 'create' | 'change';

/** One write. `name` is the ARN of what it writes to, or the name of the bucket. */
export type Change =
  | { readonly part: 'topic' | 'queue'; readonly action: 'create'; readonly name: string }
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
  | { readonly part: 'rule'; readonly action: Act; readonly name: string; readonly rule: Rule; readonly before?: ObservedRule }
  | { readonly part: 'target'; readonly action: Act; readonly name: string; readonly rule: Rule; readonly before?: ObservedTarget }
  | { readonly part: 'trail'; readonly action: 'change'; readonly name: string; readonly before: Selectors; readonly after: Selectors }
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
  /** Why a person must agree: what of others the changes touch. Empty: nothing. */
  readonly foreign: readonly string[];
  /** Identifies the wish together with everything that is not ours. */
  readonly token: string;
}

/** Makes the plan. */
export function planOf(wish: Wish, observed: Observed): Plan {
  const wiring = wiringOf(wish);
  const facts = { wish, wiring, observed };
  const notification = notificationChange(facts);
  const changes = [
    ...topicChanges(facts),
    ...queueChanges(facts),
    ...subscriptionChanges(facts),
    ...ruleChanges(facts),
    ...trailChanges(facts),
    ...(notification === undefined ? [] : [notification]),
  ];
  const foreign = [
    ...(notification === undefined ? [] : foreignOf(wish, notification)),
    ...foreignSubscriptions(changes),
    ...foreignTopic(facts, changes),
    ...foreignTrails(facts, changes),
  ];
  const findings = [...blockers, trailCheck].flatMap((check) => check(facts) ?? []);
  return {
    wish,
    wiring,
    changes,
    findings: [...findings, ...queueFindings(facts)],
    foreign,
    token: tokenOf(facts),
  };
}

function topicChanges(facts: Facts): readonly Change[] {
  const { topic } = facts.wiring;
  if (topic === undefined || isTopicForeign(facts)) return [];
  const isMade = facts.observed.topic !== 'absent' || topic.isForeign === true;
  const policies = topicPolicies(facts);
  return [
    ...(isMade ? [] : [{ part: 'topic', action: 'create', name: topic.arn } as const]),
    ...(policies === undefined ? [] : policyChange('topic-policy', topic.arn, policies.before, policies.after)),
  ];
}

function queueChanges(facts: Facts): readonly Change[] {
  return facts.wiring.queues.flatMap((queue) => {
    const isMissing = queueOf(facts.observed, queue.arn) === undefined;
    if (isMissing && queue.arn !== facts.wiring.undelivered) return [];
    const { before, after } = queuePolicies(facts, queue);
    return [
      ...(isMissing ? [{ part: 'queue', action: 'create', name: queue.arn } as const] : []),
      ...policyChange('queue-policy', queue.arn, before, after),
    ];
  });
}

function policyChange(part: 'topic-policy' | 'queue-policy', name: string, before: Policy, after: Policy): readonly Change[] {
  if (sameStatements(before.Statement, after.Statement)) return [];
  return [{ part, action: before.Statement.length === 0 ? 'create' : 'change', name, before, after }];
}

function subscriptionChanges(facts: Facts): readonly Change[] {
  const { wiring, observed } = facts;
  const { subscription } = wiring;
  if (subscription === undefined || isTopicForeign(facts)) return [];
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

function notificationChange({ wish, wiring, observed }: Facts): (Change & { readonly part: 'notification' }) | undefined {
  if (!observed.notification.ok) return undefined;
  const before = observed.notification.configuration;
  const { entry } = wiring;
  const entries = entry === undefined ? before.entries : [...foreignEntries(before, wish), entry];
  const after = { entries, eventBridge: before.eventBridge || wiring.eventBridge };
  if (sameEntries(before.entries, after.entries) && before.eventBridge === after.eventBridge) return undefined;
  const isThere = entry !== undefined && before.entries.some(({ id }) => id === entry.id);
  return { part: 'notification', action: isThere ? 'change' : 'create', name: wish.bucket, before, after };
}

/** What the switch of EventBridge touches: rules of others may match all events of S3. */
export const EVENTBRIDGE_SWITCH = 'all events of the bucket also go to EventBridge from then on';

/**
 * Writing the bucket's configuration touches others if there are any: each of their destinations gets a test event, and what
 * they write at the same moment would be lost.
 */
function foreignOf(wish: Wish, { before, after }: Change & { readonly part: 'notification' }): readonly string[] {
  return [
    ...foreignEntries(before, wish).map(({ arn }) => `${arn} gets an s3:TestEvent`),
    ...(before.eventBridge === after.eventBridge ? [] : [EVENTBRIDGE_SWITCH]),
  ];
}

/** What Tally does not set was set by others, on purpose perhaps: it is changed only where a person has seen it. */
function foreignSubscriptions(changes: readonly Change[]): readonly string[] {
  return changes.flatMap((change) => {
    if (change.part !== 'subscription' || change.action === 'create') return [];
    const set = Object.entries(change.before).filter(([, value]) => value !== NO_LETTERS);
    return set.map(([name, value]) => `the ${name} of the subscription ${change.name} was set by others, and is changed: ${value}`);
  });
}

/**
 * What a plan does to the topic that the wish names, which is not Tally's. A subscription of the bucket queue changes nothing for
 * others, but a statement in the topic's policy does, and so does a rule: all subscribers get what it sends.
 */
function foreignTopic({ wish, wiring: { topic }, observed }: Facts, changes: readonly Change[]): readonly string[] {
  if (topic?.isForeign !== true) return [];
  const { arn } = topic;
  const isSentMore = changes.some(({ part }) => part === 'rule' || part === 'target');
  return [
    ...changes.flatMap((change) =>
      change.part === 'topic-policy' ? [`the policy of ${arn}, which Tally did not make, gets ${newStatements(change)}`] : [],
    ),
    ...(isSentMore ? othersAtTopic(wish, arn, observed) : []),
  ];
}

function newStatements({ before, after }: { readonly before: Policy; readonly after: Policy }): string {
  const known = new Set(before.Statement.map(canonicalStatement));
  const sids = after.Statement.flatMap((statement) => (known.has(canonicalStatement(statement)) ? [] : (statement.Sid ?? [])));
  return `the statement ${sids.join(' and ')}`;
}

/** Who else reads the topic: they get Tally's records from then on. */
function othersAtTopic({ bucket }: Wish, arn: string, { topic, notification }: Observed): readonly string[] {
  const others = existing(topic)?.otherSubscriptions ?? 0;
  const entries = notification.ok ? notification.configuration.entries.filter((entry) => entry.arn === arn) : [];
  return [
    ...(others === 0 ? [] : [`the other subscriptions of ${arn} (${others}) get the records of the rule, too`]),
    ...entries.map(
      ({ id }) => `${arn} is the destination of the notification ${id} of ${bucket}: who reads it gets the same changes twice`,
    ),
  ];
}

/** Selectors of others stay, but are written again. */
function foreignTrails({ wish }: Facts, changes: readonly Change[]): readonly string[] {
  return changes.flatMap((change) =>
    change.part === 'trail' && foreignSelectors(change.before, wish).length > 0
      ? [`all selectors of ${change.name} are written again`]
      : [],
  );
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
    statements: queues
      .filter(({ arn }) => arn !== wiring.undelivered)
      .map(({ arn, policy }) => [arn, foreignStatements(parsePolicy(policy) ?? { Statement: [] }, sids.all)]),
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
