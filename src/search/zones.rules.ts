/** Time zones for dates: IANA names (Europe/Berlin), UTC, and offsets (+02:00). */

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
export function offsetMsAt(timeZone: string, atMs: number): number {
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
