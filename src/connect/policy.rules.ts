/**
 * Topics' and queues' resource policies. Each is one document that every write replaces and that others may also write: Tally finds its
 * own statements by their ids, and leaves all others unchanged. Below: the canonical form in which documents of AWS are compared.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { FaultError } from '../base/fault.ts';
import { jsonOf } from '../base/json.ts';

const statementSchema = z.looseObject({ Sid: z.string().optional() });
export type Statement = z.infer<typeof statementSchema>;

const policySchema = z.looseObject({
  Version: z.string().optional(),
  // one statement may stand without a list
  Statement: z.union([z.array(statementSchema), statementSchema.transform((statement) => [statement])]),
});
export type Policy = z.infer<typeof policySchema>;

const EMPTY: Policy = { Version: '2012-10-17', Statement: [] };
const SHOWN_MAX = 200;

/** Reads a policy; an absent one has no statements. Throws `connect.unavailable` for anything else, which a write would destroy. */
export function parsePolicy(text: string | undefined): Policy {
  if (text === undefined || text === '') return EMPTY;
  const { data } = policySchema.safeParse(jsonOf(text));
  if (data === undefined)
    throw new FaultError('connect.unavailable', `AWS returned a policy that Tally cannot read: ${text.slice(0, SHOWN_MAX)}`);
  return data;
}

/** The policy with these statements, which replace those with the same ids. All other statements keep their content and order. */
export function withStatements(policy: Policy, statements: readonly Statement[]): Policy {
  const ours = new Map(statements.map((statement) => [statement.Sid, statement]));
  const kept = policy.Statement.map((statement) => ours.get(statement.Sid) ?? statement);
  const present = new Set(policy.Statement.map(({ Sid }) => Sid));
  return { ...policy, Statement: [...kept, ...statements.filter(({ Sid }) => !present.has(Sid))] };
}

/** The policy without the statements that have one of these ids. */
export function withoutStatements(policy: Policy, sids: ReadonlySet<string>): Policy {
  return { ...policy, Statement: policy.Statement.filter(({ Sid }) => Sid === undefined || !sids.has(Sid)) };
}

/** The statements that have none of these ids. */
export function foreignStatements({ Statement }: Policy, sids: ReadonlySet<string>): readonly Statement[] {
  return Statement.filter(({ Sid }) => Sid === undefined || !sids.has(Sid));
}

/** Whether two lists of statements mean the same, in any order. */
export function sameStatements(a: readonly Statement[], b: readonly Statement[]): boolean {
  const [first, second] = [a, b].map((statements) => statements.map(canonicalStatement).sort());
  return JSON.stringify(first) === JSON.stringify(second);
}

/** A text that is equal for two statements with the same meaning: lists have no order, a list of one equals its value, and actions have no case. */
export function canonicalStatement(statement: Statement): string {
  const { Action: action, ...rest } = statement;
  const actions = [action].flat().map((each) => (typeof each === 'string' ? each.toLowerCase() : each));
  return canonicalJson({ ...rest, ...(action !== undefined && { Action: actions }) });
}

const conditionsSchema = z.record(z.string(), z.record(z.string(), z.union([z.string(), z.array(z.string())])));

/** A condition key's values under one operator of a statement. */
export function conditionValues(statement: Statement | undefined, operator: string, key: string): readonly string[] {
  const conditions = conditionsSchema.safeParse(statement?.['Condition']);
  return conditions.success ? [conditions.data[operator]?.[key] ?? []].flat() : [];
}

/** The services in a statement's principal. */
export function servicesIn(statement: Statement | undefined): readonly string[] {
  const principal: unknown = statement?.['Principal'];
  if (typeof principal !== 'object' || principal === null || !('Service' in principal)) return [];
  return [principal.Service].flat().filter((name) => typeof name === 'string');
}

/** SNS's names of regions: the only services that a setup may have added to Tally's statement. */
export function regionsOfSns(statement: Statement | undefined): readonly string[] {
  return servicesIn(statement).filter((name) => /^sns\.[a-z0-9-]+\.amazonaws\.com$/.test(name));
}

/** JSON in which lists are sets, a list of one is its value, as in policies and event patterns, and objects' names are sorted. */
export function canonicalJson(value: unknown): string {
  // undefined becomes null, as JSON has it in lists
  return JSON.stringify(canonical(value)) ?? 'null';
}

/** A document's SHA-256 in hex digits. */
export function fingerprintOf(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex');
}

function canonical(value: unknown): unknown {
  if (Array.isArray(value)) {
    const items = value.map((item) => canonicalJson(item)).sort();
    const [only] = items;
    const texts = [...new Set(items)];
    return texts.length === 1 && only !== undefined ? parsed(only) : texts.map(parsed);
  }
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, each]) => [name, canonical(each)]));
}

function parsed(text: string): unknown {
  return JSON.parse(text);
}
