/** Which of a bucket's gaps are reconciled together, with which prefix, and which of them first. */
import { affordable, msOf, type GapBudget, type Limits } from './budget.ts';
import { isWithheld, type GapRecord } from './gap.ts';

/** A job that could be started, with the gaps that it would close. */
export interface GapJobPlan {
  readonly prefix: string;
  readonly gaps: readonly GapRecord[];
}

/** Listing a common prefix may cost this many times as much as its parts, because it saves jobs, each of which first waits a minute. */
const COMMON_COST_MAX = 2;
/** A common prefix that costs at most this many requests is always listed as a whole: separate jobs would only add waits. */
const COMMON_FREE_REQUESTS = 100;

/**
 * The prefixes whose listing cost jobsOf needs to choose: those of the due gaps, except prefixes that lie within another
 * one, and their common prefix.
 */
export function prefixesOf(due: readonly GapRecord[]): { readonly parts: readonly string[]; readonly common: string } {
  const prefixes = [...new Set(due.map(({ prefix = '' }) => prefix))];
  const parts = prefixes.filter((prefix) => !prefixes.some((other) => other !== prefix && prefix.startsWith(other)));
  return { parts, common: commonPrefix(parts) };
}

/**
 * The jobs to choose from, the best first; the first that fits the budget is started. Every open gap within a job's prefix
 * is included, even if it is not due yet, because it costs nothing extra; but no deletes that a person has stopped.
 */
export function jobsOf({
  due,
  open,
  requestsOf,
  requestsPerDay,
}: {
  readonly due: readonly GapRecord[];
  /** All gaps that no job is closing now, including the due ones. */
  readonly open: readonly GapRecord[];
  /** The cost, in LIST requests, of listing a prefix. */
  readonly requestsOf: (prefix: string) => number;
  readonly requestsPerDay: number;
}): readonly GapJobPlan[] {
  if (due.length === 0) return [];
  const withPrefix = due.filter(({ prefix = '' }) => prefix !== '');
  // a job for the whole bucket closes every gap; if it does not fit the budget, the parts are done first
  const whole = withPrefix.length < due.length ? [''] : [];
  const { parts, common } = prefixesOf(withPrefix);
  // the cheapest first; but one that has waited for as long as its cost keeps the budget busy comes before what is new
  const turnMs = (part: string): number =>
    Math.min(...withPrefix.filter(({ prefix }) => prefix === part).map(({ openedAtMs }) => openedAtMs)) +
    msOf(requestsOf(part), requestsPerDay);
  const inTurn = parts.toSorted((a, b) => turnMs(a) - turnMs(b));
  const partsCost = parts.reduce((sum, part) => sum + requestsOf(part), 0);
  const isWorthIt = parts.length > 1 && requestsOf(common) <= Math.max(COMMON_FREE_REQUESTS, COMMON_COST_MAX * partsCost);
  return [...new Set([...whole, ...(isWorthIt ? [common] : []), ...inTurn])].map((prefix) => ({
    prefix,
    gaps: open.filter((gap) => (gap.prefix ?? '').startsWith(prefix) && !isWithheld(gap)),
  }));
}

/** The job to start now, or why none starts. */
export type Choice =
  | { readonly kind: 'start'; readonly plan: GapJobPlan; readonly requests: number }
  /** The budget is 0. */
  | { readonly kind: 'never' }
  | { readonly kind: 'over-budget'; readonly fromMs: number };

/** Chooses the first plan that the budget allows. */
export function chooseJob(
  plans: readonly GapJobPlan[],
  requestsOf: (prefix: string) => number,
  { budget, limits }: { readonly budget: GapBudget; readonly limits: Limits },
): Choice {
  let soonestMs = Infinity;
  for (const plan of plans) {
    const requests = requestsOf(plan.prefix);
    const answer = affordable(budget, requests, limits);
    if (answer === 'yes') return { kind: 'start', plan, requests };
    if (answer !== 'never') soonestMs = Math.min(soonestMs, answer.fromMs);
  }
  return soonestMs === Infinity ? { kind: 'never' } : { kind: 'over-budget', fromMs: soonestMs };
}

/** The common prefix of all texts, in whole characters. */
export function commonPrefix(texts: readonly string[]): string {
  const [first = '', ...others] = texts;
  let length = 0;
  for (const character of first) {
    const next = length + character.length;
    if (!others.every((other) => other.startsWith(first.slice(0, next)))) break;
    length = next;
  }
  return first.slice(0, length);
}
