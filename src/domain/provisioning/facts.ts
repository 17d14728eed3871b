/** A wish together with what was read about it, and the comparisons that plans and checks share. */
import { omit } from '../defined.ts';
import { jsonOf } from '../json.ts';
import { canonicalJson } from './canonical.ts';
import { isOwn, markOf, otherInstallationOf } from './names.ts';
import type { Observed, ObservedQueue, ObservedRule, ObservedSubscription, ObservedTarget, ObservedTopic } from './observed.ts';
import { canonicalStatement, parsePolicy, withStatements, type Policy, type Statement } from './policy.ts';
import { queueStatements, type Rule, type Subscription, type Target, type Wiring, type Wish } from './wiring.ts';

export interface Facts {
  readonly wish: Wish;
  readonly wiring: Wiring;
  readonly observed: Observed;
}

/** What is known of one part of a wish. */
export interface FactsOf<Part extends keyof Observed> {
  readonly wish: Wish;
  readonly wiring: Wiring;
  readonly observed: Pick<Observed, Part>;
}

/** The policy of a queue as it is, and as it must be. */
export function queuePolicies(
  { wish, observed }: Facts,
  queue: Wiring['queues'][number],
): { readonly before: Policy; readonly after: Policy } {
  const before = parsePolicy(queueOf(observed, queue.arn)?.policy) ?? { Statement: [] };
  return { before, after: withStatements(before, queueStatements(wish, queue, before.Statement)) };
}

/** The policy of the wired topic as it is, and as it must be; undefined if there is no such topic, or its policy cannot be read. */
export function topicPolicies({
  wish,
  wiring: { topic },
  observed,
}: Facts): { readonly before: Policy; readonly after: Policy } | undefined {
  const present = existing(observed.topic);
  if (topic === undefined) return undefined;
  // a topic that Tally makes first gets its policy afterwards
  if (present === undefined && topic.isForeign === true) return undefined;
  const before = present === undefined ? { Statement: [] } : parsePolicy(present.policy);
  if (before === undefined) return undefined;
  // an operator's statement that says the same is enough; another registry's goes with its last bucket
  const theirs = before.Statement.filter(({ Sid = '' }) => Sid !== markOf(wish) && otherInstallationOf(Sid, wish) === undefined);
  const said = new Set(theirs.map(withoutSid));
  const statements = topic.isForeign === true ? topic.statements.filter((statement) => !said.has(withoutSid(statement))) : topic.statements;
  return { before, after: withStatements(before, statements) };
}

function withoutSid(statement: Statement): string {
  return canonicalStatement(omit(statement, 'Sid'));
}

export function queueOf({ queues }: Observed, arn: string): ObservedQueue | undefined {
  return queues.find((queue) => queue.arn === arn);
}

/** The redrive policy of a subscription without a dead-letter queue. */
export const NO_LETTERS = '{}';

/** The attributes of a subscription that must change: as they are, and as they must be. */
export function subscriptionAttributes(
  present: ObservedSubscription,
  wanted: Pick<Subscription, 'deadLetterArn'>,
): readonly [before: Readonly<Record<string, string>>, after: Readonly<Record<string, string>>] {
  const isFiltered = present.filterPolicy !== undefined && canonicalJson(jsonOf(present.filterPolicy)) !== '{}';
  const hasWrongLetters = wanted.deadLetterArn !== undefined && present.deadLetterArn !== wanted.deadLetterArn;
  const redrive = (arn: string | undefined): string => (arn === undefined ? NO_LETTERS : JSON.stringify({ deadLetterTargetArn: arn }));
  return [
    {
      ...(isFiltered && { FilterPolicy: present.filterPolicy }),
      ...(present.isRaw && { RawMessageDelivery: 'true' }),
      ...(hasWrongLetters && { RedrivePolicy: redrive(present.deadLetterArn) }),
    },
    {
      ...(isFiltered && { FilterPolicy: '{}' }),
      ...(present.isRaw && { RawMessageDelivery: 'false' }),
      ...(hasWrongLetters && { RedrivePolicy: redrive(wanted.deadLetterArn) }),
    },
  ];
}

/** Whether the pattern is the rule's. */
export function samePattern(rule: Rule, pattern: string | undefined): boolean {
  return pattern !== undefined && canonicalJson(jsonOf(pattern)) === canonicalJson(rule.pattern);
}

/** Whether the target is the rule's, with the same transformer and dead-letter queue and without a role. */
export function isTargetRight(wanted: Target, target: ObservedTarget): boolean {
  const { arn, roleArn } = target;
  return arn === wanted.arn && hasLetters(wanted, target) && roleArn === undefined && isInputRight(wanted, target);
}

/** Whether the target has the wanted dead-letter queue. Where none is known, any one is right, and must stay. */
export function hasLetters({ deadLetterArn: wanted }: Target, { deadLetterArn }: ObservedTarget): boolean {
  return wanted === undefined || deadLetterArn === wanted;
}

/** The rule with the dead-letter queue that its target has, where none is known: a write replaces a target as a whole. */
export function withLetters(rule: Rule, present: ObservedTarget | undefined): Rule {
  const deadLetterArn = rule.target.deadLetterArn ?? present?.deadLetterArn;
  return deadLetterArn === undefined ? rule : { ...rule, target: { ...rule.target, deadLetterArn } };
}

/** Whether the target gets what it must: the event itself, or what the transformer makes of it. */
export function isInputRight(wanted: Target, { transformer, hasOtherInput }: ObservedTarget): boolean {
  return hasOtherInput === undefined && canonicalJson(transformer ?? {}) === canonicalJson(wanted.transformer ?? {});
}

/** The topic that something must publish to, if it exists and may be written to: this registry has made it, or the wish names it. */
export function ownTopic({ wish, wiring, observed }: FactsOf<'topic'>): ObservedTopic | undefined {
  const topic = existing(observed.topic);
  if (wiring.topic === undefined || topic === undefined) return undefined;
  return wiring.topic.isForeign === true || isOwn(topic.tags, wish) ? topic : undefined;
}

/** Whether the topic that Tally would make is there, and another registry's. That of the operator, which the wish names, is not. */
export function isTopicForeign(facts: FactsOf<'topic'>): boolean {
  return facts.wiring.topic !== undefined && existing(facts.observed.topic) !== undefined && ownTopic(facts) === undefined;
}

/** The rule of the wish, if it exists and this registry has made it. */
export function ownRule({ wish, observed }: Omit<FactsOf<'rule'>, 'wiring'>): ObservedRule | undefined {
  const rule = existing(observed.rule);
  return rule !== undefined && isOwn(rule.tags, wish) ? rule : undefined;
}

/** Whether a rule has the name of the wish's, and is another one's. */
export function isRuleForeign(facts: Omit<FactsOf<'rule'>, 'wiring'>): boolean {
  return existing(facts.observed.rule) !== undefined && ownRule(facts) === undefined;
}

/** What was found, if it exists. */
export function existing<Part>(part: Part | 'absent' | undefined): Part | undefined {
  return part === 'absent' ? undefined : part;
}
