/**
 * Checks of whose a part is. Names follow from TALLY_INSTALLATION, which a copied file of settings gives to a second registry.
 * A part with our name and without our tag is left as it is, with everything that hangs on it.
 */
import { existing, isRuleForeign, isTopicForeign } from '../facts.ts';
import { ownerText, shortRegistry, type Tags } from '../names.ts';
import type { Wish } from '../wiring.ts';
import { blocking, type Check, type Finding } from './finding.ts';

export const topicForeign: Check = (facts) => {
  const { topic } = facts.wiring;
  if (topic === undefined || !isTopicForeign(facts)) return undefined;
  return foreign(facts.wish, 'connect.topic-foreign', `the topic ${topic.arn}`, existing(facts.observed.topic)?.tags);
};

export const ruleForeign: Check = (facts) => {
  const { rule } = facts.wiring;
  if (rule === undefined || !isRuleForeign(facts)) return undefined;
  return foreign(facts.wish, 'connect.rule-foreign', `the rule ${rule.arn}`, existing(facts.observed.rule)?.tags);
};

function foreign(wish: Wish, code: string, what: string, tags: Tags | undefined): Finding {
  const { installation, registry } = wish;
  return blocking(
    code,
    `${what} ${ownerText(tags)}. By its name, from TALLY_INSTALLATION=${installation}, it would be that of this registry, ${registry}`,
    'it is left as it is, because a change would take the events away from its owner. Give this registry a name that no other one has, and plan again. If only the store of the owner was lost, restore it from its backup instead',
    `TALLY_INSTALLATION=${shortRegistry(wish)}`,
  );
}
