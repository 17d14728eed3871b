/**
 * The parts of a plan that a template can own. They are those that an apply makes: what a bucket needs comes from {@link wiringOf},
 * and each policy is the document that a plan would write, with the statements that others have in it now.
 *
 * A template owns what it makes as a whole. So it leaves out what belongs to others as well: the notification configuration of a
 * bucket, the selectors of a trail, the policy of another's topic. The script for the AWS CLI reads and merges, and makes these.
 */
import { shellWords } from '../../commands.ts';
import { topicPolicies } from '../deliveries.ts';
import { existing, queueOf, queuePolicies, withLetters, type Facts } from '../facts.ts';
import { parseArn, tagsOf, type Tags } from '../names.ts';
import type { Plan } from '../planning/plan.ts';
import type { Policy } from '../policy.ts';
import { recordsBucket } from '../trail.ts';
import { isPlaced } from '../shared-rule.ts';
import { partsPlace, sidsOf, wiringOf, type Rule, type Subscription, type Wish } from '../wiring.ts';

export const emitFormats = ['aws-cli', 'cloudformation', 'terraform'] as const;
export type EmitFormat = (typeof emitFormats)[number];
export type TemplateFormat = Exclude<EmitFormat, 'aws-cli'>;

/** The name of each format, as people read it. */
export const formatNames: Readonly<Record<EmitFormat, string>> = {
  'aws-cli': 'the AWS CLI',
  cloudformation: 'CloudFormation',
  terraform: 'Terraform',
};

/** One part. All but the rule serve every bucket of their kind. */
export type Part =
  | { readonly kind: 'topic'; readonly arn: string; readonly tags: Tags; readonly exists: boolean }
  | { readonly kind: 'topic-policy' | 'queue-policy'; readonly arn: string; readonly policy: Policy }
  /** For what SNS and EventBridge of another region than that of the queues cannot deliver. */
  | { readonly kind: 'queue'; readonly arn: string; readonly exists: boolean }
  | { readonly kind: 'subscription'; readonly subscription: Subscription }
  | { readonly kind: 'rule'; readonly rule: Rule; readonly tags: Tags; readonly exists: boolean };

/** The longest that SQS offers: what could not be delivered waits for a person. */
export const RETENTION_MAX_S = 1_209_600;

export interface Template {
  readonly wish: Wish;
  /** In the order in which they are made. */
  readonly parts: readonly Part[];
  /** What is needed besides, and belongs to others as well. */
  readonly left: readonly string[];
}

/** Returns the parts, and what no template can own. */
export function templateOf({ wish }: Pick<Plan, 'wish'>, observed: Facts['observed']): Template {
  const facts = { wish, wiring: wiringOf(wish), observed };
  const all = [...topicParts(facts), ...queueParts(facts), ...subscriptionParts(facts), ...ruleParts(facts)];
  const parts = all.filter((part) => isHere(part, wish));
  const elsewhere = all.filter((part) => !isHere(part, wish));
  return { wish, parts, left: [...elsewhere.map(elsewhereText), ...sharedWithOthers(facts)] };
}

function topicParts(facts: Facts): readonly Part[] {
  const { topic } = facts.wiring;
  const policies = topicPolicies(facts);
  if (topic === undefined || topic.isForeign === true || policies === undefined) return [];
  return [
    { kind: 'topic', arn: topic.arn, tags: tagsOf(facts.wish), exists: existing(facts.observed.topic) !== undefined },
    { kind: 'topic-policy', arn: topic.arn, policy: whole(policies.after) },
  ];
}

function queueParts(facts: Facts): readonly Part[] {
  const { all } = sidsOf(facts.wish);
  const { undelivered } = facts.wiring;
  const made: readonly Part[] =
    undelivered === undefined ? [] : [{ kind: 'queue', arn: undelivered, exists: queueOf(facts.observed, undelivered) !== undefined }];
  const policies = facts.wiring.queues.flatMap((queue): readonly Part[] => {
    const policy = queuePolicies(facts, queue).after;
    return policy.Statement.some(({ Sid = '' }) => all.has(Sid)) ? [{ kind: 'queue-policy', arn: queue.arn, policy: whole(policy) }] : [];
  });
  return [...made, ...policies];
}

/** A policy without a version would have an old one. */
function whole(policy: Policy): Policy {
  return { Version: '2012-10-17', ...policy };
}

function subscriptionParts({ wiring: { subscription } }: Facts): readonly Part[] {
  return subscription === undefined ? [] : [{ kind: 'subscription', subscription }];
}

