/**
 * What policies say of a delivery. An explicit Deny wins over every Allow, so Tally's own statement does not help against one of
 * others. Only what certainly applies is reported: a condition on a key that is not known here leaves it open.
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
 */
import { z } from 'zod';
import { foreignStatements, type Policy, type Statement } from './policy.ts';

/** A request of a service, as the policy of what it sends to sees it. */
export interface Delivery {
  /** `sns.amazonaws.com` */
  readonly service: string;
  /** `sqs:SendMessage` */
  readonly action: string;
  /** The ARN of the queue or topic. */
  readonly resource: string;
  /** The ARN that it sends for, and the account of that, as far as the service names them. */
  readonly sourceArn?: string;
  readonly sourceAccount?: string;
}

/** The statements, without those with these ids, that deny the delivery. */
export function denialsOf(policy: Policy, delivery: Delivery, ours: ReadonlySet<string>): readonly Statement[] {
  return foreignStatements(policy, ours).filter((statement) => denies(statement, delivery));
}

/** Whether a policy lets the delivery through; `unknown` where that depends on a condition that is not known here. */
export function admits(policy: Policy, delivery: Delivery): 'admitted' | 'refused' | 'unknown' {
  const concerned = policy.Statement.filter((statement) => concerns(statement, delivery));
  const isCertain = ({ Condition }: Statement): boolean => holds(Condition, delivery);
  const allowing = concerned.filter(({ Effect }) => Effect === 'Allow');
  if (allowing.length === 0 || concerned.some((statement) => statement['Effect'] === 'Deny' && isCertain(statement))) return 'refused';
  return allowing.some(isCertain) ? 'admitted' : 'unknown';
}

function denies(statement: Statement, delivery: Delivery): boolean {
  return statement['Effect'] === 'Deny' && concerns(statement, delivery) && holds(statement['Condition'], delivery);
}

/** Whether the statement is about the delivery, whatever its conditions. */
function concerns(statement: Statement, { service, action, resource }: Delivery): boolean {
  const { Principal, NotPrincipal, Action, NotAction, Resource, NotResource } = statement;
  const isAbout = (wanted: unknown, unwanted: unknown, matches: (value: unknown) => boolean): boolean =>
    wanted === undefined ? unwanted !== undefined && !matches(unwanted) : matches(wanted);
  return (
    isAbout(Principal, NotPrincipal, (value) => isPrincipal(value, service)) &&
    isAbout(Action, NotAction, (value) => textsOf(value).some((pattern) => isLike(pattern.toLowerCase(), action.toLowerCase()))) &&
    isAbout(Resource, NotResource, (value) => textsOf(value).some((pattern) => isLike(pattern, resource)))
  );
}

/** `*` and `{"AWS": "*"}` are everyone, services included. */
function isPrincipal(principal: unknown, service: string): boolean {
  if (principal === '*') return true;
  const named = z.record(z.string(), z.unknown()).safeParse(principal);
  if (!named.success) return false;
  const { AWS, Service } = named.data;
  return textsOf(AWS).includes('*') || textsOf(Service).some((name) => name === '*' || name === service);
}

const conditionSchema = z.record(z.string(), z.record(z.string(), z.unknown()));

/** Whether all conditions hold certainly. */
function holds(condition: unknown, delivery: Delivery): boolean {
  if (condition === undefined) return true;
  const parsed = conditionSchema.safeParse(condition);
  if (!parsed.success) return false;
  return Object.entries(parsed.data).every(([operator, keys]) =>
    Object.entries(keys).every(([key, values]) => isMet(operator, textsOf(values), contextOf(delivery, key.toLowerCase()))),
  );
}

/** A value of the request, `absent` where the request of a service never has this key, undefined where that is not known. */
type ContextValue = { readonly value: string } | 'absent' | undefined;

/** Services are members of no organisation, and send from no network of the user. */
const ABSENT = new Set(['aws:principalorgid', 'aws:principalorgpaths', 'aws:sourcevpc', 'aws:sourcevpce']);

function contextOf({ service, sourceArn, sourceAccount }: Delivery, key: string): ContextValue {
  const known: Readonly<Record<string, string | undefined>> = {
    'aws:sourcearn': sourceArn,
    'aws:sourceaccount': sourceAccount,
    'aws:securetransport': 'true',
    'aws:principalisawsservice': 'true',
    'aws:principalservicename': service,
  };
  const value = known[key];
  if (value !== undefined) return { value };
  return ABSENT.has(key) ? 'absent' : undefined;
}

/** The operators by what they compare with, without a leading `Not` and `IfExists`. An operator that is not here is not known. */
const COMPARISONS: ReadonlyMap<string, (pattern: string, value: string) => boolean> = new Map([
  ['StringEquals', (pattern: string, value: string) => pattern === value],
  ['StringEqualsIgnoreCase', (pattern: string, value: string) => pattern.toLowerCase() === value.toLowerCase()],
  ['StringLike', (pattern: string, value: string) => isLike(pattern, value)],
  ['ArnEquals', (pattern: string, value: string) => isArnLike(pattern, value)],
  ['ArnLike', (pattern: string, value: string) => isArnLike(pattern, value)],
  ['Bool', (pattern: string, value: string) => pattern.toLowerCase() === value],
]);

/** Whether one condition holds certainly. A negated operator holds if the key is absent, any other one does not. */
function isMet(operator: string, values: readonly string[], context: ContextValue): boolean {
  const [, name = '', ifExists] = /^(.*?)(IfExists)?$/.exec(operator) ?? [];
  const plain = name.replace(/^(String|Arn)Not/, '$1');
  const isNegated = plain !== name;
  if (context === undefined) return false;
  if (name === 'Null') return values.every((value) => value.toLowerCase() === String(context === 'absent'));
  const compare = COMPARISONS.get(plain);
  if (compare === undefined) return false;
  if (context === 'absent') return isNegated || ifExists !== undefined;
  // a variable of a policy is not known here, so nothing is certain
  if (values.some((value) => value.includes('${'))) return false;
  return values.some((value) => compare(value, context.value)) !== isNegated;
}

/** The texts of a value that stands alone or in a list. */
function textsOf(value: unknown): readonly string[] {
  return [value].flat().flatMap((each) => (typeof each === 'string' ? [each] : typeof each === 'boolean' ? [String(each)] : []));
}

/**
 * `*` is any text, `?` any character. Of several stars only the last one that was passed is tried with a longer text, so that
 * a pattern of others takes at most the product of both lengths.
 */
function isLike(pattern: string, value: string): boolean {
  let [at, star, tried] = [0, -1, 0];
  for (let index = 0; index < value.length;) {
    if (pattern[at] === '*') {
      [star, tried] = [at, index];
      at += 1;
    } else if (at < pattern.length && (pattern[at] === '?' || pattern[at] === value[index])) {
      at += 1;
      index += 1;
    } else if (star >= 0) {
      tried += 1;
      [at, index] = [star + 1, tried];
    } else {
      return false;
    }
  }
  return /^\**$/.test(pattern.slice(at));
}

/** Each of the six parts of an ARN separately: a star does not reach over a colon, except in the last one. */
function isArnLike(pattern: string, value: string): boolean {
  const [wanted, actual] = [pattern, value].map((arn) => {
    const parts = arn.split(':');
    return [...parts.slice(0, 5), parts.slice(5).join(':')];
  });
  return wanted !== undefined && actual !== undefined && wanted.every((part, index) => isLike(part, actual[index] ?? ''));
}
