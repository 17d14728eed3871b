/** Checks of the EventBridge rule. */
import { hasLetters, isInputRight, isTargetRight, ownRule, samePattern, type Facts } from '../facts.ts';
import { isPlaced } from '../shared-rule.ts';
import { healable, type Check } from './finding.ts';

export const ruleMissing: Check = (facts) => {
  const { observed, wiring, wish } = facts;
  const { rule, handMadeRule, formerRules: [former] = [] } = observed;
  if (rule === undefined || wiring.rule === undefined || handMadeRule !== undefined || isPlaced(wish, observed)) return undefined;
  if (former !== undefined) {
    const what = `${wish.bucket} is named by the rule ${former.name}, and must be by ${wiring.rule.name}`;
    return healable(facts, 'connect.rule-pattern', what, 'its events are selected and sent in the way that it needed before');
  }
  const what = rule === 'absent' ? `there is no rule ${wiring.rule.name}` : `the rule ${wiring.rule.name} does not name ${wish.bucket}`;
  return healable(facts, 'connect.rule-missing', what, 'no event of the bucket reaches the queue');
};

export const ruleDisabled: Check = (facts) => {
  const rule = placedRule(facts);
  if (rule === undefined || rule.isEnabled || facts.wiring.rule === undefined) return undefined;
  return healable(
    facts,
    'connect.rule-disabled',
    `the rule ${facts.wiring.rule.name} is disabled`,
    'no event of the bucket reaches the queue',
  );
};

export const rulePattern: Check = (facts) => {
  const rule = placedRule(facts);
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

/** The rule, if it is this registry's and names the bucket: what is wrong with one that does not is no matter of the bucket. */
function placedRule(facts: Facts): ReturnType<typeof ownRule> {
  return isPlaced(facts.wish, facts.observed) ? ownRule(facts) : undefined;
}

function targetOf(facts: Facts) {
  const { rule } = facts.wiring;
  const present = placedRule(facts);
  if (rule === undefined || present === undefined) return undefined;
  const is = present.targets.find(({ id }) => id === rule.target.id);
  return is !== undefined && isTargetRight(rule.target, is) ? undefined : { rule: rule.name, is, should: rule.target };
}
