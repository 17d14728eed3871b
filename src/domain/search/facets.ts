/** The groups in which the results of a search are summed, and what narrows a search to one of them. */
import { compareKeys } from '../documents/key-order.ts';

export const facetNames = ['bucket', 'extension', 'class', 'size', 'age'] as const;
export type FacetName = (typeof facetNames)[number];

/** The ages by which objects are grouped, the youngest first; each contains what is younger than its days and in no earlier one. */
export const objectAges = [
  { name: '1d', days: 1 },
  { name: '7d', days: 7 },
  { name: '30d', days: 30 },
  { name: '90d', days: 90 },
  { name: '365d', days: 365 },
  { name: 'older', days: Infinity },
] as const;

const DAY_MS = 86_400_000;
export const HOUR_MS = 3_600_000;

/** The moment from which the ages of a bucket are counted: the start of the hour, so that sums by the hour of modification give them. */
export function ageMomentOf(nowMs: number): number {
  return hourOf(nowMs) * HOUR_MS;
}

/** The hour of a moment, counted since 1970. */
export function hourOf(ms: number): number {
  return Math.floor(ms / HOUR_MS);
}

/** The clauses that find an age of a bucket, without what is younger: by times, since these ages are counted from the start of the hour. */
export function ageClauses(name: string, nowMs: number): readonly string[] {
  const [younger, own] = neighbours(objectAges, name);
  const clauseOf = (operator: string, age: string | undefined): readonly string[] => {
    const days = objectAges.find((each) => each.name === age)?.days;
    return days === undefined ? [] : [`modified${operator}${new Date(ageMomentOf(nowMs) - days * DAY_MS).toISOString()}`];
  };
  return [...clauseOf('>=', own), ...clauseOf('<', younger)];
}

/** The sizes by which objects are grouped, the smallest first; each contains what is smaller than its bytes and in no earlier one. */
export const objectSizes = [
  { name: '1K', bytes: 2 ** 10 },
  { name: '1M', bytes: 2 ** 20 },
  { name: '100M', bytes: 100 * 2 ** 20 },
  { name: '1G', bytes: 2 ** 30 },
  { name: '10G', bytes: 10 * 2 ** 30 },
  { name: 'larger', bytes: Infinity },
] as const;

/** A group of a facet; the name is empty for objects that have none. */
export interface FacetSum {
  readonly name: string;
  readonly objects: number;
  readonly bytes: number;
}

/** The groups with the most objects, then in the order of their names. */
export function largestGroups(sums: readonly FacetSum[], countMax: number): readonly FacetSum[] {
  return sums.toSorted((a, b) => b.objects - a.objects || compareKeys(a.name, b.name)).slice(0, countMax);
}

/** The groups in the order of these names; what has none is last. */
export function groupsInOrder(names: readonly { readonly name: string }[], sums: readonly FacetSum[]): readonly FacetSum[] {
  return [...names, { name: '' }].flatMap(({ name }) => sums.find((each) => each.name === name) ?? []);
}

/** The clauses of the query grammar that narrow a search to a group; undefined for a group that the grammar cannot name. */
export function facetClause(facet: FacetName, name: string): string | undefined {
  if (name === '') return undefined;
  switch (facet) {
    case 'bucket':
      return `bucket:${quoted(name)}`;
    case 'extension':
      return `ext:${quoted(name)}`;
    case 'class':
      // the grammar takes classes in capitals, as S3 has them
      return name === name.toUpperCase() ? `class:${quoted(name)}` : undefined;
    case 'size':
      return betweenClause('size', ['>=', '<'], neighbours(objectSizes, name));
    case 'age':
      return betweenClause('modified', ['>', '<='], neighbours(objectAges, name));
  }
}

/** The names of the bounds of a group: the one before it, and its own unless it has none. */
function neighbours(
  groups: readonly { readonly name: string }[],
  name: string,
): readonly [from: string | undefined, to: string | undefined] {
  const at = groups.findIndex((group) => group.name === name);
  return [groups[at - 1]?.name, at === groups.length - 1 ? undefined : name];
}

function betweenClause(
  field: string,
  [above, below]: readonly [string, string],
  [from, to]: readonly [from: string | undefined, to: string | undefined],
): string {
  return [...(from === undefined ? [] : [`${field}${above}${from}`]), ...(to === undefined ? [] : [`${field}${below}${to}`])].join(' ');
}

/** A value as it must be written. */
function quoted(value: string): string {
  return /^[^\s,"*?]+$/u.test(value) ? value : `"${value.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}
