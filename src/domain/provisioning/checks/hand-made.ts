/** Checks of a rule that a person made for the bucket. Tally writes to no such rule, so what is wrong with it blocks an apply. */
import type { Facts } from '../facts.ts';
import { isKnownInput, judgePattern, neededEvents } from '../hand-made-rule.ts';
import { minimalTransformer } from '../transformer.ts';
import { blocking, unchecked, type Check, type Finding } from './finding.ts';

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
  return {
    code: 'connect.target-dead-letters',
    severity: 'degraded',
    what: `the target ${rule.target.id} of the rule ${rule.name}, which a person made for ${wish.bucket}, has no dead-letter queue`,
    why: 'what EventBridge cannot deliver is lost',
    fix: `give the target ${rule.target.id} of the rule ${rule.name} a dead-letter queue whose policy admits the rule${wish.deadLetterArn === undefined ? '' : `, for example ${wish.deadLetterArn}`}`,
    blocks: false,
  };
};

/** A write would replace the whole target, with settings that are not read here: so no command is given. */
function inputFix(rule: string, target: string, { rule: wanted }: Facts['wiring']): string {
  if (wanted?.target.transformer === undefined)
    return `let the target ${target} of the rule ${rule} send the matched event, without a transformer`;
  const { paths, template } = minimalTransformer;
  return `give the target ${target} of the rule ${rule} this input transformer, or none: ${JSON.stringify({ InputPathsMap: paths, InputTemplate: template })}`;
}

/** What cannot be judged keeps no one from an apply. */
function open(finding: Finding): Finding {
  return { ...finding, blocks: false };
}
