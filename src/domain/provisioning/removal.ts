/**
 * What a removal takes away, in its order: the notification or the rule first, so that nothing new is sent, then the
 * subscription, the topic and the policies. Parts that other buckets use stay, and so does what others have altered.
 */
import { canonicalJson } from './canonical.ts';
import { existing, isTargetRight, isTopicForeign, queueOf, samePattern, type Facts, type FactsOf } from './facts.ts';
import { isOwn, ownerText } from './names.ts';
import { entriesWithout, type NotificationConfiguration } from './notification.ts';
import {
  conditionValues,
  foreignStatements,
  parsePolicy,
  withoutStatements,
  withStatements,
  type Policy,
  type Statement,
} from './policy.ts';
import type { ObservedRule } from './observed.ts';
import { selectorName, sharedSelectorName, withoutSelector, type Selectors } from './trail.ts';
import { sidsOf, wiringOf, type Rule, type Subscription, type WiredTopic, type Wish } from './wiring.ts';

export type Removal =
  | {
      readonly part: 'notification';
      readonly name: string;
      readonly before: NotificationConfiguration;
      readonly after: NotificationConfiguration;
    }
  | { readonly part: 'rule'; readonly name: string; readonly rule: Rule; readonly before: ObservedRule }
  | { readonly part: 'trail'; readonly name: string; readonly before: Selectors; readonly after: Selectors }
  | { readonly part: 'subscription'; readonly name: string }
  | { readonly part: 'topic' | 'queue'; readonly name: string }
  | { readonly part: 'queue-policy' | 'topic-policy'; readonly name: string; readonly before: Policy; readonly after: Policy };

/** What stays although it is ours, and why. */
export interface Kept {
  readonly name: string;
  readonly reason: string;
}

/** The wishes that stay: those of the other buckets that are connected, and what the bucket itself still has. */
type Others = readonly Wish[];

/** What the records say that Tally made, where neither name nor tag says it: what was there before belongs to others. */
export interface Made {
  /** The subscription with this ARN to a topic of others. */
  readonly subscription: (subscription: Subscription, arn: string) => boolean;
  /** The selector of the bucket in this trail. */
  readonly selector: (trailArn: string) => boolean;
}

/** What must go, what stays because others altered it, and nothing else. Parts that do not exist any more are not listed. */
export function removalOf(
  facts: Facts,
  others: Others,
  made: Made,
): { readonly removals: readonly Removal[]; readonly kept: readonly Kept[] } {
  const still = others.filter(({ bucket }) => bucket === facts.wish.bucket).map(wiringOf);
  const steps = [
    ...(still.some(({ entry, subscription }) => entry?.id === facts.wiring.entry?.id || subscription?.topicArn === facts.wiring.entry?.arn)
      ? []
      : [notificationRemoval(facts)]),
    ...(still.some(({ rule }) => rule?.name === facts.wiring.rule?.name) ? [] : [ruleRemoval(facts)]),
    ...(still.some(({ eventBridge }) => eventBridge) ? [] : [keptSwitch(facts)]),
    ...(still.some(({ selector }) => selector !== undefined) ? [] : [trailRemoval(facts, made)]),
    ...subscriptionRemovals(facts, others, made),
    ...policyRemovals(facts, others),
    ...undeliveredRemoval(facts, others),
  ];
  return {
    removals: steps.flatMap((step) => (step === undefined || 'reason' in step ? [] : [step])),
    kept: steps.flatMap((step) => (step !== undefined && 'reason' in step ? [step] : [])),
  };
}

/** Only Tally's own configuration, and only in the form in which Tally made it, whatever the enrichment was then. */
export function notificationRemoval({
  wish,
  wiring,
  observed: { notification },
}: Facts): (Removal & { readonly part: 'notification' }) | Kept | undefined {
  const { entry } = wiring;
  if (entry === undefined) return undefined;
  if (!notification.ok) return { name: wish.bucket, reason: notification.reason };
  const before = notification.configuration;
  const found = before.entries.find(({ id }) => id === entry.id);
  if (found === undefined) return undefined;
  if (found.arn !== entry.arn || found.filter.length > 0) return { name: `${wish.bucket} ${found.id}`, reason: 'it was changed by others' };
  return { part: 'notification', name: wish.bucket, before, after: { ...before, entries: entriesWithout(before, entry.id) } };
}

