/** Which of a bucket's gaps are reconciled together, by which prefix. */
import type { GapRecord } from './gap.ts';

/** One job that could be begun, with the gaps that it would close. */
export interface GapJobPlan {
  readonly prefix: string;
  readonly gaps: readonly GapRecord[];
}

/** Listing a common prefix may cost this many times as much as its parts: fewer jobs, each of which waits a minute first. */
const COMMON_COST_MAX = 2;
/** Parts that cost less than so many requests together are not worth their own waits. */
const COMMON_FREE_REQUESTS = 100;

/**
 * The prefixes whose listing must be priced before jobsOf can choose: those of the due gaps, without what lies within
 * another, and what they have in common.
 */
export function prefixesOf(due: readonly GapRecord[]): { readonly parts: readonly string[]; readonly common: string } {
  const prefixes = [...new Set(due.map(({ prefix = '' }) => prefix))];
  const parts = prefixes.filter((prefix) => !prefixes.some((other) => other !== prefix && prefix.startsWith(other)));
  return { parts, common: commonPrefix(parts) };
}

/**
 * The jobs to choose from, the best first; the first that can be afforded is begun. Whatever is open and lies within a job's
 * prefix goes with it, due or not: it costs nothing more.
 */
export function jobsOf({
  due,
  open,
  requestsOf,
}: {
  readonly due: readonly GapRecord[];
  /** All that no job has now, the due ones among them. */
  readonly open: readonly GapRecord[];
  /** What listing one of the prefixes costs. */
  readonly requestsOf: (prefix: string) => number;
}): readonly GapJobPlan[] {
  if (due.length === 0) return [];
  const withPrefix = due.filter(({ prefix = '' }) => prefix !== '');
  // a whole bucket holds everything; where it cannot be afforded the parts are done first
  const whole = withPrefix.length < due.length ? [''] : [];
  const { parts, common } = prefixesOf(withPrefix);
  const cheapest = parts.toSorted((a, b) => requestsOf(a) - requestsOf(b));
  const partsCost = parts.reduce((sum, part) => sum + requestsOf(part), 0);
  const isWorthIt = parts.length > 1 && requestsOf(common) <= Math.max(COMMON_FREE_REQUESTS, COMMON_COST_MAX * partsCost);
  return [...new Set([...whole, ...(isWorthIt ? [common] : []), ...cheapest])].map((prefix) => ({
    prefix,
    gaps: open.filter((gap) => (gap.prefix ?? '').startsWith(prefix)),
  }));
}

/** What all begin with, by whole characters. */
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