function ruleParts({ wish, observed }: Facts): readonly Part[] {
  const rule = codeRuleOf(wish, observed);
  if (rule === undefined) return [];
  const exists = observed.sharedRule === undefined && existing(observed.rule) !== undefined;
  return [{ kind: 'rule', rule, tags: tagsOf(wish, wish.bucket), exists }];
}

/**
 * The rule that code makes: the bucket's own, because code that owned a shared one would take the events of other buckets away. It
 * keeps a dead-letter queue that nothing else names. Undefined: another rule sends the events, and a second one would send them twice.
 */
export function codeRuleOf(wish: Wish, observed: Facts['observed']): Rule | undefined {
  const { rule } = wiringOf(wish);
  if (rule === undefined || observed.handMadeRule !== undefined) return undefined;
  if (observed.sharedRule !== undefined) return isPlaced(wish, observed) ? undefined : rule;
  const target = existing(observed.rule)?.targets.find(({ id }) => id === rule.target.id);
  return withLetters(rule, target);
}

/** The ARN of the part, or of what it is a part of. */
function arnOf(part: Part): string {
  switch (part.kind) {
    case 'topic':
    case 'topic-policy':
    case 'queue':
    case 'queue-policy':
      return part.arn;
    case 'subscription':
      return part.subscription.topicArn;
    case 'rule':
      return part.rule.arn;
  }
}

/** Whose request makes it: a subscription is made beside its topic, in the name of the account of the queue. */
function accountOf(part: Part): string | undefined {
  return parseArn(part.kind === 'subscription' ? part.subscription.queueArn : arnOf(part))?.account;
}

/** A template is for one region and one account: those of the bucket's rule and topic. */
function isHere(part: Part, wish: Wish): boolean {
  const { region, account } = partsPlace(wish);
  return parseArn(arnOf(part))?.region === region && accountOf(part) === account;
}

function elsewhereText(part: Part): string {
  return `the ${part.kind} ${arnOf(part)}, which is in another region or account`;
}

function sharedRuleText(wish: Wish, observed: Facts['observed']): readonly string[] {
  const { sharedRule } = observed;
  if (sharedRule === undefined || !isPlaced(wish, observed)) return [];
  return [`the rule ${sharedRule.name}, which sends the events of ${wish.bucket} with those of other buckets`];
}

function sharedWithOthers({ wish, wiring, observed }: Facts): readonly string[] {
  const { notification, trails = [] } = observed;
  const isOff = wiring.eventBridge && notification.ok && !notification.configuration.eventBridge;
  const isRecorded = trails.some(({ selectors }) => selectors !== undefined && recordsBucket(selectors, wish));
  return [
    ...(isOff ? [`the switch by which ${wish.bucket} sends its events to EventBridge, in its notification configuration`] : []),
    ...(wiring.selector !== undefined && !isRecorded ? [`the selector of ${wish.bucket} in a trail`] : []),
    ...sharedRuleText(wish, observed),
    ...(wiring.topic?.isForeign === true ? [`the statements of Tally in the policy of ${wiring.topic.arn}`] : []),
  ];
}

/** The lines at the top of a template, without the marks of a comment. */
export function headOf({ wish, parts, left }: Template, format: TemplateFormat): readonly string[] {
  const { bucket, source } = wish;
  const { region, account } = partsPlace(wish);
  const rule = parts.find((part) => part.kind === 'rule');
  const how = ['--source', source, ...(wish.topicArn === undefined ? [] : ['--topic', wish.topicArn]), '--format', 'aws-cli'];
  const command = shellWords('tally', 'bucket', 'emit', bucket, ...how);
  return [
    `Connects the bucket ${bucket} to Tally (source ${source}), for ${region} and the account ${account}.`,
    ...(format === 'terraform' ? ['It was parsed and compared with what Tally makes by itself, and it was not applied.'] : []),
    'Everything but the rule serves all buckets of this source, so it stays when the bucket is disconnected.',
    ...(rule?.exists === true ? [`The rule ${rule.rule.name} exists: unless it was made by this template, import it.`] : []),
    ...(left.length === 0 ? [] : ['A template would own these as a whole, and overwrite what others have in them, so it leaves them out:']),
    ...left.map((each) => `- ${each}`),
    ...(left.length === 0 ? [] : [`Afterwards the script of \`${command}\` makes them, and finds the rest as it is.`]),
  ];
}
