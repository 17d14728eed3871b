/**
 * What a removal takes away, in its order: the notification or the rule first, so that nothing new is sent, then the subscription
 * to a topic that was named, and its statements. What all buckets share stays, and so does what others have altered.
 */
import { canonicalJson } from '../canonical.ts';
import { subscriptionName } from '../connection.ts';
import { existing, isTargetRight, queueOf, samePattern, type Facts } from '../facts.ts';
import { isOwn, ownerText } from '../names.ts';
import { entriesWithout } from '../notification.ts';
import type { Change } from './plan.ts';
import { conditionValues, parsePolicy, withoutStatements, withStatements } from '../policy.ts';
import { selectorName, sharedSelectorName, withoutSelector } from '../trail.ts';
import { sidsOf, wiringOf, type Subscription, type Wiring, type Wish } from '../wiring.ts';

/** What stays although it is ours, and why. */
export interface Kept {
  readonly name: string;
  readonly reason: string;
}

/** What a removal leaves, as the records say it. */
export interface Remains {
  /** What the bucket has from now on. Absent: nothing. */
  readonly still?: Wish;
  /** What other buckets use: the names of subscriptions to topics that were named, and these topics. */
  readonly used: ReadonlySet<string>;
  /** What Tally made where neither name nor tag says it: what was there before belongs to others. */
  readonly made: readonly string[];
}

type Step = Change | Kept | undefined;

/** What must go, what stays because others altered it, and nothing else. Parts that do not exist any more are not listed. */
export function removalOf(facts: Facts, remains: Remains): { readonly changes: readonly Change[]; readonly kept: readonly Kept[] } {
  const steps = [...sourceRemovals(facts, remains), ...namedRemovals(facts, remains)];
  return {
    changes: steps.flatMap((step) => (step === undefined || 'reason' in step ? [] : [step])),
    kept: steps.flatMap((step) => (step !== undefined && 'reason' in step ? [step] : [])),
  };
}

function sourceRemovals(facts: Facts, { still, made }: Remains): readonly Step[] {
  const { entry, rule } = facts.wiring;
  const now: Partial<Wiring> = still === undefined ? {} : wiringOf(still);
  return [
    now.entry?.id === entry?.id ? undefined : notificationRemoval(facts),
    now.rule?.name === rule?.name ? undefined : ruleRemoval(facts),
    now.eventBridge === true ? undefined : keptSwitch(facts),
    now.selector === undefined ? trailRemoval(facts, made) : undefined,
  ];
}

/** What a topic that was named has of Tally, as far as nothing else needs it. */
function namedRemovals(facts: Facts, { still, used, made }: Remains): readonly Step[] {
  const { subscription } = facts.wiring;
  if (subscription === undefined || facts.wish.topicArn === undefined) return [];
  const theirs = still && wiringOf(still).subscription;
  const needed = theirs === undefined ? used : new Set([...used, theirs.topicArn, subscriptionName(theirs)]);
  const isTopicUsed = needed.has(subscription.topicArn);
  const isLinkUsed = needed.has(subscriptionName(subscription));
  return [
    isLinkUsed ? undefined : subscriptionRemoval(facts, made),
    isTopicUsed ? undefined : statementRemoval(facts),
    ...queueRemovals(facts, subscription, (arn) => (arn === subscription.queueArn ? isLinkUsed : isTopicUsed)),
  ];
}