/** The bucket's events go to EventBridge as long as it is on, and other rules may take them. S3 has no call for the switch alone. */
function keptSwitch({ wish, wiring: { eventBridge }, observed: { notification } }: Facts): Kept | undefined {
  if (!eventBridge || !notification.ok || !notification.configuration.eventBridge) return undefined;
  const { bucket } = wish;
  const whole = `aws s3api get-bucket-notification-configuration --bucket ${bucket} | jq 'del(.EventBridgeConfiguration)' > ${bucket}.json`;
  const back = `aws s3api put-bucket-notification-configuration --bucket ${bucket} --notification-configuration file://${bucket}.json`;
  const reason = `rules of others may need it. If none does, write the configuration without it, which keeps what others have in it: ${whole} && ${back}`;
  return { name: `the switch for EventBridge of ${bucket}`, reason };
}

/** The bucket's rule goes; what is another one's or was changed by others stays. */
function ruleRemoval({ wish, wiring: { rule }, observed }: Facts): Removal | Kept | undefined {
  const present = existing(observed.rule);
  if (rule === undefined || present === undefined) return undefined;
  if (!isOwn(present.tags, wish)) return { name: rule.name, reason: `it ${ownerText(present.tags)}` };
  const targets = present.targets.filter((target) => target.id !== rule.target.id || !isTargetRight(rule.target, target));
  // a rule without targets was left behind by a removal that was interrupted
  if (targets.length > 0)
    return { name: rule.name, reason: `it has the target ${targets.map(({ id }) => id).join(', ')}, which Tally did not make so` };
  if (!samePattern(rule, present.pattern)) return { name: rule.name, reason: 'its pattern was changed by others' };
  return { part: 'rule', name: rule.arn, rule, before: present };
}

/** Only the trail that the settings give to Tally is written to. A trail must have a selector, so the last one stays. */
function trailRemoval({ wish, wiring: { selector }, observed }: Facts, made: Made): Removal | Kept | undefined {
  const name = `the selector of ${wish.bucket} in a trail, “${sharedSelectorName(wish)}” or “${selectorName(wish)}”`;
  if (selector === undefined) return undefined;
  if (wish.trailArn === undefined) return { name, reason: 'Tally does not write to a trail that TALLY_TRAIL_ARN does not name' };
  const trail = observed.trails?.[0];
  if (trail?.selectors === undefined) return undefined;
  const after = withoutSelector(trail.selectors, wish);
  if (after === undefined) return undefined;
  // a basic selector has no name: an equal one may be another registry's
  if (after.kind === 'basic' && !made.selector(trail.arn)) return { name, reason: 'nothing says that Tally has made it' };
  if (after.list.length === 0) return { name, reason: 'it is the only one, and a trail must have one' };
  return { part: 'trail', name: trail.arn, before: trail.selectors, after };
}

function subscriptionRemovals(facts: Facts, others: Others, made: Made): readonly (Removal | Kept)[] {
  const { subscription } = facts.wiring;
  if (subscription === undefined) return [];
  const sharing = others
    .flatMap((other) => wiringOf(other).subscription ?? [])
    .filter(({ topicArn }) => topicArn === subscription.topicArn);
  if (sharing.some(({ queueArn }) => queueArn === subscription.queueArn)) return [];
  return [...subscriptionRemoval(facts, (arn) => made.subscription(subscription, arn)), ...(sharing.length > 0 ? [] : topicRemoval(facts))];
}

function subscriptionRemoval(facts: Facts, isMade: (arn: string) => boolean): readonly (Removal | Kept)[] {
  const { wiring, observed } = facts;
  const { arn: name } = existing(observed.subscription) ?? {};
  if (name === undefined) return [];
  if (isTopicForeign(facts)) return [{ name, reason: `its topic ${ownerText(existing(observed.topic)?.tags)}` }];
  // a subscription of the queue to a topic of Tally is made for Tally
  if (isMade(name) || (wiring.topic !== undefined && wiring.topic.isForeign !== true)) return [{ part: 'subscription', name }];
  return [{ name, reason: 'nothing says that Tally has made this subscription to a topic of others' }];
}

