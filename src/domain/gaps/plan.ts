/** Which of a bucket's gaps are reconciled together, with which prefix, and which of them first. */
import { affordable, isOversized, type GapBudget, type Limits } from './budget.ts';
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
}: {
  readonly due: readonly GapRecord[];
  /** All gaps that no job is closing now, including the due ones. */
  readonly open: readonly GapRecord[];
  /** The cost, in LIST requests, of listing a prefix. */
  readonly requestsOf: (prefix: string) => number;
}): readonly GapJobPlan[] {
  if (due.length === 0) return [];
  const withPrefix = due.filter(({ prefix = '' }) => prefix !== '');
  // a job for the whole bucket closes every gap; if it does not fit the budget, the parts are done first
  const whole = withPrefix.length < due.length ? [''] : [];
  const { parts, common } = prefixesOf(withPrefix);
  const cheapest = parts.toSorted((a, b) => requestsOf(a) - requestsOf(b));
  const partsCost = parts.reduce((sum, part) => sum + requestsOf(part), 0);
  const isWorthIt = parts.length > 1 && requestsOf(common) <= Math.max(COMMON_FREE_REQUESTS, COMMON_COST_MAX * partsCost);
  return [...new Set([...whole, ...(isWorthIt ? [common] : []), ...cheapest])].map((prefix) => ({
    prefix,
    gaps: open.filter((gap) => (gap.prefix ?? '').startsWith(prefix) && !isWithheld(gap)),
  }));
}

/** A gap that the budget has kept open for this long is closed before any other. */
const PATIENCE_MS = 86_400_000;

/** The job to start now, or why none starts. */
export type Choice =
  | { readonly kind: 'start'; readonly plan: GapJobPlan; readonly requests: number }
  /** The budget is 0. */
  | { readonly kind: 'never' }
  /** `first`: the gap that the budget is kept for, because it has waited longest. */
  | { readonly kind: 'over-budget'; readonly spent: number; readonly fromMs: number; readonly first?: GapRecord };

/**
 * Chooses the first plan that the budget allows. Once the budget has kept a gap open for a day, nothing is spent on the others
 * until the gap is closing: otherwise many small jobs would keep a large one from ever starting. Oversized jobs and the others do
 * not wait for each other here either.
 */
export function chooseJob(
  plans: readonly GapJobPlan[],
  requestsOf: (prefix: string) => number,
  { budget, limits }: { readonly budget: GapBudget; readonly limits: Limits },
): Choice {
  const priced = plans.map((plan) => ({ plan, requests: requestsOf(plan.prefix) }));
  const firsts = new Map([false, true].map((isOver) => [isOver, firstInLine(priced, isOver, limits)]));
  const allowed = priced.filter(({ plan, requests }) => {
    const first = firsts.get(isOversized(requests, limits));
    return first === undefined || plan.gaps.includes(first);
  });
  const answers = allowed.map((each) => ({ ...each, answer: affordable(budget, each.requests, limits) }));
  const chosen = answers.find(({ answer }) => answer === 'yes');
  if (chosen !== undefined) return { kind: 'start', plan: chosen.plan, requests: chosen.requests };
  const [soonest] = answers.flatMap(({ answer }) => (typeof answer === 'object' ? [answer] : [])).sort((a, b) => a.fromMs - b.fromMs);
  if (soonest === undefined) return { kind: 'never' };
  const first = firsts.get(false) ?? firsts.get(true);
  return { kind: 'over-budget', ...soonest, ...(first !== undefined && { first }) };
}

interface Priced {
  readonly plan: GapJobPlan;
  readonly requests: number;
}

/** The gap that the budget has kept open longest, if that is too long; of those whose cheapest job is oversized, or of the others. */
function firstInLine(priced: readonly Priced[], isOver: boolean, limits: Limits): GapRecord | undefined {
  const gaps = [...new Set(priced.flatMap(({ plan }) => plan.gaps))].filter((gap) => isFirstInLine(gap, limits.nowMs));
  const cheapestOf = (gap: GapRecord): number =>
    Math.min(...priced.filter(({ plan }) => plan.gaps.includes(gap)).map(({ requests }) => requests));
  return gaps
    .filter((gap) => isOversized(cheapestOf(gap), limits) === isOver)
    .sort((a, b) => (a.overBudgetSinceMs ?? 0) - (b.overBudgetSinceMs ?? 0))[0];
}

/** Whether the budget has kept the gap open for too long, so that it is to be closed before any other. */
export function isFirstInLine({ overBudgetSinceMs }: GapRecord, nowMs: number): boolean {
  return overBudgetSinceMs !== undefined && nowMs - overBudgetSinceMs >= PATIENCE_MS;
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
