/** A wish together with what was read about it, and the comparisons that plans and checks share. */
import { omit } from '../defined.ts';
import { jsonOf } from '../json.ts';
import { canonicalJson } from './canonical.ts';
import { isOwn, markOf, otherInstallationOf } from './names.ts';
import type { Observed, ObservedQueue, ObservedRule, ObservedSubscription, ObservedTarget } from './observed.ts';
import { canonicalStatement, parsePolicy, withStatements, type Policy, type Statement } from './policy.ts';
import { withShared } from './shared.ts';
import { namedStatements, type Rule, type Subscription, type Target, type WiredQueue, type Wiring, type Wish } from './wiring.ts';

export interface Facts {
  readonly wish: Wish;
  readonly wiring: Wiring;
  readonly observed: Observed;
}

/** The policy of a queue as it is, with what the bucket's own parts need, and with what all buckets need. */
export function queuePolicies(
  { wish, observed }: Facts,
  queue: WiredQueue,
): { readonly before: Policy; readonly own: Policy; readonly shared: Policy } {
  const before = parsePolicy(queueOf(observed, queue.arn)?.policy) ?? { Statement: [] };
  return {
    before,
    own: withStatements(before, namedStatements(wish, queue, before.Statement)),
    shared: withShared(
      before,
      queue.senders.flatMap((sender) => (sender.of === 'named' ? [] : [sender.statement])),
    ),
  };
}

/** The policy of the wired topic as it is, and as it must be; undefined if there is no such topic, or its policy cannot be read. */
export function topicPolicies({
  wish,
  wiring: { topic },
  observed,
}: Facts): { readonly before: Policy; readonly after: Policy } | undefined {
  const present = existing(observed.topic);
  const before = present === undefined ? undefined : parsePolicy(present.policy);
  if (topic === undefined || before === undefined) return undefined;
  // an operator's statement that says the same is enough; another registry's goes with its last bucket
  const theirs = before.Statement.filter(({ Sid = '' }) => Sid !== markOf(wish) && otherInstallationOf(Sid, wish) === undefined);
  const isSaid = topic.isForeign === true && theirs.some((each) => withoutSid(each) === withoutSid(topic.statement));
  return { before, after: isSaid ? before : withStatements(before, [topic.statement]) };
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

interface RuleFacts {
  readonly wish: Wish;
  readonly observed: Pick<Observed, 'rule'>;
}

/** The rule of the wish, if it exists and this registry has made it. */
export function ownRule({ wish, observed }: RuleFacts): ObservedRule | undefined {
  const rule = existing(observed.rule);
  return rule !== undefined && isOwn(rule.tags, wish) ? rule : undefined;
}

/** Whether a rule has the name of the wish's, and is another one's. */
export function isRuleForeign(facts: RuleFacts): boolean {
  return existing(facts.observed.rule) !== undefined && ownRule(facts) === undefined;
}

/** What was found, if it exists. */
export function existing<Part>(part: Part | 'absent' | undefined): Part | undefined {
  return part === 'absent' ? undefined : part;
}
