/**
 * The source `eventbridge`: the switch in the bucket's notification configuration (notification.ts) and the bucket's rule. The source
 * `routed` has such a rule too.
 */
import { omit } from '../../base/defined.ts';
import { jsonOf } from '../../base/json.ts';
import { canonicalJson } from '../policy.rules.ts';
import type { ConnectionSpec } from '../../records/bucket.ts';
import { blocking, note, type Finding } from '../finding.rules.ts';
import { isOwn, ownerText, ruleArnOf, ruleNameOf, tagsOf, topicArnOf } from '../names.rules.ts';
import type { ObservedRule, Rule, Target, Change, Kept } from '../plan.rules.ts';
import { existing, isFar, nearLetters, queuesOf, through, type Check, type Desired, type Look } from './look.ts';

const DETAIL_TYPES = [
  'Object Created',
  'Object Deleted',
  'Object Restore Completed',
  'Object Restore Expired',
  'Object Storage Class Changed',
  'Object Access Tier Changed',
];

/** A rule can send directly only to a queue in its own region. */
export function desiredEventBridge(spec: ConnectionSpec): Desired {
  const tagTypes = spec.enrich === 'tags' ? ['Object Tags Added', 'Object Tags Deleted'] : [];
  const pattern = { source: ['aws.s3'], 'detail-type': [...DETAIL_TYPES, ...tagTypes], detail: { bucket: { name: [spec.bucket] } } };
  const target: Target = isFar(spec)
    ? { Id: 'routed-topic', Arn: topicArnOf(spec.installation, spec, 'routed') }
    : { Id: 'bucket-queue', Arn: spec.queueArn };
  const way = isFar(spec) ? through(spec, 'routed') : { queues: queuesOf(spec) };
  return { ...way, eventBridge: true, rule: ruleOf(spec, pattern, target) };
}

/** The bucket's rule of its source. */
export function ruleOf(spec: ConnectionSpec, pattern: object, target: Target): Rule {
  const name = ruleNameOf(spec.installation, spec.bucket, spec.source);
  const Arn = nearLetters(spec);
  return { name, arn: ruleArnOf(spec, name), pattern, target: { ...target, ...(Arn !== undefined && { DeadLetterConfig: { Arn } }) } };
}

/** The change of the rule and its target. Only what differs is written. */
export function ruleChanges(look: Look): readonly Change[] {
  const {
    spec,
    desired: { rule },
    observed,
    tools: { aws },
  } = look;
  const present = existing(observed.rule);
  if (rule === undefined || isRuleForeign(look)) return [];
  const target = present && targetIn(rule, present);
  const differs = { rule: !isRuleRight(rule, present), target: !isTargetRight(rule.target, target) };
  if (!differs.rule && !differs.target) return [];
  return [
    {
      part: 'rule',
      action: present === undefined ? 'create' : 'change',
      name: rule.arn,
      before: present && { EventPattern: present.pattern, State: present.isEnabled ? 'ENABLED' : 'DISABLED', Target: target },
      after: { EventPattern: rule.pattern, State: 'ENABLED', Target: rule.target },
      touches: [],
      isOfLetters: !differs.rule && isTargetRight(omit(rule.target, 'DeadLetterConfig'), target),
      // unless someone changed the rule since the plan, or it has another owner by now: then it is planned again
      async make(signal): Promise<'waiting' | void> {
        let now = existing(await aws.ruleOf(spec, rule.name, signal));
        if (canonicalJson(now) !== canonicalJson(present)) return;
        if (differs.rule) {
          await aws.putRule(spec, rule, tagsOf(spec, spec.bucket), signal);
          now = existing(await aws.ruleOf(spec, rule.name, signal));
        }
        // EventBridge shows a new rule and its tags some seconds later
        if (now === undefined || !isOwn(now.tags, spec)) return 'waiting';
        const isAsBefore = canonicalJson(targetIn(rule, now)) === canonicalJson(target);
        if (differs.target && isAsBefore) await aws.putTarget(spec, rule, signal);
      },
    },
  ];
}

function isRuleRight(rule: Rule, present: ObservedRule | undefined): boolean {
  return present?.isEnabled === true && canonicalJson(jsonOf(present.pattern ?? '')) === canonicalJson(rule.pattern);
}

function targetIn(rule: Rule, { targets }: ObservedRule): Target | undefined {
  return targets.find(({ Id }) => Id === rule.target.Id);
}

/** Whether the target is as wanted, without additional settings that change what it gets or who sends it. Without a wanted dead-letter queue, any is right. */
function isTargetRight(wanted: Target, present: Target | undefined): boolean {
  const compared = present !== undefined && wanted.DeadLetterConfig === undefined ? omit(present, 'DeadLetterConfig') : present;
  return canonicalJson(compared) === canonicalJson(wanted);
}

/** Removes the bucket's rule, unless it has another owner or another owner's target. */
export function ruleRemoval({ spec, desired: { rule }, observed, tools: { aws } }: Look): Change | Kept | undefined {
  const present = existing(observed.rule);
  if (rule === undefined || present === undefined) return undefined;
  if (!isOwn(present.tags, spec)) return { name: rule.name, reason: `it ${ownerText(present.tags)}` };
  const targets = present.targets.filter(({ Id }) => Id !== rule.target.Id);
  // a rule without targets is the remainder of an interrupted removal
  if (targets.length > 0)
    return { name: rule.name, reason: `it has the target ${targets.map(({ Id }) => Id).join(', ')}, which Tally did not create` };
  return {
    part: 'rule',
    action: 'remove',
    name: rule.arn,
    touches: [],
    async make(signal) {
      const now = existing(await aws.ruleOf(spec, rule.name, signal));
      if (canonicalJson(now) === canonicalJson(present)) await aws.removeRule(spec, rule, signal);
    },
  };
}

/** Tally never turns the switch off, because other rules may need the bucket's events. */
export function keptSwitch({ spec: { bucket }, desired, observed: { notification } }: Look): Kept | undefined {
  if (desired.eventBridge !== true || !notification.ok || !notification.configuration.eventBridge) return undefined;
  return { name: `the EventBridge switch of ${bucket}`, reason: 'other rules may need it' };
}

/** Whether another owner's rule has the name of the bucket's rule. */
function isRuleForeign({ spec, observed }: Look): boolean {
  const present = existing(observed.rule);
  return present !== undefined && !isOwn(present.tags, spec);
}

export const ruleForeign: Check = (look) => {
  const { rule } = look.desired;
  if (rule === undefined || !isRuleForeign(look)) return undefined;
  return blocking(
    'connect.rule-foreign',
    `the rule ${rule.arn} ${ownerText(existing(look.observed.rule)?.tags)}`,
    'two installations share a name. Tally leaves the rule unchanged, because a change would take the events away from its owner',
    `aws events list-tags-for-resource --region ${look.spec.region} --resource-arn ${rule.arn}`,
  );
};

/** AWS's quota, which it raises on request. */
const RULES_MAX = 300;
/** From here on a plan says so. */
const RULES_NEAR = 280;

/** The plan's note about a bus that gets one more rule. */
export function busNote({ bucket, region }: ConnectionSpec, count: number): readonly Finding[] {
  if (count < RULES_NEAR) return [];
  return [
    note(
      'connect.rules-near-limit',
      `the default event bus in ${region} has ${count} rules, and ${bucket} needs one more`,
      `a bus can have ${RULES_MAX} rules unless AWS has raised the quota`,
      `aws service-quotas get-service-quota --region ${region} --service-code events --quota-code L-244521F2`,
    ),
  ];
}
