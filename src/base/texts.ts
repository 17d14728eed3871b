/** Formats sizes, times, counts and shares for people, and makes untrusted text safe to show. */

/** Formats a time for people: ISO 8601 in UTC. */
export function timeText(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : new Date(ms).toISOString();
}

const SIZE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const;

/** Formats a number of bytes with at most one decimal: `0 B`, `1.5 KiB`, `12 MiB`. */
export function sizeText(sizeBytes: number | undefined): string | undefined {
  if (sizeBytes === undefined) return undefined;
  let value = sizeBytes;
  let unit = 0;
  // 1023.5 would be rounded to 1024
  while (value >= 1_023.5 && unit < SIZE_UNITS.length - 1) {
    value /= 1_024;
    unit += 1;
  }
  const rounded = value < 10 ? Math.round(value * 10) / 10 : Math.round(value);
  return `${rounded} ${SIZE_UNITS[unit]}`;
}

/** Formats the age of an ISO 8601 time. A future time counts as now. */
export function ageOfText(at: string | undefined, nowMs: number): string | undefined {
  const atMs = Date.parse(at ?? '');
  return Number.isNaN(atMs) ? undefined : durationText(nowMs - atMs);
}

/** Formats when a moment was or will be: `5 min`, `in 7 h`. */
export function momentOfText(at: string | undefined, nowMs: number): string | undefined {
  const inMs = at === undefined ? 0 : Date.parse(at) - nowMs;
  // less than a second ahead counts as now, because clocks differ by that much
  return inMs < 1_000 ? ageOfText(at, nowMs) : `in ${durationText(inMs)}`;
}

/** Formats a moment as a time of day in UTC, preceded by the date unless it is today: `14:02 UTC`. */
export function momentText(atMs: number, nowMs: number): string {
  const [day = '', time = ''] = new Date(atMs).toISOString().split('T');
  const isToday = new Date(nowMs).toISOString().startsWith(day);
  return `${isToday ? '' : `${day} `}${time.slice(0, 5)} UTC`;
}

/** Formats a future moment: `14:02 UTC (in 3 min)`. */
export function clockText(at: string, nowMs: number): string {
  return `${momentText(Date.parse(at), nowMs)} (in ${durationText(Date.parse(at) - nowMs)})`;
}

/** Formats a number with thousands separators: `1,234,567`; with the name of one thing: `1 object`, `1,234,567 objects`. */
export function countText(count: number, name?: string): string {
  const number = Math.round(count).toLocaleString('en-US');
  return name === undefined ? number : `${number} ${name}${number === '1' ? '' : 's'}`;
}

/** Formats a share from 0 to 1 in whole per cent. It is 100 % only if the share is 1. */
export function percentText(share: number | undefined): string | undefined {
  return share === undefined ? undefined : `${Math.floor(Math.min(1, Math.max(0, share)) * 100)} %`;
}

/** Formats a duration in one unit: `12 s`, `5 min`, `7 h`, `30 d`. */
export function durationText(durationMs: number): string {
  const seconds = Math.max(0, Math.floor(durationMs / 1_000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3_600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/** Formats US dollars to the cent: the price of a few requests to S3 is not worth more digits. */
export function dollarsText(usd: number): string {
  if (usd > 0 && usd < 0.01) return '< $0.01';
  return `$${usd.toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
}

/**
 * Control characters (C0 and C1), line and paragraph separators, halves of surrogate pairs, and everything that is invisible:
 * bidi marks, embeddings, overrides and isolates, zero-width spaces and joiners, fillers, tags. Variation selectors are not
 * included: they are invisible too, but they only choose how the character before them is drawn.
 */
export const UNPRINTABLE = /[[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]--\p{Variation_Selector}]/gv;

/**
 * Turns untrusted text into one safe line for a log, a reason or a terminal. Characters that are invisible or that could move
 * the cursor, end the line or change the reading direction are shown as `\u{…}`. A text of more than `maxLength` UTF-16 units
 * (default: no limit) is cut there and ends in `…`.
 */
export function printable(text: string, maxLength = Number.POSITIVE_INFINITY): string {
  const cut = text.length > maxLength ? `${withoutHalfPair(text.slice(0, maxLength))}…` : text;
  return cut.replaceAll(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16) ?? ''}}`);
}

/** Removes the half of a surrogate pair that a cut may have left at the end. */
function withoutHalfPair(text: string): string {
  return /[\uD800-\uDBFF]$/.test(text) ? text.slice(0, -1) : text;
}
