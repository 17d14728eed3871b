/** Checks of the EventBridge rule. */
import { hasLetters, isInputRight, isTargetRight, ownRule, samePattern, type Facts } from '../facts.ts';
import { degraded, healable, type Check, blocking, unchecked, type Finding } from './finding.ts';
import { isKnownInput, judgePattern, neededEvents } from '../hand-made-rule.ts';
import { specifiedTransformer } from '../wiring.ts';

export const ruleMissing: Check = (facts) => {
  const { observed, wiring } = facts;
  if (observed.rule !== 'absent' || wiring.rule === undefined || observed.handMadeRule !== undefined) return undefined;
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

/** Checks of a rule that a person made for the bucket. Tally writes to no such rule, so what is wrong with it blocks an apply. */

export const handMadeDisabled: Check = ({ wish, observed: { handMadeRule: rule } }) => {
  if (rule === undefined || rule.isEnabled) return undefined;
  return blocking(
    'connect.rule-disabled',
    `the rule ${rule.name}, which a person made for ${wish.bucket}, is disabled`,
    'no event of the bucket reaches the queue',
    `aws events enable-rule --region ${wish.region} --name ${rule.name}`,
  );
};

export const handMadePattern: Check = ({ wish, wiring, observed: { handMadeRule: rule } }) => {
  if (rule === undefined) return undefined;
  const needed = neededEvents(wish, wiring);
  const { missing, unknown } = judgePattern(needed, rule.pattern);
  const fix = `let these events pass the pattern of the rule ${rule.name}, or delete the rule and let an apply make one: ${JSON.stringify(needed)}`;
  if (missing.length > 0) {
    const why = 'changes without an event are not indexed. Tally does not change the rules of others';
    return blocking(
      'connect.rule-pattern',
      `the rule ${rule.name}, which a person made for ${wish.bucket}, lets ${missing.join(', ')} not pass`,
      why,
      fix,
    );
  }
  if (unknown.length === 0) return undefined;
  const what = `the rule ${rule.name}, which a person made for ${wish.bucket}, has conditions that cannot be judged here: ${unknown.join(', ')}`;
  return open(unchecked('connect.rule-unchecked', what, 'whether all events of the bucket pass is not known', fix));
};

export const handMadeInput: Check = ({ wish, wiring, observed: { handMadeRule: rule } }) => {
  if (rule === undefined) return undefined;
  const { target, name } = rule;
  if (target.hasOtherInput === true) {
    return blocking(
      'connect.rule-transformer',
      `the target ${target.id} of the rule ${name}, which a person made for ${wish.bucket}, sends a constant or a part of the event`,
      'Tally cannot read which object was changed',
      inputFix(name, target.id, wiring),
    );
  }
  const isKnown = wiring.rule?.target.transformer === undefined ? target.transformer === undefined : isKnownInput(target);
  if (isKnown) return undefined;
  const what = `the input transformer of the target ${target.id} of the rule ${name}, which a person made for ${wish.bucket}, is none that Tally knows`;
  return open(
    unchecked('connect.rule-transformer', what, 'whether Tally can read what arrives is not known', inputFix(name, target.id, wiring)),
  );
};

export const handMadeLetters: Check = ({ wish, observed: { handMadeRule: rule } }) => {
  if (rule === undefined || rule.target.deadLetterArn !== undefined) return undefined;
  return degraded(
    'connect.target-dead-letters',
    `the target ${rule.target.id} of the rule ${rule.name}, which a person made for ${wish.bucket}, has no dead-letter queue`,
    'what EventBridge cannot deliver is lost',
    `give the target ${rule.target.id} of the rule ${rule.name} a dead-letter queue whose policy admits the rule${wish.deadLetterArn === undefined ? '' : `, for example ${wish.deadLetterArn}`}`,
  );
};

/** A write would replace the whole target, with settings that are not read here: so no command is given. */
function inputFix(rule: string, target: string, { rule: wanted }: Facts['wiring']): string {
  if (wanted?.target.transformer === undefined)
    return `let the target ${target} of the rule ${rule} send the matched event, without a transformer`;
  const { paths, template } = specifiedTransformer;
  return `give the target ${target} of the rule ${rule} this input transformer, or none: ${JSON.stringify({ InputPathsMap: paths, InputTemplate: template })}`;
}

/** What cannot be judged keeps no one from an apply. */
function open(finding: Finding): Finding {
  return { ...finding, blocks: false };
}
