/** The groups by which a search's objects are summed, and the filter that narrows a search to one of them. */
import { compareKeys } from '../base/key-order.ts';

export const usageBy = ['folder', 'extension', 'class', 'size', 'age', 'bucket'] as const;
export type UsageBy = (typeof usageBy)[number];

/** The ages, the youngest first; each contains what is younger than its days and in no earlier one. */
export const objectAges = [
  { name: '1d', days: 1 },
  { name: '7d', days: 7 },
  { name: '30d', days: 30 },
  { name: '90d', days: 90 },
  { name: '365d', days: 365 },
  { name: 'older', days: Infinity },
] as const;

/** The sizes, the smallest first; each contains what is smaller than its bytes and in no earlier one. */
export const objectSizes = [
  { name: '1K', bytes: 2 ** 10 },
  { name: '1M', bytes: 2 ** 20 },
  { name: '100M', bytes: 100 * 2 ** 20 },
  { name: '1G', bytes: 2 ** 30 },
  { name: '10G', bytes: 10 * 2 ** 30 },
  { name: 'larger', bytes: Infinity },
] as const;

/** The largest groups of a kind in the order of the contract. Sizes and ages have their own order; objects that have none are last. */
export function largestGroups<Group extends { readonly name: string; readonly objects: number }>(
  by: UsageBy,
  groups: readonly Group[],
  limit: number,
): readonly Group[] {
  const ordered = by === 'size' ? objectSizes : by === 'age' ? objectAges : undefined;
  if (ordered === undefined) return groups.toSorted((a, b) => b.objects - a.objects || compareKeys(a.name, b.name)).slice(0, limit);
  return [...ordered, { name: '' }].flatMap(({ name }) => groups.find((group) => group.name === name) ?? []);
}

/** The clauses of the query grammar that narrow a search to a group; undefined for a group that the grammar cannot name. */
export function groupClause(by: UsageBy, name: string): string | undefined {
  if (name === '') return undefined;
  switch (by) {
    case 'folder':
      return `prefix:${quoted(name)}`;
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