/** The topic of the wish, unless it is another one's or others use it. */
export function topicRemoval(facts: FactsOf<'topic'>): readonly (Removal | Kept)[] {
  const { topic } = facts.wiring;
  const present = existing(facts.observed.topic);
  if (topic === undefined || present === undefined) return [];
  if (topic.isForeign === true) return statementRemoval(topic, present.policy);
  if (isTopicForeign(facts)) return [{ name: topic.arn, reason: `it ${ownerText(present.tags)}` }];
  if (present.otherSubscriptions > 0) return [{ name: topic.arn, reason: 'others are subscribed to it' }];
  if (hasForeignStatements(present.policy, topic)) return [{ name: topic.arn, reason: 'its policy has statements of others' }];
  return [{ part: 'topic', name: topic.arn }];
}

/** Of a topic of others only our statements go. */
function statementRemoval({ arn, statements }: WiredTopic, text: string | undefined): readonly (Removal | Kept)[] {
  const before = parsePolicy(text);
  if (before === undefined) return [];
  const after = withoutStatements(before, sidsIn(statements));
  if (after.Statement.length === before.Statement.length) return [];
  if (after.Statement.length === 0)
    return [
      { name: arn, reason: `the statement ${before.Statement[0]?.Sid ?? ''} is the only one of its policy, and a topic must have one` },
    ];
  return [{ part: 'topic-policy', name: arn, before, after }];
}

/** SNS gives each new topic a statement with this id. */
const DEFAULT_SID = '__default_statement_ID';

function hasForeignStatements(text: string | undefined, { statements }: WiredTopic): boolean {
  const policy = parsePolicy(text);
  return policy === undefined || foreignStatements(policy, new Set([...sidsIn(statements), DEFAULT_SID])).length > 0;
}

function sidsIn(statements: readonly Statement[]): ReadonlySet<string> {
  return new Set(statements.flatMap(({ Sid }) => Sid ?? []));
}

/** The queue for what could not be delivered, with the last bucket of its region. */
function undeliveredRemoval({ wiring: { undelivered }, observed }: Facts, others: Others): readonly (Removal | Kept)[] {
  const queue = undelivered === undefined ? undefined : queueOf(observed, undelivered);
  if (queue === undefined || others.some((other) => wiringOf(other).undelivered === undelivered)) return [];
  const { arn: name, messages = 0 } = queue;
  return [messages > 0 ? { name, reason: `it holds ${messages} messages that could not be delivered` } : { part: 'queue', name }];
}

/** Our statements in the queues' policies, as far as no other bucket needs them. */
function policyRemovals({ wish, wiring, observed }: Facts, others: Others): readonly Removal[] {
  const sids = sidsOf(wish);
  // another name of the installation has other statements
  const needed = others.filter((other) => sidsOf(other).topics === sids.topics).flatMap((other) => wiringOf(other).queues);
  return wiring.queues.flatMap(({ arn, senders }) => {
    const policy = parsePolicy(queueOf(observed, arn)?.policy);
    if (policy === undefined) return [];
    const needs = needed.filter((queue) => queue.arn === arn).map((queue) => queue.senders);
    const after = (['topics', 'rules'] as const).reduce((left, sender) => {
      const still = needs.flatMap((need) => need[sender] ?? []);
      if (still.length === 0) return withoutStatements(left, new Set([sids[sender]]));
      const arns = new Set(still.flatMap((need) => need.arns));
      const gone = new Set(senders[sender]?.arns.filter((each) => !arns.has(each)));
      return withoutArns(left, sids[sender], gone);
    }, policy);
    return canonicalJson(after) === canonicalJson(policy) ? [] : [{ part: 'queue-policy', name: arn, before: policy, after } as const];
  });
}

/** The policy whose statement for topics or rules does not name these. */
function withoutArns(policy: Policy, sid: string, gone: ReadonlySet<string>): Policy {
  const statement = policy.Statement.find(({ Sid }) => Sid === sid);
  if (statement === undefined) return policy;
  const named = conditionValues(statement, 'ArnLike', 'aws:SourceArn');
  const kept = named.filter((arn) => !gone.has(arn));
  if (kept.length === named.length || kept.length === 0) return policy;
  const [only, ...more] = kept;
  const next: Statement = { ...statement, Condition: { ArnLike: { 'aws:SourceArn': more.length === 0 ? only : kept } } };
  return withStatements(policy, [next]);
}
