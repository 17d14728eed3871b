/** Checks of the EventBridge rule. */
import { hasLetters, isInputRight, isTargetRight, ownRule, samePattern, type Facts } from '../facts.ts';
import type { Wish } from '../wiring.ts';
import { healable, type Check, type Finding } from './finding.ts';

export const ruleMissing: Check = (facts) => {
  const { observed, wiring } = facts;
  if (observed.rule !== 'absent' || wiring.rule === undefined) return undefined;
  return healable(facts, 'connect.rule-missing', `there is no rule ${wiring.rule.name}`, 'no event of the bucket reaches the queue');
};

export const ruleDisabled: Check = (facts) => {
  const rule = ownRule(facts);
  if (rule === undefined || rule.isEnabled || facts.wiring.rule === undefined) return undefined;
  return healable(
    facts,
    'connect.rule-disabled',
    `the rule ${facts.wiring.rule.name} is disabled`,
    'no event of the bucket reaches the queue',
  );
};

export const rulePattern: Check = (facts) => {
  const rule = ownRule(facts);
  if (rule === undefined || facts.wiring.rule === undefined || samePattern(facts.wiring.rule, rule.pattern)) return undefined;
  return healable(
    facts,
    'connect.rule-pattern',
    `the pattern of the rule ${facts.wiring.rule.name} was changed: ${rule.pattern ?? 'none'}`,
    `it must be ${JSON.stringify(facts.wiring.rule.pattern)}`,
  );
};

export const ruleTarget: Check = (facts) => {
  const target = targetOf(facts);
  if (target === undefined || (target.is !== undefined && target.is.arn === target.should.arn && target.is.roleArn === undefined))
    return undefined;
  const what =
    target.is === undefined
      ? `the rule ${target.rule} has no target ${target.should.id}`
      : `the target ${target.should.id} of the rule ${target.rule} is ${target.is.arn}${target.is.roleArn === undefined ? '' : ` with the role ${target.is.roleArn}`}`;
  return healable(facts, 'connect.rule-target', what, `events must go to ${target.should.arn}, without a role`);
};

export const ruleTransformer: Check = (facts) => {
  const target = targetOf(facts);
  if (target?.is === undefined || isInputRight(target.should, target.is)) return undefined;
  return healable(
    facts,
    'connect.rule-transformer',
    `the input of the target of the rule ${target.rule} is not what it must be: its transformer is missing or was changed, or it has a path or a constant`,
    'records arrive in a form that lacks something, or that EventBridge drops',
  );
};

export const targetDeadLetters: Check = (facts) => {
  const target = targetOf(facts);
  if (target?.is === undefined || target.is.arn !== target.should.arn || hasLetters(target.should, target.is)) return undefined;
  return {
    ...healable(
      facts,
      'connect.target-dead-letters',
      `the target ${target.should.id} of the rule ${target.rule} has not the dead-letter queue ${target.should.deadLetterArn ?? ''}`,
      'what EventBridge cannot deliver is lost',
    ),
    severity: 'degraded',
  };
};

function targetOf(facts: Facts) {
  const { rule } = facts.wiring;
  const present = ownRule(facts);
  if (rule === undefined || present === undefined) return undefined;
  const is = present.targets.find(({ id }) => id === rule.target.id);
  return is !== undefined && isTargetRight(rule.target, is) ? undefined : { rule: rule.name, is, should: rule.target };
}

/** AWS's quota, which it raises on request. */
const RULES_MAX = 300;
/** From here on a plan says so. */
const RULES_NEAR = 280;

/** What a plan says of a bus that is to get one more rule. */
export function busNote({ bucket, region }: Wish, count: number): readonly Finding[] {
  if (count < RULES_NEAR) return [];
  return [
    {
      code: 'connect.rules-near-limit',
      severity: 'note',
      what: `the default event bus of ${region} has ${count} rules, and ${bucket} needs one more`,
      why: `a bus has ${RULES_MAX} rules unless AWS has raised the quota`,
      fix: `aws service-quotas get-service-quota --region ${region} --service-code events --quota-code L-244521F2`,
      blocks: false,
    },
  ];
}
