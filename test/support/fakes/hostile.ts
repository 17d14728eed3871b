/** Answers in which every text that someone else may have chosen is an attack. */
import type { AnyOperation, CheckedOperations } from '../../../src/registry/contract/contract.ts';

/** Markup, an address that runs a script, a word wider than a telephone, a turned direction, a control character, and two lines. */
export const HOSTILE = `"><img src=x onerror=alert(1)><script>alert(2)</script>javascript:alert(3)${'W'.repeat(80)}\u202egpj\u001b[2J\n'{{3}}`;

/** Fields whose values are Tally's own, or AWS's: from a closed list, made by Tally, or checked. */
const closed: ReadonlySet<string> = new Set(
  `state status kind source mode phase role role_source outcome eventname severity action part code enrich type region fault id job_id
  request_id next token scopes fingerprint date sourceipaddress installation account bucket_account secret sort order by
  cursor day readers`.split(/\s+/),
);
const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

/** `isListed`: inside of a list. Names of buckets are checked, but lists show those that messages name. */
function attacked(name: string, value: unknown, isListed: boolean): unknown {
  if (typeof value === 'string') {
    const isOwn = closed.has(name) || TIME.test(value) || (name === 'bucket' && !isListed);
    return isOwn ? value : HOSTILE;
  }
  if (Array.isArray(value)) return value.map((each: unknown) => attacked(name, each, true));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([field, inner]) => [field, attacked(field, inner, isListed)]));
}

/** The same operations with such answers. */
export function hostileOperations(operations: CheckedOperations): CheckedOperations {
  const all = Object.entries(operations).map(([name, operation]: readonly [string, AnyOperation]) => {
    const hostile: AnyOperation = async (request, context) => attacked('', await operation(request, context), false);
    return [name, hostile] as const;
  });
  return Object.fromEntries(all) as unknown as CheckedOperations;
}
