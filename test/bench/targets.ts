/** What a bench found beside what it is to reach. */
import { tableText } from './statistics.ts';

/** One promise, and what was found. */
export interface Target {
  readonly name: string;
  readonly found: number;
  readonly wanted: string;
  readonly isReached: boolean;
}

export function atMost(name: string, found: number, most: number): Target {
  return { name, found, wanted: `≤ ${most}`, isReached: found <= most };
}

export function atLeast(name: string, found: number, least: number): Target {
  return { name, found, wanted: `≥ ${least}`, isReached: found >= least };
}

/** The targets as a table; empty without any. */
export function targetsText(targets: readonly Target[]): string {
  if (targets.length === 0) return '';
  const rows = targets.map(({ name, found, wanted, isReached }) => [name, numberText(found), wanted, isReached ? 'reached' : 'MISSED']);
  return tableText([['target', 'found', 'wanted', ''], ...rows]);
}

function numberText(value: number): string {
  return value < 10 ? value.toFixed(2) : Math.round(value).toString();
}