/** Only Tally's own configuration, and only in the form in which Tally made it, whatever the enrichment was then. */
export function notificationRemoval({
  wish,
  wiring,
  observed: { notification },
}: Facts): (Change & { readonly part: 'notification' }) | Kept | undefined {
  const { entry } = wiring;
  if (entry === undefined) return undefined;
  if (!notification.ok) return { name: wish.bucket, reason: notification.reason };
  const before = notification.configuration;
  const found = before.entries.find(({ id }) => id === entry.id);
  if (found === undefined) return undefined;
  if (found.arn !== entry.arn || found.filter.length > 0) return { name: `${wish.bucket} ${found.id}`, reason: 'it was changed by others' };
  return {
    part: 'notification',
    action: 'remove',
    name: wish.bucket,
    before,
    after: { ...before, entries: entriesWithout(before, entry.id) },
  };
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
function ruleRemoval({ wish, wiring: { rule }, observed }: Facts): Step {
  const present = existing(observed.rule);
  if (rule === undefined || present === undefined) return undefined;
  if (!isOwn(present.tags, wish)) return { name: rule.name, reason: `it ${ownerText(present.tags)}` };
  const targets = present.targets.filter((target) => target.id !== rule.target.id || !isTargetRight(rule.target, target));
  // a rule without targets was left behind by a removal that was interrupted
  if (targets.length > 0)
    return { name: rule.name, reason: `it has the target ${targets.map(({ id }) => id).join(', ')}, which Tally did not make so` };
  if (!samePattern(rule, present.pattern)) return { name: rule.name, reason: 'its pattern was changed by others' };
  return { part: 'rule', action: 'remove', name: rule.arn, rule, before: present };
}

/** Only the trail that the settings give to Tally is written to. A trail must have a selector, so the last one stays. */
function trailRemoval({ wish, wiring: { selector }, observed }: Facts, made: Remains['made']): Step {
  const name = `the selector of ${wish.bucket} in a trail, “${sharedSelectorName(wish)}” or “${selectorName(wish)}”`;
  if (selector === undefined) return undefined;
  if (wish.trailArn === undefined) return { name, reason: 'Tally does not write to a trail that TALLY_TRAIL_ARN does not name' };
  const trail = observed.trails?.[0];
  if (trail?.selectors === undefined) return undefined;
  const after = withoutSelector(trail.selectors, wish);
  if (after === undefined) return undefined;
  // a basic selector has no name: an equal one may be another registry's
  if (after.kind === 'basic' && !made.includes(trail.arn)) return { name, reason: 'nothing says that Tally has made it' };
  if (after.list.length === 0) return { name, reason: 'it is the only one, and a trail must have one' };
  return { part: 'trail', action: 'remove', name: trail.arn, before: trail.selectors, after };
}

function subscriptionRemoval({ wiring: { subscription }, observed }: Facts, made: Remains['made']): Step {
  const { arn: name } = existing(observed.subscription) ?? {};
  if (subscription === undefined || name === undefined) return undefined;
  if (made.includes(subscriptionName(subscription))) return { part: 'subscription', action: 'remove', name };
  return { name, reason: 'nothing says that Tally has made this subscription to a topic of others' };
}

/** Of a topic that was named only our statement goes. */
function statementRemoval({ wish, wiring: { topic }, observed }: Facts): Step {
  const before = parsePolicy(existing(observed.topic)?.policy);
  if (topic === undefined || before === undefined) return undefined;
  const after = withoutStatements(before, sidsOf(wish).ofTopics);
  const { arn: name } = topic;
  if (after.Statement.length === before.Statement.length) return undefined;
  if (after.Statement.length > 0) return { part: 'topic-policy', action: 'remove', name, before, after };
  return { name, reason: `the statement ${before.Statement[0]?.Sid ?? ''} is the only one of its policy, and a topic must have one` };
}

/** The topic goes from the list of named ones in the queues' policies. */
function queueRemovals(
  { wish, wiring, observed }: Facts,
  { topicArn }: Subscription,
  isUsed: (queueArn: string) => boolean,
): readonly Change[] {
  const { named: sid } = sidsOf(wish);
  return wiring.queues.flatMap(({ arn }) => {
    if (isUsed(arn)) return [];
    const before = parsePolicy(queueOf(observed, arn)?.policy);
    const statement = before?.Statement.find(({ Sid }) => Sid === sid);
    if (before === undefined || statement === undefined) return [];
    const [only, ...more] = conditionValues(statement, 'ArnLike', 'aws:SourceArn').filter((each) => each !== topicArn);
    const rest = { ...statement, Condition: { ArnLike: { 'aws:SourceArn': more.length === 0 ? only : [only, ...more] } } };
    const after = only === undefined ? withoutStatements(before, new Set([sid])) : withStatements(before, [rest]);
    return canonicalJson(after) === canonicalJson(before)
      ? []
      : [{ part: 'queue-policy', action: 'remove', name: arn, before, after } as const];
  });
}
