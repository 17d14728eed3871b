/** Functions that the dialects share: they read fields of unchecked JSON, and keys as each envelope encodes them. */
import { z } from 'zod';
import { printable } from '../printable.ts';

/** A fault's reason repeats at most this many characters of a message. */
const QUOTE_LENGTH_MAX = 60;
/** S3's limit for a version id; etags and sequencers are far shorter. A keyword field of the index cannot hold much longer values. */
const ID_LENGTH_MAX = 1_024;

/** An object of parsed JSON. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Whether a value of parsed JSON is an object. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value at a path of object fields; undefined when there is none. */
export function valueAt(value: unknown, ...path: readonly string[]): unknown {
  let current = value;
  for (const field of path) {
    if (!isJsonObject(current)) return undefined;
    current = current[field];
  }
  return current;
}

/** Whether a field is without a value. A path that an input transformer does not find arrives as the empty string. */
export function isAbsent(value: unknown): value is undefined | null | '' {
  return value === undefined || value === null || value === '';
}

/** Whether a field holds an event name, known or unknown. */
export function isEventName(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

/** An identifier made by S3 (etag, version id, sequencer), or nothing. */
export const idSchema = z
  .string()
  .max(ID_LENGTH_MAX)
  .refine((text) => text.isWellFormed(), 'Invalid input: not well-formed Unicode')
  .nullish();

/** A delete marker as the sources write it: absent, null, the empty string, a boolean, or its name. */
export const deleteMarkerSchema = z.literal([true, false, 'true', 'false', '', null]).optional();

/** Whether a parsed delete-marker field is true. */
export function isMarked(deleteMarker: z.infer<typeof deleteMarkerSchema>): boolean {
  return deleteMarker === true || deleteMarker === 'true';
}

const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;

/** An ISO 8601 time as ms since the epoch; undefined when the value is not such a time or lies outside the years 1970 to 9999. */
export function timeOf(value: unknown): number | undefined {
  if (typeof value !== 'string' || !ISO_TIME.test(value)) return undefined;
  const timeMs = Date.parse(value);
  return timeMs >= 0 && timeMs < Date.UTC(10_000, 0) ? timeMs : undefined;
}

/** A piece of a message for a fault's reason: shortened, on one line, in quotes. */
export function quoted(value: unknown): string {
  return typeof value === 'string' ? `"${printable(value, QUOTE_LENGTH_MAX)}"` : kindOf(value);
}

/** The type of a value of parsed JSON, in words. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return value === null ? 'null' : 'absent';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** S3's limit for a key, in UTF-8 bytes. */
const KEY_BYTES_MAX = 1_024;

/** A key as an envelope has it. `uncertain`: its escapes were malformed, so `key` is the undecoded text and may not be the object's key. */
export interface WrittenKey {
  readonly key: string;
  readonly uncertain: boolean;
}

/** Whether S3 could hold an object under this key: 1 to 1,024 bytes of well-formed Unicode. */
export function isKey(text: string): boolean {
  if (text === '' || text.length > KEY_BYTES_MAX || !text.isWellFormed()) return false;
  // a UTF-16 unit takes at most 3 UTF-8 bytes, so most keys are short enough without counting
  return text.length * 3 <= KEY_BYTES_MAX || Buffer.byteLength(text) <= KEY_BYTES_MAX;
}

/** A key of S3's EventBridge events, audit-trail events and synthetic records, which never encode it. */
export function rawKey(text: string): WrittenKey {
  return { key: text, uncertain: false };
}

/**
 * A key of S3's notifications, and of listings requested with EncodingType=url: form-url-encoded UTF-8, where `+` is a
 * space. If an escape is malformed or not UTF-8, the whole key stays undecoded and `uncertain`.
 */
export function decodeFormKey(text: string): WrittenKey {
  if (!text.includes('%')) return { key: text.includes('+') ? text.replaceAll('+', ' ') : text, uncertain: false };
  try {
    return { key: decodeURIComponent(text.replaceAll('+', ' ')), uncertain: false };
  } catch {
    return { key: text, uncertain: true };
  }
}
