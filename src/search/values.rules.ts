/** Search values as people write them: sizes, ages and dates. */
import type { Test } from '../store/conditions.rules.ts';
import type { FieldName } from './fields.rules.ts';
import type { Operator } from './lexer.rules.ts';

const KIB = 1_024;
/** The letters of sizes, the smallest first. */
const SIZE_LETTERS = ['K', 'M', 'G', 'T', 'P'] as const;
const SIZE = /^(\d{1,16}(?:\.\d{1,6})?)(?:([KMGTP])(iB|B)?|B)?$/i;

/**
 * The bytes of a size: `1G` and `1GiB` are 2^30, `1GB` is 10^9, `1.5M` is one and a half times 2^20, and a number alone is
 * bytes. Undefined for any other text, and for more bytes than a number can count exactly.
 */
export function sizeOf(text: string): number | undefined {
  const [, digits, letter, unit = ''] = SIZE.exec(text) ?? [];
  if (digits === undefined) return undefined;
  const power = letter === undefined ? 0 : SIZE_LETTERS.findIndex((each) => each === letter.toUpperCase()) + 1;
  const bytes = Math.round(Number(digits) * (unit.toLowerCase() === 'b' ? 1_000 : KIB) ** power);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

const DAY_MS = 86_400_000;
const AGE_UNITS_MS: Readonly<Record<string, number>> = {
  s: 1_000,
  min: 60_000,
  h: 3_600_000,
  d: DAY_MS,
  w: 7 * DAY_MS,
  y: 365 * DAY_MS,
};
/** What stands for a unit in messages. */
const AGE_UNITS = Object.keys(AGE_UNITS_MS).join(', ');
const AGE = /^(\d{1,6})(s|min|h|d|w|y)$/;

/** The milliseconds of an age (`30min`, `24h`, `7d`, `2w`, `1y` of 365 days); undefined for any other text. */
export function ageMsOf(text: string): number | undefined {
  const [, count, unit = ''] = AGE.exec(text) ?? [];
  const unitMs = AGE_UNITS_MS[unit];
  return count === undefined || unitMs === undefined ? undefined : Number(count) * unitMs;
}

/** A time that a date names: a moment in milliseconds, or a year, a month, a day, a minute or a second. `endMs` is exclusive. */
interface Period {
  readonly startMs: number;
  readonly endMs: number;
}

/** Earlier years are mistakes: no object is as old, and `Date.UTC` takes the first hundred for years of the last century. */
const DATE =
  /^(?<year>[1-9]\d{3})(?:-(?<month>\d\d)(?:-(?<day>\d\d)(?:T(?<hour>\d\d):(?<minute>\d\d)(?::(?<second>\d\d)(?<fraction>\.\d{1,3})?)?(?<zone>Z|[+-](?:0\d|1[0-8]):[0-5]\d)?)?)?)?$/;

type Numbers = readonly [year: number, month: number, day: number, hour: number, minute: number, second: number, ms: number];

/** The length of what is written down to a part of a day; it does not depend on the zone. */
const LENGTHS_MS = { minute: 60_000, second: 1_000, fraction: 1 } as const;

/**
 * The period of a date: `2026`, `2026-09`, `2026-09-01`, `2026-09-01T08:00`, with seconds and milliseconds, and with `Z` or
 * `+02:00` after a time. Without a zone it is a time of `timeZone`. Undefined for any other text, and for days that no month has.
 */
export function periodOf(text: string, timeZone: string): Period | undefined {
  const groups = DATE.exec(text)?.groups;
  if (groups === undefined) return undefined;
  const number = (name: string, missing: number): number => Number(groups[name] ?? missing);
  const day = [number('year', 0), number('month', 1), number('day', 1)] as const;
  const ms = Math.round(number('fraction', 0) * 1_000);
  const start: Numbers = [...day, number('hour', 0), number('minute', 0), number('second', 0), ms];
  if (!isDate(start)) return undefined;
  const startMs = msOf(start, groups['zone'], timeZone);
  if (groups['hour'] !== undefined) return { startMs, endMs: startMs + LENGTHS_MS[smallestOf(groups)] };
  return { startMs, endMs: msOf(nextOf(day, groups), undefined, timeZone) };
}

function smallestOf(groups: Readonly<Record<string, string | undefined>>): keyof typeof LENGTHS_MS {
  if (groups['fraction'] !== undefined) return 'fraction';
  return groups['second'] === undefined ? 'minute' : 'second';
}

/** The first day after a year, a month or a day. */
function nextOf([year, month, day]: readonly [number, number, number], groups: Readonly<Record<string, string | undefined>>): Numbers {
  if (groups['month'] === undefined) return [year + 1, 1, 1, 0, 0, 0, 0];
  if (groups['day'] === undefined) return [year, month + 1, 1, 0, 0, 0, 0];
  return [year, month, day + 1, 0, 0, 0, 0];
}

function isDate([year, month, day, hour, minute, second]: Numbers): boolean {
  // the last day of a month is day 0 of the next one
  const days = new Date(Date.UTC(year, month, 0)).getUTCDate();
  return month >= 1 && month <= 12 && day >= 1 && day <= days && hour <= 23 && minute <= 59 && second <= 59;
}

function msOf(numbers: Numbers, zone: string | undefined, timeZone: string): number {
  const [year, month, day, hour, minute, second, ms] = numbers;
  const asUtcMs = Date.UTC(year, month - 1, day, hour, minute, second, ms);
  if (zone === 'Z') return asUtcMs;
  if (zone !== undefined) return asUtcMs - offsetOf(zone);
  // the offset at the moment itself: the first guess may lie on the other side of a change of the clocks
  const guessMs = asUtcMs - offsetMsAt(timeZone, asUtcMs);
  return asUtcMs - offsetMsAt(timeZone, guessMs);
}

function offsetOf(zone: string): number {
  const sign = zone.startsWith('-') ? -1 : 1;
  return sign * (Number(zone.slice(1, 3)) * 60 + Number(zone.slice(4, 6))) * 60_000;
}

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
  if (operator === ':') return { mistake: `${name} needs a comparison, for example >` };
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
    if (operator === '=') return { mistake: `compare an age with <, <=, > or >=` };
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

// ── time zones for dates: IANA names (Europe/Berlin), UTC, and offsets (+02:00) ────────────────────────────────────

/** ISO 8601 has offsets of up to 18 hours. */
const OFFSET = /^([+-])(0\d|1[0-8]):([0-5]\d)$/;
/** Recently used formatters, which take about 100 µs to create. */
const formats = new Map<string, Intl.DateTimeFormat>();
/** More zones than one process's callers are in. The map is cleared when it is full. */
const FORMATS_MAX = 64;
/** No name is longer. */
const NAME_LENGTH_MAX = 64;

/** Whether the text names a time zone. */
export function isTimeZone(text: string): boolean {
  if (text === 'UTC' || OFFSET.test(text)) return true;
  return /^[A-Za-z]/.test(text) && text.length <= NAME_LENGTH_MAX && formatOf(text) !== undefined;
}

/** How far the zone is ahead of UTC at this moment, in milliseconds. The zone is one that {@link isTimeZone} accepts. */
function offsetMsAt(timeZone: string, atMs: number): number {
  if (timeZone === 'UTC') return 0;
  const [, sign, hours, minutes] = OFFSET.exec(timeZone) ?? [];
  if (sign !== undefined) return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
  const parts = formatOf(timeZone)?.formatToParts(atMs) ?? [];
  const numbers = new Map(parts.map(({ type, value }) => [type, Number(value)]));
  const part = (type: Intl.DateTimeFormatPartTypes): number => numbers.get(type) ?? 0;
  const local = Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'), part('second'));
  return local - Math.floor(atMs / 1_000) * 1_000;
}

function formatOf(timeZone: string): Intl.DateTimeFormat | undefined {
  const known = formats.get(timeZone);
  if (known !== undefined) return known;
  try {
    const format = new Intl.DateTimeFormat('en-US', {
      timeZone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
    if (formats.size >= FORMATS_MAX) formats.clear();
    formats.set(timeZone, format);
    return format;
  } catch {
    return undefined;
  }
}
