/**
 * Rules of EventBridge that serve many buckets, because a bus has 300. Buckets whose events need the same treatment (source,
 * detail types, target with its transformer) are named in the pattern of one rule, as long as it has room.
 * The pattern itself is the list of its buckets: a bucket is added and taken out by one PutRule, before and after which the rule
 * matches the events of all others.
 */
import { z } from 'zod';
import { fingerprintOf } from './canonical.ts';
import { jsonOf } from '../json.ts';
import { samePattern } from './facts.ts';
import { prefixOf } from './names.ts';
import type { Observed, ObservedRule } from './observed.ts';
import { wiringOf, type Rule, type Wiring, type Wish } from './wiring.ts';

/** A quota of AWS, in characters: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html */
const PATTERN_MAX = 2_048;
/** The part of the hash that stands in names: 32 bits, for the few shapes of one registry. */
const HASH_LENGTH = 8;
/** As many as a bus has rules. */
const SHARED_RULES_MAX = 300;

/** A rule as a list of rules names it. */
export interface ListedRule {
  readonly name: string;
  readonly pattern?: string;
}

/** A shared rule with its buckets. */
export interface SharedRule {
  readonly name: string;
  readonly buckets: readonly string[];
}

/** Where the names of buckets stand in the pattern of a source's rules. */
function pathOf({ source }: Pick<Wish, 'source'>): readonly string[] {
  return source === 'routed' ? ['detail', 'requestParameters', 'bucketName'] : ['detail', 'bucket', 'name'];
}

const fieldsSchema = z.record(z.string(), z.unknown());
const namesSchema = z.array(z.string()).min(1);

/** The buckets that a pattern names. Undefined: it has another form, and is not ours to write. */
export function bucketsIn(wish: Pick<Wish, 'source'>, pattern: string | undefined): readonly string[] | undefined {
  const found = pathOf(wish).reduce<unknown>((value, field) => fieldsSchema.safeParse(value).data?.[field], jsonOf(pattern ?? ''));
  return namesSchema.safeParse(found).data;
}

/** The pattern with other names of buckets. */
function withBuckets(wish: Pick<Wish, 'source'>, pattern: unknown, buckets: readonly string[]): object {
  const replaced = (value: unknown, [field, ...rest]: readonly string[]): unknown => {
    if (field === undefined) return [...new Set(buckets)].sort();
    const fields = fieldsSchema.parse(value ?? {});
    return { ...fields, [field]: replaced(fields[field], rest) };
  };
  return fieldsSchema.parse(replaced(pattern, pathOf(wish)));
}

/** The beginning of the names of all shared rules for the source of the wish. */
export function sharedPrefixOf({ installation, source }: Pick<Wish, 'installation' | 'source'>): string {
  return `${prefixOf(installation)}-${source}-`;
}

/** The beginning of the names of the shared rules that treat events as the wish needs it. */
function shapePrefixOf(wish: Wish, { pattern, target }: Rule): string {
  // any dead-letter queue is right where none is known, and all buckets of a queue have the same one
  const { deadLetterArn: _, ...treatment } = target;
  const shape = fingerprintOf({ pattern: withBuckets(wish, pattern, []), target: treatment });
  return `${sharedPrefixOf(wish)}${shape.slice(0, HASH_LENGTH)}-`;
}

/** The rules of a list that are shared ones: those of one bucket end in a longer part. */
export function sharedRulesIn<Listed extends ListedRule>(wish: Wish, rules: readonly Listed[]): readonly Listed[] {
  const rest = new RegExp(`^[0-9a-f]{${HASH_LENGTH}}-[1-9][0-9]{0,2}$`);
  const prefix = sharedPrefixOf(wish);
  return rules.filter(({ name }) => name.startsWith(prefix) && rest.test(name.slice(prefix.length)));
}

interface Candidates {
  /** The shared rule that names the bucket and treats its events as the wish needs it. */
  readonly holding?: string;
  /** Shared rules that name the bucket for another treatment, which it had before. */
  readonly former: readonly string[];
  /** The shared rules that the bucket may be named in, in the order of their numbers; the last one is new. */
  readonly open: readonly string[];
}

