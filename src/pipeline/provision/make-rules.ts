/** Makes rules of EventBridge and their targets, and takes buckets out of them. */
import { canonicalJson } from '../../domain/provisioning/canonical.ts';
import { existing } from '../../domain/provisioning/facts.ts';
import { isOwn, tagsOf } from '../../domain/provisioning/names.ts';
import type { ObservedRule, ObservedTarget } from '../../domain/provisioning/observed.ts';
import type { RuleExit } from '../../domain/provisioning/removal.ts';
import { partsPlace, wiringOf, type Rule, type Wish } from '../../domain/provisioning/wiring.ts';
import type { Provisioner } from '../ports/provision.ts';

interface SeenRule {
  readonly rule: Rule;
  /** As the plan has seen it. Absent: it was not there. */
  readonly before?: ObservedRule;
}

/** Creates the functions. Each writes only if what it is about is still as the plan has seen it, and this registry's: the caller plans again. */
export function createMakeRules(aws: Provisioner) {
  async function isAsSeen(wish: Wish, { rule, before }: SeenRule, signal?: AbortSignal): Promise<boolean> {
    const present = existing(await aws.ruleOf(partsPlace(wish), rule.name, signal));
    return canonicalJson(present) === canonicalJson(before) && (present === undefined || isOwn(present.tags, wish));
  }

  async function put(wish: Wish, seen: SeenRule, signal?: AbortSignal): Promise<void> {
    if (!(await isAsSeen(wish, seen, signal))) return;
    const isShared = seen.rule.name !== wiringOf(wish).rule?.name;
    await aws.putRule(partsPlace(wish), seen.rule, isShared ? tagsOf(wish) : tagsOf(wish, wish.bucket), signal);
  }

  return {
    put,
    async putTarget(
      wish: Wish,
      { rule, before }: { readonly rule: Rule; readonly before?: ObservedTarget },
      signal?: AbortSignal,
    ): Promise<void> {
      const present = existing(await aws.ruleOf(partsPlace(wish), rule.name, signal));
      if (present === undefined || !isOwn(present.tags, wish)) return;
      const target = present.targets.find(({ id }) => id === rule.target.id);
      if (canonicalJson(target) === canonicalJson(before)) await aws.putTarget(partsPlace(wish), rule, signal);
    },
    /** Takes the bucket out of the rule, or the rule away with it. */
    async leave(wish: Wish, { rule, before, rest }: RuleExit, signal?: AbortSignal): Promise<void> {
      if (rest !== undefined) return put(wish, { rule: rest, before }, signal);
      if (await isAsSeen(wish, { rule, before }, signal)) await aws.removeRule(partsPlace(wish), rule, signal);
    },
  };
}
