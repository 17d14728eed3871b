/** The few figures that runs are told by, and how reports show them. */

/** The middle value (of an even number of values the mean of the middle two). Throws where there is none. */
export function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)];
  const lower = sorted[Math.floor((sorted.length - 1) / 2)];
  if (upper === undefined || lower === undefined) throw new Error('no values, no median');
  return (lower + upper) / 2;
}

/** The value that a share (0 to 1) of the values does not exceed: nearest rank. Throws where there is none. */
export function quantileOf(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const value = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
  if (value === undefined) throw new Error('no values, no quantile');
  return value;
}

/** What was found of a promise: a row of the report's table `targets`. */
export interface Target {
  readonly target: string;
  readonly found: number;
  readonly wanted: string;
  readonly is: 'reached' | 'MISSED';
}

export function atMost(target: string, found: number, most: number): Target {
  return { target, found, wanted: `≤ ${cellOf(most)}`, is: found <= most ? 'reached' : 'MISSED' };
}

export function atLeast(target: string, found: number, least: number): Target {
  return { target, found, wanted: `≥ ${cellOf(least)}`, is: found >= least ? 'reached' : 'MISSED' };
}

/** Rows as aligned text below the names of their fields. */
export function tableText(rows: readonly object[]): string {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const lines = [names, ...rows.map((row) => names.map((name) => cellOf(new Map<string, unknown>(Object.entries(row)).get(name))))];
  const widths = names.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines.map((line) => line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')).join('\n');
}

function cellOf(value: unknown): string {
  if (typeof value !== 'number') return typeof value === 'string' ? value : '–';
  return Number.isInteger(value) || Math.abs(value) >= 100 ? String(Math.round(value)) : value.toFixed(2);
}
