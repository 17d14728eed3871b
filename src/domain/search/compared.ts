/** The tests of fields that are compared: sizes and times. */
import type { Test } from './conditions.ts';
import type { FieldName } from './fields.ts';
import type { Operator } from './lexer.ts';
import { AGE_UNITS, ageMsOf, periodOf, sizeOf, type Period } from './values.ts';

type Comparison = Exclude<Operator, ':'>;

/** A comparison with its absolute value: the test, and how it reads. */
interface Compared {
  readonly test: Test;
  readonly operator: Comparison;
  readonly absolute: string;
  /** It depends on the moment of the query. */
  readonly relative: boolean;
}

interface Zone {
  readonly nowMs: number;
  readonly timeZone: string;
}

/** The test of a comparison. Returns what is wrong with its value otherwise. */
export function comparedTests(
  name: FieldName,
  { operator, text }: { readonly operator: Operator; readonly text: string },
  zone: Zone,
): Compared | { readonly mistake: string } {
  if (operator === ':') return { mistake: `${name} is compared, for example with >` };
  if (name === 'size') return sizeCompared(operator, text);
  return timeCompared(name === 'deleted' ? 'deleted' : 'modified', { operator, text }, zone);
}

function sizeCompared(operator: Comparison, text: string): Compared | { readonly mistake: string } {
  const bytes = sizeOf(text);
  if (bytes === undefined) return { mistake: 'this is not a size: write bytes, 64K, 1.5G (1,024 each) or 1GB (10^9)' };
  return { test: { kind: 'size', ...sizeRange(operator, bytes) }, operator, absolute: String(bytes), relative: false };
}

function sizeRange(operator: Comparison, bytes: number): { readonly min?: number; readonly max?: number } {
  switch (operator) {
    case '>':
      return { min: bytes + 1 };
    case '>=':
      return { min: bytes };
    case '<':
      return { max: bytes - 1 };
    case '<=':
      return { max: bytes };
    case '=':
      return { min: bytes, max: bytes };
  }
}

function timeCompared(
  kind: 'modified' | 'deleted',
  { operator, text }: { readonly operator: Comparison; readonly text: string },
  { nowMs, timeZone }: Zone,
): Compared | { readonly mistake: string } {
  const ageMs = ageMsOf(text);
  if (ageMs !== undefined) {
    if (operator === '=') return { mistake: `an age is compared with <, <=, > or >=` };
    return { ...timeTest(kind, TURNED[operator], momentOf(nowMs - ageMs)), relative: true };
  }
  const period = periodOf(text, timeZone);
  if (period === undefined) {
    return { mistake: `this is neither an age (7d; units ${AGE_UNITS}) nor a date (2026-09-01, 2026-09-01T08:00Z)` };
  }
  return { ...timeTest(kind, operator, period), relative: false };
}

/** Younger than 7 days means modified later than 7 days ago. */
const TURNED = { '<': '>', '<=': '>=', '>': '<', '>=': '<=' } as const;

function momentOf(ms: number): Period {
  return { startMs: ms, endMs: ms + 1 };
}

/** The times that a text with four digits of the year can name. Stores compare such texts, and no object has another time. */
const TIME_MIN_MS = Date.parse('0000-01-01T00:00:00.000Z');
const TIME_MAX_MS = Date.parse('9999-12-31T23:59:59.999Z');

/** A day is compared as a whole: after it means from its end on, and up to it includes all of it. */
function timeTest(kind: 'modified' | 'deleted', operator: Comparison, { startMs, endMs }: Period): Omit<Compared, 'relative'> {
  const boundedMs = (ms: number): number => Math.min(Math.max(ms, TIME_MIN_MS), TIME_MAX_MS);
  const [from, before] = [boundedMs(startMs), boundedMs(endMs)];
  if (operator === '=') {
    return { test: { kind, from, before }, operator, absolute: `${new Date(from).toISOString()}/${new Date(before).toISOString()}` };
  }
  const isFrom = operator === '>' || operator === '>=';
  const boundMs = operator === '>' || operator === '<=' ? before : from;
  return {
    test: { kind, ...(isFrom ? { from: boundMs } : { before: boundMs }) },
    operator: isFrom ? '>=' : '<',
    absolute: new Date(boundMs).toISOString(),
  };
}