/** Which shared rules concern the bucket. */
export function candidatesOf(wish: Wish, own: Rule, shared: readonly SharedRule[]): Candidates {
  const prefix = shapePrefixOf(wish, own);
  const fitting = shared.filter(({ name }) => name.startsWith(prefix));
  const holding = fitting.find(({ buckets }) => buckets.includes(wish.bucket))?.name;
  const taken = new Set(fitting.map(({ name }) => name));
  const numbers = Array.from({ length: SHARED_RULES_MAX }, (_, index) => `${prefix}${index + 1}`);
  return {
    ...(holding !== undefined && { holding }),
    former: shared.filter(({ name, buckets }) => name !== holding && buckets.includes(wish.bucket)).map(({ name }) => name),
    open: [
      ...fitting.filter(({ buckets }) => hasRoom(wish, own, buckets)).map(({ name }) => name),
      ...numbers.filter((name) => !taken.has(name)).slice(0, 1),
    ].sort(byNumber),
  };
}

function byNumber(a: string, b: string): number {
  return a.length - b.length || (a < b ? -1 : 1);
}

/** Whether the bucket can be named beside these in one rule. */
export function hasRoom(wish: Wish, own: Rule, buckets: readonly string[]): boolean {
  return JSON.stringify(withBuckets(wish, own.pattern, [...buckets, wish.bucket])).length <= PATTERN_MAX;
}

/** The wiring with the rule that the bucket has, or is to have: a shared one, or its own where it has one already. */
export function placedWiring(wish: Wish, { sharedRule }: Pick<Observed, 'sharedRule'>): Wiring {
  const wiring = wiringOf(wish);
  const { rule: own } = wiring;
  if (own === undefined || sharedRule === undefined) return wiring;
  return { ...wiring, rule: sharedRuleOf(wish, own, { ...sharedRule, buckets: [...sharedRule.buckets, wish.bucket] }) };
}

function sharedRuleOf(wish: Wish, own: Rule, { name, buckets }: SharedRule): Rule {
  const arn = `${own.arn.slice(0, -own.name.length)}${name}`;
  return { ...own, name, arn, pattern: withBuckets(wish, own.pattern, buckets) };
}

/** Whether the rule that was found is there for the bucket: a shared one has others as well. */
export function isPlaced({ bucket }: Pick<Wish, 'bucket'>, { sharedRule, rule }: Pick<Observed, 'sharedRule' | 'rule'>): boolean {
  if (rule === undefined || rule === 'absent') return false;
  return sharedRule === undefined || sharedRule.buckets.includes(bucket);
}

/** Whether a rule does what it must for the buckets that its pattern names, of which there may be too few. */
export function isOnlyShort(wish: Pick<Wish, 'source'>, rule: Rule, present: ObservedRule | undefined): boolean {
  const buckets = bucketsIn(wish, present?.pattern);
  if (present === undefined || buckets === undefined) return false;
  return present.isEnabled && samePattern({ ...rule, pattern: withBuckets(wish, rule.pattern, buckets) }, present.pattern);
}

/** A shared rule without the bucket, otherwise as it was found: `last` if it has no other one, `unknown` if its pattern has another form. */
export function ruleWithout(wish: Wish, rule: Rule, present: ObservedRule): Rule | 'last' | 'unknown' {
  const buckets = bucketsIn(wish, present.pattern);
  if (buckets === undefined) return 'unknown';
  const others = buckets.filter((name) => name !== wish.bucket);
  if (others.length === 0) return 'last';
  return { ...rule, pattern: withBuckets(wish, jsonOf(present.pattern ?? ''), others), ...(!present.isEnabled && { isDisabled: true }) };
}

/** A shared rule that has the bucket for another treatment: as it was found, because its wish is not known. */
export function formerRuleOf(wish: Wish, name: string, { pattern, targets }: ObservedRule): Rule | undefined {
  const { rule: own } = wiringOf(wish);
  const [target] = targets;
  if (own === undefined) return undefined;
  const { arn } = sharedRuleOf(wish, own, { name, buckets: [wish.bucket] });
  return { name, arn, pattern: fieldsSchema.parse(jsonOf(pattern ?? '{}')), target: { ...own.target, ...target, id: own.target.id } };
}
