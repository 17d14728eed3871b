/**
 * Resource policies of topics and queues. A policy is one document that a write replaces as a whole and that others may have
 * written to: our statements are found by their ids, and everything else stays as it is. Below, the form in which documents of AWS
 * are compared.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';

const statementSchema = z.looseObject({ Sid: z.string().optional() });
export type Statement = z.infer<typeof statementSchema>;

const policySchema = z.looseObject({
  Version: z.string().optional(),
  // one statement may stand without a list
  Statement: z.union([z.array(statementSchema), statementSchema.transform((statement) => [statement])]),
});
export type Policy = z.infer<typeof policySchema>;

const EMPTY: Policy = { Version: '2012-10-17', Statement: [] };

/** Reads a policy; an absent one has no statements. Undefined if the text is no policy. */
export function parsePolicy(text: string | undefined): Policy | undefined {
  if (text === undefined || text === '') return EMPTY;
  try {
    return policySchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** The policy with these statements in place of those with the same ids. All other statements stay equal and in their order. */
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

/** Whether two lists of statements mean the same, in whatever order. */
export function sameStatements(a: readonly Statement[], b: readonly Statement[]): boolean {
  const [first, second] = [a, b].map((statements) => statements.map(canonicalStatement).sort());
  return JSON.stringify(first) === JSON.stringify(second);
}

/** A text that is equal for two statements if they mean the same: lists have no order, a list of one is its value, and actions have no case. */
export function canonicalStatement(statement: Statement): string {
  const { Action: action, ...rest } = statement;
  const actions = [action].flat().map((each) => (typeof each === 'string' ? each.toLowerCase() : each));
  return canonicalJson({ ...rest, ...(action !== undefined && { Action: actions }) });
}

const conditionsSchema = z.record(z.string(), z.record(z.string(), z.union([z.string(), z.array(z.string())])));

/** The values of a condition key of a statement, under one operator. */
export function conditionValues(statement: Statement | undefined, operator: string, key: string): readonly string[] {
  const conditions = conditionsSchema.safeParse(statement?.['Condition']);
  return conditions.success ? [conditions.data[operator]?.[key] ?? []].flat() : [];
}

/** The services that a statement admits. */
export function servicesIn(statement: Statement | undefined): readonly string[] {
  const principal: unknown = statement?.['Principal'];
  if (typeof principal !== 'object' || principal === null || !('Service' in principal)) return [];
  return [principal.Service].flat().filter((name) => typeof name === 'string');
}

/** SNS's own names of regions: the only ones that a statement of ours may have gained. */
export function regionsOfSns(statement: Statement | undefined): readonly string[] {
  return servicesIn(statement).filter((name) => /^sns\.[a-z0-9-]+\.amazonaws\.com$/.test(name));
}

/** Lists count as sets, and a list of one as its value, as in policies and event patterns; the names of objects are sorted. */
export function canonicalJson(value: unknown): string {
  // as JSON has it in lists: nothing is null
  return JSON.stringify(canonical(value)) ?? 'null';
}

/** The SHA-256 of a document, in hex digits. */
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
